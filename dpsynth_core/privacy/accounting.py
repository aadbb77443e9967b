"""What draws of discrete Gaussian noise cost together.

Under Gaussian noise epsilons do not add up one by one, so a sequence of draws is paid for at once, by one (epsilon,
delta). There are two kinds:

- :class:`GaussianDraw` and :class:`SelectionDraw`: every draw looks at all rows. Each has a cost, and costs add up,
  also where a draw depends on what was drawn before. The proof is in ``docs/proofs.md``, section 23.
- :class:`SampledDraw`: the rows are dealt out to disjoint parts by their position in the table, and every draw adds
  noise to a sum over some parts, chosen uniformly and afresh, without replacement. A replaced row matters only in draws
  that happen to look at its part, and nobody learns which these are. The proof is in ``docs/proofs.md``, section 20.

What decides is ``cost`` with :func:`affordable_cost`, and :func:`sampled_delta`; everything else here only proposes
scales. dp-accounting and SciPy's root finder take seconds to import, so they are imported where they are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError

MIN_SCALE, MAX_SCALE = 1.3, 1e9
LATTICE = 1.25
"""Standard deviation that the proof takes off a draw's noise for its being integers (docs/proofs.md, section 23)."""
MAX_MOVED = 20_000
"""Values that one replaced row can change in all draws of one charge together, at most."""
LATTICE_LOSS = 1e-8
"""Epsilon that is left for that many values: 2 MAX_MOVED ln((1+t)/(1-t)) with t = 2 exp(-2 pi^2 LATTICE^2) + ..."""

ROUNDING = 2.0
"""Standard deviation, in steps of the lattice, that the proof takes off the noise for its being integers."""
MIN_SAMPLED_SCALE = 8.0
"""Steps of the lattice below which that would be wasteful."""
MARGIN = 1e-9
"""Share of epsilon and delta that is left for the rounding of floats and of the lattice, both far smaller."""
SAMPLED_RESOLUTION, MIN_CELLS, MAX_CELLS = 2e-3, 200, 10_000
"""Width of a cell of the discretised loss, as a share of epsilon; fewest and most cells on either side of zero."""
TAIL = 1e-16
"""Beyond losses that are exceeded with this probability, the loss counts as infinite."""
MIN_MULTIPLIER = 0.02
"""Less noise than this makes no difference to what is learned."""
SAMPLED_RAISE, MAX_SAMPLED_RAISES = 1.01, 200


# ------------------------------------------------------------------------------------------ draws that look at all rows


@dataclass(frozen=True, kw_only=True)
class GaussianDraw:
    """A vector of integers that is to get discrete Gaussian noise, P(k) proportional to exp(-k^2 / 2 scale^2)."""

    scale: float
    values: int
    """How many of the values one replaced row can change, at most (2 for a histogram)."""
    shift: int = 1
    """By how much it can change each of them, at most."""

    def __post_init__(self) -> None:
        if self.values < 1 or self.shift < 1 or not 0 < self.scale <= MAX_SCALE:
            allowed = f"greater than 0 and at most {MAX_SCALE:g}, with at least one value and shift"
            raise ParameterError("scale", self.scale, allowed=allowed, remedy="Choose another epsilon or delta.")

    @classmethod
    def costing(cls, cost: float, *, values: int, shift: int = 1) -> GaussianDraw:
        """The draw with the least noise that costs no more than this."""
        scale = math.sqrt(values * shift**2 / cost + LATTICE**2)
        return cls(scale=max(MIN_SCALE, _readable(scale)), values=values, shift=shift)

    @property
    def cost(self) -> float:
        """Squared distance over noise, of real-valued noise that the draw is no less private than."""
        left = self.scale**2 - LATTICE**2
        return self.values * self.shift**2 / left if left > 0 else math.inf


@dataclass(frozen=True, kw_only=True)
class SelectionDraw:
    """An index that is to be drawn by the exponential mechanism, P(i) proportional to exp(score_i / scale)."""

    scale: float
    sensitivity: int
    """Most that one replaced row can change any score."""

    def __post_init__(self) -> None:
        if self.sensitivity < 1 or not 0 < self.scale < math.inf:
            raise ParameterError("scale", self.scale, allowed="greater than 0, with a sensitivity of at least 1")

    @classmethod
    def costing(cls, cost: float, *, sensitivity: int) -> SelectionDraw:
        """The draw that prefers high scores most and costs no more than this."""
        half = math.sqrt(cost) / 2
        logit = float(log_ndtr(half) - log_ndtr(-half))
        return cls(scale=_readable(sensitivity / logit), sensitivity=sensitivity)

    @property
    def cost(self) -> float:
        """Squared mu for which the draw is mu-Gaussian private: docs/proofs.md, section 23."""
        return float(2 * ndtri_exp(-np.logaddexp(0.0, -self.sensitivity / self.scale))) ** 2


@lru_cache(maxsize=64)
def affordable_cost(epsilon: Fraction, delta: Fraction) -> float:
    """What draws may cost together, whatever each of them depends on, to keep (epsilon, delta).

    Costs add up, because Gaussian privacy composes in squares (docs/proofs.md, section 23).
    """
    check_delta(delta)
    left = float(epsilon) * (1 - MARGIN) - LATTICE_LOSS
    if left <= 0:
        allowed = f"greater than {LATTICE_LOSS:g} for Gaussian noise"
        raise ParameterError("epsilon", str(epsilon), allowed=allowed, remedy="Choose a larger epsilon.")
    return gaussian_mu(left, float(delta) * (1 - LATTICE_LOSS)) ** 2 * (1 - MARGIN)


def check_delta(delta: Fraction) -> None:
    if delta <= 0:
        raise ParameterError("delta", str(delta), allowed="greater than 0 for Gaussian noise", remedy="Choose 1e-6.")


def _delta_too_small(delta: Fraction | float) -> ParameterError:
    allowed = "large enough to be kept by Gaussian noise at this epsilon"
    return ParameterError("delta", str(delta), allowed=allowed, remedy="Choose a larger delta or noise without one.")


def _readable(scale: float) -> float:
    """Rounded up to six digits, so that equal draws stay equal."""
    digits = 5 - math.floor(math.log10(scale))
    return math.ceil(scale * 10.0**digits) / 10.0**digits


def gaussian_delta(epsilons: FloatArray, mu: float) -> FloatArray:
    """Of one real-valued Gaussian draw whose distance over noise is mu (Balle & Wang 2018, Theorem 8)."""
    return np.asarray(ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons + log_ndtr(-mu / 2 - epsilons / mu)))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Distance over noise at which one real-valued Gaussian draw just keeps (epsilon, delta); at most 100."""
    from scipy.optimize import brentq  # noqa: PLC0415  takes long to import

    def excess(mu: float) -> float:
        return float(gaussian_delta(np.array(epsilon), mu)) - delta

    low, high = 1e-100, 100.0
    if excess(high) <= 0:
        return high
    # A root finder may end on either side of the root: a hair less distance is a hair more noise.
    return float(brentq(excess, low, high, xtol=1e-300, rtol=1e-14, maxiter=1_000)) * (1 - 1e-12)


# ------------------------------------------------------------------------------- draws that look at a few hidden parts


@dataclass(frozen=True, kw_only=True)
class SampledDraw:
    """Integers summed over a few parts of the rows, that are to get discrete Gaussian noise of one scale."""

    scale: float
    squared: int
    """The most by which another content of one part can move the sum, in Euclidean distance, squared."""
    chosen: int
    """Parts that a draw looks at."""
    parts: int
    """Parts that there are."""

    def __post_init__(self) -> None:
        if not 1 <= self.chosen <= self.parts or self.squared < 1:
            raise ParameterError("chosen", self.chosen, allowed=f"from 1 to {self.parts} parts, which a row can move")
        if not MIN_SAMPLED_SCALE <= self.scale < math.inf:
            raise ParameterError("scale", self.scale, allowed=f"at least {MIN_SAMPLED_SCALE:g} steps of the lattice")

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
    width = max(min(SAMPLED_RESOLUTION * epsilon, reach / MIN_CELLS), reach / MAX_CELLS)
    cells = math.ceil(reach / width)
    losses = np.asarray(np.arange(-cells, cells + 1) * width, dtype=np.float64)
    deltas = np.clip(profile(losses, mu, rate), 0.0, 1.0)
    one = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(width, -cells, cells, deltas)
    composed = one.self_compose(times, tail_mass_truncation=TAIL)
    return float(composed.get_delta_for_epsilon(epsilon * (1 - MARGIN))) * (1 + MARGIN)


def profile(epsilons: FloatArray, mu: float, rate: float) -> FloatArray:
    """For each epsilon the smallest delta that is proven for one draw: docs/proofs.md, section 20.

    rate * delta_mu(ln(1 + (exp(epsilon) - 1) / rate)) for epsilon >= 0 (Balle, Barthe & Gaboardi 2018, Theorem 9), and
    1 - exp(epsilon) + exp(epsilon) delta(-epsilon) below, because either table may come first.
    """
    above = np.abs(epsilons)
    inner = above + np.log1p(np.expm1(-above) * (1 - 1 / rate))
    delta = rate * np.maximum(0.0, gaussian_delta(inner, mu))
    return np.where(epsilons >= 0, delta, -np.expm1(np.minimum(epsilons, 0.0)) + np.exp(-above) * delta)


def _reach(mu: float, rate: float) -> float:
    """A loss that one draw exceeds with probability at most the tail.

    delta_mu(x) <= ndtr(mu/2 - x/mu), which is TAIL / rate at the x below; the profile's inner loss is x at the result.
    """
    inner = mu * (mu / 2 - float(ndtri(min(TAIL / rate, 0.5))))
    return inner + math.log(rate + (1 - rate) * math.exp(-inner))


def min_multiplier(rate: float, times: int, epsilon: Fraction, delta: Fraction) -> float:
    """Noise over distance, the smallest found that so many draws need to keep (epsilon, delta)."""
    check_delta(delta)
    return _min_multiplier(rate, times, float(epsilon), float(delta))


@lru_cache(maxsize=256)
def _min_multiplier(rate: float, times: int, epsilon: float, delta: float) -> float:
    # The central limit of sampled draws (Bu, Dong, Long & Su 2020): rate sqrt(times (exp(1/z^2) - 1)) = mu, from below.
    mu = gaussian_mu(epsilon, delta)
    guess = max(MIN_MULTIPLIER, 1 / math.sqrt(math.log1p((mu / rate) ** 2 / times)))
    for raised in range(MAX_SAMPLED_RAISES):
        multiplier = guess * SAMPLED_RAISE**raised
        if _sampled_delta(1 / multiplier, rate, times, epsilon) <= delta:
            return multiplier
    raise _delta_too_small(delta)
