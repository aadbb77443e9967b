"""Exact draws from random bits: counts and sizes of what noise lifts over a threshold, decided by no float.

A uniform number is its first bits and infinitely many more, drawn when they are needed. Floats settle where it lies
except within their error, for which there is a bound; there, longer arithmetic and more bits settle it. So every
outcome has exactly the probability of its law, however small (docs/proofs.md, section 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.privacy.laplace import laplace_tail

BITS = 62
"""Random bits of a uniform number that are drawn at once."""
EPSILON = 2.0**-50
"""Relative error of a few operations on doubles; each of those used here is off by less than 2^-52."""
MAX_EXACT = 2**52
"""Whole numbers up to twice this are doubles."""
MIN_TAIL = 1e-280
"""Below this a probability is handled by its logarithm."""
BLOCK = 2**20
"""Draws that are made at a time, so that memory stays bounded."""


def geometric(generator: np.random.Generator, scale: float, size: int) -> IntArray:
    """P(k) = (1 - a) a^k with a = exp(-1/scale): by how much discrete Laplace noise exceeds what it exceeds.

    The largest k with U <= a^k, that is floor(-scale ln U).
    """
    bits = generator.integers(0, 2**BITS, size=size)
    low, high = _waits(bits, 1 / scale, 4 * EPSILON)
    drawn = np.floor(low)
    for i in np.flatnonzero(drawn != np.floor(high)):
        uniform = _Uniform(generator=generator, bits=int(bits[i]), length=BITS)
        drawn[i] = uniform.wait(lambda: Decimal(Fraction(scale).denominator) / Fraction(scale).numerator)
    return drawn.astype(np.int64)


def tail_count(generator: np.random.Generator, trials: int, scale: float, threshold: int) -> int:
    """How many of so many discrete Laplace variables reach a threshold of at least one: binomial, exactly.

    The trials between two that reach it are geometric, so those that do are counted without looking at the others.
    """
    rate, unit = _tail_rate(trials, scale, threshold)
    # exp(-threshold/scale) is as far off as its argument is, which grows with it.
    error = (threshold / scale + math.log(trials + 1) + 16) * EPSILON
    bits: list[IntArray] = []
    low = high = 0.0
    count = 0
    while True:
        expected = max(0.0, trials / unit - low) * rate
        size = min(BLOCK, 16 + int(expected + 6 * math.sqrt(expected)))
        bits.append(generator.integers(0, 2**BITS, size=size))
        shortest, longest = _waits(bits[-1], rate, error)
        if unit == 1:  # whole numbers, whose sums are exact
            lows, highs = np.cumsum(np.floor(shortest) + 1), np.cumsum(np.floor(longest) + 1)
        else:  # x <= floor(x) + 1 <= x + 1, and a sum of doubles is off by less than their number times 2^-53
            rounding = (count + size) * 2.0**-52
            lows, highs = np.cumsum(shortest) * (1 - rounding), np.cumsum(longest + 2.0 / MAX_EXACT) * (1 + rounding)
        lows, highs = low + lows, high + highs
        sure, possible = (int(np.searchsorted(sums, trials / unit, "right")) for sums in (highs, lows))
        if sure != possible:
            return _counted_exactly(generator, bits, trials, Fraction(scale), threshold)
        count += sure
        if sure < size:
            return count
        low, high = float(lows[-1]), float(highs[-1])


def _tail_rate(trials: int, scale: float, threshold: int) -> tuple[float, int]:
    """-ln(1 - P(X >= threshold)) for one trial, or for all of them as one unit where they are too many for a double."""
    tail = laplace_tail(scale, threshold)
    if trials < MAX_EXACT:
        return -math.log1p(-tail), 1
    if tail > MIN_TAIL and trials < 1 / MIN_TAIL:
        return -math.log1p(-tail) * trials, trials
    return math.exp(math.log(trials) - threshold / scale - math.log1p(math.exp(-1 / scale))), trials


def _waits(bits: IntArray, rate: float, error: float) -> tuple[FloatArray, FloatArray]:
    """Bounds on -ln(U) / rate for uniform numbers that begin with these bits."""
    with np.errstate(divide="ignore", over="ignore"):  # all bits zero, or hardly ever: no upper bound yet
        shortest = -np.log((bits + 1.0) / 2.0**BITS) / rate
        longest = -np.log(bits / 2.0**BITS) / rate
    return np.maximum(shortest * (1 - error) - error, 0.0), longest * (1 + error) + error


@dataclass(kw_only=True)
class _Uniform:
    """A uniform number of which some bits are known."""

    generator: np.random.Generator
    bits: int
    length: int

    def wait(self, rate: Callable[[], Decimal]) -> int:
        """floor(-ln(U) / rate), with as many bits and digits as it takes; the rate is asked for at each precision."""
        while True:
            self.bits = self.bits << 64 | int.from_bytes(self.generator.bytes(8), "little")
            self.length += 64
            with localcontext(Context(prec=2 * self.length, Emax=10**9, Emin=-(10**9))) as context:
                slope, unit = rate(), Decimal(2) ** self.length
                # Twice as many digits as bits: this doubt covers every rounding.
                doubt = context.scaleb(Decimal(1), -self.length // 2)
                if not self.bits:
                    continue
                shortest = -((Decimal(self.bits) + 1) / unit).ln() / slope - doubt
                longest = -(Decimal(self.bits) / unit).ln() / slope + doubt
                first, last = (int(x.to_integral_value(ROUND_FLOOR)) for x in (shortest, longest))
            if max(first, 0) == last:
                return last


def _counted_exactly(
    generator: np.random.Generator, bits: list[IntArray], trials: int, scale: Fraction, threshold: int
) -> int:
    """The same count from the same bits, trial by trial in whole numbers."""

    def rate() -> Decimal:
        inverse = Decimal(scale.denominator) / scale.numerator
        tail = (-threshold * inverse).exp() / (1 + (-inverse).exp())
        return -(1 - tail).ln()

    used = count = 0
    known = iter(np.concatenate(bits).tolist())
    while True:
        more = next(known, None)
        start = int(generator.integers(0, 2**BITS)) if more is None else int(more)
        used += 1 + _Uniform(generator=generator, bits=start, length=BITS).wait(rate)
        if used > trials:
            return count
        count += 1
