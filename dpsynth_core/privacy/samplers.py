"""How draws are made: OpenDP's exact samplers, and what OpenDP has none for.

Private to ``noise``; everything else draws through a :class:`~dpsynth_core.privacy.noise.Noise`, which keeps accounts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain  # not opendp.prelude, which takes seconds to import
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import enable_features

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.privacy import primitives
from dpsynth_core.privacy.exact import geometric, tail_count
from dpsynth_core.privacy.primitives import Call, SparseNoisy

enable_features("contrib")

VALUES_PER_THREAD = 10_000
"""Draws that justify another thread."""
FLOATS_PER_THREAD = 200_000
"""Uniform numbers that justify another thread."""
COIN_BITS = 62
"""Random bits of a coin that are drawn at once."""
COIN_DOUBT = 2.0**-46
"""Where a coin's bits are this close to its bias, more bits and longer arithmetic decide."""
WIDE_GAUSSIAN = 1_000.0
"""Beyond this scale rounding a real-valued draw differs from the discrete law by less than one part in ten million."""


# ---------------------------------------------------------------------------------------------------- OpenDP's samplers


@lru_cache(maxsize=256)
def opendp_laplace(scale: float) -> Any:
    """OpenDP's measurement that adds discrete Laplace noise of this scale to integers."""
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=256)
def opendp_gaussian(scale: float) -> Any:
    """OpenDP's measurement that adds discrete Gaussian noise of this scale to integers."""
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=256)
def opendp_selection(scale: float, *, exponential: bool) -> Any:
    """OpenDP's measurement that selects an index, by the exponential mechanism or by permute-and-flip."""
    # OpenDP chooses the noise by the measure: under max-divergence make_noisy_max is permute-and-flip; under
    # zero-concentrated divergence it is Gumbel noise, which is the exponential mechanism, here charged as pure.
    measure = zero_concentrated_divergence() if exponential else max_divergence()
    space = vector_domain(atom_domain(T="f64", nan=False)), linf_distance(T="f64")
    return make_noisy_max(*space, measure, scale=scale)


def over_cores(measurement: Any, values: IntArray) -> IntArray:
    """What an OpenDP measurement releases of the values, whatever their shape."""
    if not values.size:
        return values.copy()
    # OpenDP works outside the interpreter's lock, so a long vector is shared out over the cores. It takes arrays as
    # they are; a list would be checked number by number under the lock.
    parts = np.array_split(values.ravel(), min(os.cpu_count() or 1, 1 + values.size // VALUES_PER_THREAD))
    with ThreadPoolExecutor(len(parts)) as pool:
        noisy = list(pool.map(measurement, parts))
    return np.concatenate([np.array(part, dtype=np.int64) for part in noisy]).reshape(values.shape)


# ----------------------------------------------------------------------------------------- simulated noise, not private


def seeded_laplace(generator: np.random.Generator, scale: float, shape: tuple[int, ...]) -> IntArray:
    """Discrete Laplace noise: the difference of two geometric variables is two-sided geometric."""
    first, second = generator.geometric(-math.expm1(-1 / scale), size=(2, *shape))
    return np.asarray(first - second, dtype=np.int64)


def seeded_gaussian(generator: np.random.Generator, scale: float, shape: tuple[int, ...]) -> IntArray:
    """Discrete Gaussian noise, from its table where that is small."""
    if scale > WIDE_GAUSSIAN:
        return np.rint(generator.normal(0, scale, shape)).astype(np.int64)
    reach = math.ceil(12 * scale) + 1
    support = np.arange(-reach, reach + 1)
    cumulated = np.cumsum(np.exp(-(support.astype(np.float64) ** 2) / (2 * scale**2)))
    index = np.searchsorted(cumulated, generator.random(shape) * cumulated[-1], side="right")
    return np.asarray(support[index], dtype=np.int64)


# --------------------------------------------------------------------------------------- what OpenDP has no sampler for


def sample(generator: np.random.Generator, call: Call[Any]) -> Any:
    """A draw that is made from random bits alone."""
    match call:
        case primitives.Decisions():
            return with_empty_cells(generator, call, decided(generator, call))
        case primitives.Smoothed():
            return smoothed_cells(generator, call)
        case primitives.Metropolis():
            return call.walk(generator, call.scale)
        case primitives.UniformIntegers():
            return integers(generator, call.below, call.size)
        case primitives.DistinctIntegers():
            return distinct(generator, call.below, call.size)
        case primitives.UniformFloats():
            return generator.random(call.size)
    raise TypeError(f"nothing draws {call.name}")


def with_empty_cells(
    generator: np.random.Generator, call: primitives.ThresholdedCounts, noisy: IntArray
) -> SparseNoisy:
    """Let the empty cells take part in a draw: Kreačić et al., Algorithm 5, for integers."""
    survivors = tail_count(generator, call.zeros, call.scale, call.threshold)
    # Above a threshold of at least one, the two-sided geometric law is geometric: P(t + k | X >= t) = (1 - a) a^k.
    tail = call.threshold + geometric(generator, call.scale, survivors)
    return SparseNoisy(values=noisy, extra_keys=call.pick(survivors), extra_values=tail)


def decided(generator: np.random.Generator, call: primitives.Decisions) -> IntArray:
    """For listed cells, any value on the right side of the threshold.

    Only the decision is handed out, and OpenDP has no sampler for it: value + noise reaches the threshold with a
    probability that is known in closed form, so one coin of exactly that bias has the same law as drawing the noise.
    """
    return call.threshold - 1 + reaches(generator, call.threshold - call.values, call.scale).astype(np.int64)


def reaches(generator: np.random.Generator, gaps: IntArray, scale: float) -> NDArray[np.bool_]:
    """Whether discrete Laplace noise reaches each gap: coins of bias P(X >= gap), exact for this scale.

    With a = exp(-1/scale), P(X >= k) = a^k / (1 + a) for k >= 1, and P(X >= k) = 1 - P(X >= 1 - k) below.
    """
    above = gaps >= 1
    tails = np.where(above, gaps, 1 - gaps)
    bits = generator.integers(0, 2**COIN_BITS, size=len(gaps))
    bias = np.exp(-tails / scale) / (1 + math.exp(-1 / scale))
    drawn = bits / 2**COIN_BITS
    heads = drawn < bias
    # A uniform number is its bits and infinitely many more. Floats settle the comparison with the bias except within
    # their error: x exp(-x) < 0.4, so `bias` is off by less than 2^-50. There, longer arithmetic settles it.
    for i in np.flatnonzero(np.abs(drawn - bias) < COIN_DOUBT):
        heads[i] = _below_tail(generator, int(bits[i]), int(tails[i]), Fraction(scale))
    return np.asarray(heads == above, dtype=np.bool_)


def _below_tail(generator: np.random.Generator, bits: int, tail: int, scale: Fraction) -> bool:
    """Whether the uniform number that starts with these bits lies below a^tail / (1 + a), with as many as it takes."""
    length = COIN_BITS
    while True:
        length += 64
        bits = bits << 64 | int.from_bytes(generator.bytes(8), "little")
        with localcontext(prec=length) as context:
            rate = Decimal(scale.denominator) / scale.numerator
            bias = (-tail * rate).exp() / (1 + (-rate).exp())
            # `length` decimal digits are more than three times `length` bits, so this doubt covers every rounding.
            doubt = context.scaleb(Decimal(1), -length // 2)
            low, high = Decimal(bits) / 2**length, Decimal(bits + 1) / 2**length
        if high < bias - doubt:
            return True
        if low > bias + doubt:
            return False


def smoothed_cells(generator: np.random.Generator, call: primitives.Smoothed) -> IntArray:
    """Each draw is a row's own cell with probability n q / (n q + K p) for alpha = p/q, else uniform over K cells."""
    p, q, rows = call.alpha.numerator, call.alpha.denominator, int(call.values.sum())
    from_rows = _bernoulli(generator, Fraction(rows * q, rows * q + math.prod(call.shape) * p), call.draws)
    out = np.column_stack([generator.integers(0, size, size=call.draws) for size in call.shape])
    row = generator.integers(0, rows, size=int(from_rows.sum()))
    out[from_rows] = call.keys[np.searchsorted(np.cumsum(call.values), row, side="right")]
    return out


def _bernoulli(generator: np.random.Generator, probability: Fraction, size: int) -> NDArray[np.bool_]:
    """Independent coins of an exactly rational bias: some random bits decide, more only where those tie."""
    scaled = probability * 2**COIN_BITS
    cut = math.floor(scaled)
    drawn = generator.integers(0, 2**COIN_BITS, size=size)
    heads = drawn < cut
    ties = np.flatnonzero(drawn == cut)
    if len(ties) and scaled != cut:
        heads[ties] = _bernoulli(generator, scaled - cut, len(ties))
    return np.asarray(heads, dtype=np.bool_)


def integers(generator: np.random.Generator, below: int, size: int) -> NDArray[Any]:
    """Uniform integers from 0 to ``below - 1``; Python's own beyond 63 bits."""
    if below < 2**63:
        return generator.integers(0, below, size=size)
    return np.array([_big_integer(generator, below) for _ in range(size)], dtype=object)


def uniform(generators: Sequence[np.random.Generator], size: int) -> FloatArray:
    """Uniform numbers from [0, 1), many of them by several generators at once."""
    threads = min(len(generators), 1 + size // FLOATS_PER_THREAD)
    if threads == 1:
        return generators[0].random(size)
    out = np.empty(size)
    parts = zip(generators[:threads], np.array_split(out, threads), strict=True)
    with ThreadPoolExecutor(threads) as pool:
        for filled in [pool.submit(generator.random, out=part) for generator, part in parts]:
            filled.result()
    return out


def distinct(generator: np.random.Generator, below: int, size: int) -> NDArray[Any]:
    """Different uniform integers from 0 to ``below - 1``; Python's own beyond 63 bits."""
    if below < 2**63:
        return generator.choice(below, size=size, replace=False)
    draws: dict[int, None] = {}
    while len(draws) < size:
        draws[_big_integer(generator, below)] = None
    return np.array(list(draws), dtype=object)


def _big_integer(generator: np.random.Generator, below: int) -> int:
    """A uniform Python int of any size, by rejection."""
    bits = (below - 1).bit_length()
    while True:
        draw = int.from_bytes(generator.bytes(-(-bits // 8)), "little") >> (-bits % 8)
        if draw < below:
            return draw
