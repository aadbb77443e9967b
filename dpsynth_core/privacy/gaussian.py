"""What several draws of discrete Gaussian noise cost together, by dp-accounting's privacy loss distributions.

Under Gaussian noise losses do not add up one by one, so draws are planned together: they are calibrated to one
(epsilon, delta) and paid for at once. dp-accounting is imported only where it is needed, because that takes seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from scipy.special import ndtr

from dpsynth_core.errors import ParameterError

RESOLUTION = 5e-5
"""Width of a cell of the discretised loss, as a share of epsilon; losses are rounded up to it."""
LARGEST_SCALE, SMALLEST_SCALE = 1e9, 0.5


@dataclass(frozen=True, kw_only=True)
class GaussianDraw:
    """A vector of integers that is to get discrete Gaussian noise, P(k) proportional to exp(-k^2 / 2 scale^2)."""

    scale: float
    """Of the noise (sigma)."""
    values: int
    """How many of the values one replaced row can change, at most (2 for a histogram)."""
    shift: int = 1
    """By how much it can change each of them, at most."""

    def __post_init__(self) -> None:
        if self.values < 1 or self.shift < 1 or not 0 < self.scale < math.inf:
            raise ParameterError("scale", self.scale, allowed="greater than 0, with at least one value and shift")


def composed_delta(draws: Sequence[GaussianDraw], epsilon: Fraction) -> float:
    """The smallest delta for which all draws together are proven (epsilon, delta)-private; never below the truth.

    A draw on several values is the product of draws on one value each, so each contributes its values' losses.
    """
    for draw in draws:
        if not SMALLEST_SCALE <= draw.scale <= LARGEST_SCALE:
            raise ParameterError(
                "scale", draw.scale, allowed=f"from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g} for Gaussian noise",
                remedy="Choose another epsilon or delta.",
            )  # fmt: skip
    return _composed_delta(tuple(draws), epsilon)


@lru_cache(maxsize=64)
def _composed_delta(draws: tuple[GaussianDraw, ...], epsilon: Fraction) -> float:
    from dp_accounting.pld import privacy_loss_distribution as losses  # noqa: PLC0415  takes seconds to import

    alike: Counter[tuple[float, int]] = Counter()
    for draw in draws:
        alike[draw.scale, draw.shift] += draw.values
    total = None
    for (scale, shift), times in sorted(alike.items()):
        one = losses.from_discrete_gaussian_mechanism(
            scale, sensitivity=shift, value_discretization_interval=RESOLUTION * float(epsilon)
        )
        total = one.self_compose(times) if total is None else total.compose(one.self_compose(times))
    return 0.0 if total is None else float(total.get_delta_for_epsilon(float(epsilon)))


def calibrated(draws: Sequence[GaussianDraw], epsilon: Fraction, delta: Fraction) -> tuple[GaussianDraw, ...]:
    """The draws with their scales multiplied by one number, the smallest found that keeps (epsilon, delta).

    It is found for real-valued Gaussian noise in closed form and then raised by percents until the exact composition of
    the discrete draws stays within delta.
    """
    if not draws or delta <= 0:
        raise ParameterError("delta", str(delta), allowed="greater than 0 for Gaussian noise", remedy="Take 1e-6.")
    return _calibrated(tuple(draws), epsilon, delta)


@lru_cache(maxsize=64)
def _calibrated(draws: tuple[GaussianDraw, ...], epsilon: Fraction, delta: Fraction) -> tuple[GaussianDraw, ...]:
    spread = math.sqrt(sum(draw.values * (draw.shift / draw.scale) ** 2 for draw in draws))
    factor = spread / gaussian_mu(float(epsilon), float(delta))
    for _ in range(MOST_RAISES):
        factor *= RAISE
        raised = tuple(replace(draw, scale=max(SMALLEST_SCALE, _readable(draw.scale * factor))) for draw in draws)
        if composed_delta(raised, epsilon) <= delta:
            return raised
    raise ParameterError(
        "delta", str(delta), allowed="large enough to be kept by Gaussian noise at this epsilon",
        remedy="Choose a larger delta or noise without one.",
    )  # fmt: skip


RAISE, MOST_RAISES = 1.005, 40


def _readable(scale: float) -> float:
    """Rounded up to six digits, so that equal draws stay equal."""
    digits = 5 - math.floor(math.log10(scale))
    return math.ceil(scale * 10.0**digits) / 10.0**digits


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Shift over scale at which one Gaussian draw just keeps (epsilon, delta) (Balle & Wang 2018, Theorem 8)."""
    low, high = 0.0, 100.0
    for _ in range(200):
        mu = (low + high) / 2
        reached = ndtr(mu / 2 - epsilon / mu) - math.exp(min(epsilon, 700.0)) * ndtr(-mu / 2 - epsilon / mu)
        low, high = (mu, high) if reached <= delta else (low, mu)
    return low
