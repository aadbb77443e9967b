"""What draws of discrete Gaussian noise cost when each looks at a few parts of the rows, and nobody learns at which.

The rows are dealt out to disjoint parts by their place in the table. Every draw adds noise to a sum over some parts,
chosen uniformly and afresh, without replacement. A replaced row matters only in draws that happen to look at its part.
The proof is in ``docs/proofs.md``, section 20; dp-accounting composes the loss, and is imported only where needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.gaussian import gaussian_mu

ROUNDING = 2.0
"""Standard deviation, in steps of the lattice, that the proof takes off the noise for its being whole numbers."""
LEAST_SCALE = 8.0
"""Steps of the lattice below which that would be wasteful."""
MARGIN = 1e-9
"""Share of epsilon and delta that is left for the rounding of floats and of the lattice, both far smaller."""
RESOLUTION, FEWEST_CELLS, MOST_CELLS = 2e-3, 200, 10_000
"""Width of a cell of the discretised loss, as a share of epsilon; fewest and most cells on either side of zero."""
TAIL = 1e-16
"""Beyond losses that are exceeded with this probability, the loss counts as infinite."""


@dataclass(frozen=True, kw_only=True)
class SampledDraw:
    """Whole numbers summed over a few parts of the rows, that are to get discrete Gaussian noise of one scale."""

    scale: float
    """Of the noise."""
    squared: int
    """The most by which another content of one part can move the sum, in Euclidean distance, squared."""
    chosen: int
    """Parts that a draw looks at."""
    parts: int
    """Parts that there are."""

    def __post_init__(self) -> None:
        if not 1 <= self.chosen <= self.parts or self.squared < 1:
            raise ParameterError("chosen", self.chosen, allowed=f"from 1 to {self.parts} parts, which a row can move")
        if not LEAST_SCALE <= self.scale < math.inf:
            raise ParameterError("scale", self.scale, allowed=f"at least {LEAST_SCALE:g} steps of the lattice")

    @property
    def mu(self) -> float:
        """Distance over noise, for real-valued noise that the draw is no less private than."""
        return math.sqrt(self.squared / (self.scale**2 - ROUNDING**2))

    @property
    def rate(self) -> float:
        """Probability that a draw looks at a given part."""
        return self.chosen / self.parts


def sampled_delta(draw: SampledDraw, times: int, epsilon: Fraction) -> float:
    """A delta for which so many draws together are proven (epsilon, delta)-private."""
    return _sampled_delta(draw.mu, draw.rate, times, float(epsilon)) if times else 0.0


@lru_cache(maxsize=256)
def _sampled_delta(mu: float, rate: float, times: int, epsilon: float) -> float:
    from dp_accounting.pld import pld_pmf  # noqa: PLC0415  takes seconds to import

    reach = _reach(mu, rate)
    # Wider cells only make the result larger: it stays an upper bound.
    width = max(min(RESOLUTION * epsilon, reach / FEWEST_CELLS), reach / MOST_CELLS)
    cells = math.ceil(reach / width)
    losses = np.asarray(np.arange(-cells, cells + 1) * width, dtype=np.float64)
    deltas = np.clip(profile(losses, mu, rate), 0.0, 1.0)
    one = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(width, -cells, cells, deltas)
    composed = one.self_compose(times, tail_mass_truncation=TAIL)
    return float(composed.get_delta_for_epsilon(epsilon * (1 - MARGIN))) * (1 + MARGIN)


def profile(epsilons: NDArray[np.float64], mu: float, rate: float) -> NDArray[np.float64]:
    """For each epsilon the smallest delta that is proven for one draw: docs/proofs.md, section 20.

    rate * delta_mu(ln(1 + (exp(epsilon) - 1) / rate)) for epsilon >= 0 (Balle, Barthe & Gaboardi 2018, Theorem 9), and
    1 - exp(epsilon) + exp(epsilon) delta(-epsilon) below, because either table may come first.
    """
    above = np.abs(epsilons)
    inner = above + np.log1p(np.expm1(-above) * (1 - 1 / rate))
    delta = rate * np.maximum(0.0, gaussian_delta(inner, mu))
    return np.where(epsilons >= 0, delta, -np.expm1(np.minimum(epsilons, 0.0)) + np.exp(-above) * delta)


def gaussian_delta(epsilons: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
    """Of one Gaussian draw whose distance over noise is mu (Balle & Wang 2018, Theorem 8)."""
    return np.asarray(ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons + log_ndtr(-mu / 2 - epsilons / mu)))


def _reach(mu: float, rate: float) -> float:
    """A loss that one draw exceeds with probability below the tail."""
    low, high = 0.0, 1e-9
    while profile(np.array([high]), mu, rate)[0] > TAIL:
        low, high = high, 2 * high
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if profile(np.array([middle]), mu, rate)[0] > TAIL else (low, middle)
    return high


def least_multiplier(rate: float, times: int, epsilon: Fraction, delta: Fraction) -> float:
    """Noise over distance, the smallest found that so many draws need to keep (epsilon, delta)."""
    if delta <= 0:
        raise ParameterError("delta", str(delta), allowed="greater than 0 for Gaussian noise", remedy="Take 1e-6.")
    return _least_multiplier(rate, times, float(epsilon), float(delta))


SMALLEST_MULTIPLIER = 0.02
"""Less noise than this makes no difference to what is learned."""
RAISE, MOST_RAISES = 1.01, 200


@lru_cache(maxsize=256)
def _least_multiplier(rate: float, times: int, epsilon: float, delta: float) -> float:
    # The central limit of sampled draws (Bu, Dong, Long & Su 2020): rate sqrt(times (exp(1/z^2) - 1)) = mu, from below.
    mu = gaussian_mu(epsilon, delta)
    guess = max(SMALLEST_MULTIPLIER, 1 / math.sqrt(math.log1p((mu / rate) ** 2 / times)))
    for raised in range(MOST_RAISES):
        multiplier = guess * RAISE**raised
        if _sampled_delta(1 / multiplier, rate, times, epsilon) <= delta:
            return multiplier
    raise ParameterError(
        "delta", delta, allowed="large enough to be kept by Gaussian noise at this epsilon", remedy="Take 1e-6."
    )
