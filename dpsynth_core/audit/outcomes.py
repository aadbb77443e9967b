"""What a paid draw can come to on two neighbouring tables, and with which exact probabilities.

Integers beyond all counts need not be told apart: below the smaller and above the larger of two neighbouring counts the
ratio of their probabilities does not change, so a tail is one outcome and few outcomes are exhaustive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.privacy.primitives import (
    Decisions,
    Exponential,
    Laplace,
    PaidCall,
    PermuteAndFlip,
    Smoothed,
    SparseLaplace,
    SparseNoisy,
    ThresholdedCounts,
)

MAX_CELLS = 12
MAX_CANDIDATES = 600
MAX_SEQUENCES = 3_000
"""Sequences of cells that smoothed counts may lead to."""

Selection: TypeAlias = Exponential | PermuteAndFlip


class NotEnumerableError(Exception):
    """Too many outcomes, or a draw whose outcomes cannot be listed."""


@dataclass(frozen=True, kw_only=True)
class Option:
    value: Any
    """What the mechanism gets: an array, an index, or the noisy value of every cell by key."""
    first: float
    second: float

    @property
    def loss(self) -> float:
        """How much the outcome speaks for the first table."""
        return self.first - self.second


APART = Option(value=None, first=0.0, second=-math.inf)
"""Other cells or candidates take part: that alone tells the tables apart."""


def options(first: PaidCall[Any], second: PaidCall[Any]) -> Iterator[Option]:
    match first, second:
        case Laplace() as x, Laplace() as y:
            return _dense(x, y)
        case (SparseLaplace() | Decisions()) as x, (SparseLaplace() | Decisions()) as y:
            return _sparse(x, y)
        case Exponential() as x, Exponential() as y:
            return _selection(exponential_law, x, y)
        case PermuteAndFlip() as x, PermuteAndFlip() as y:
            return _selection(permute_and_flip_law, x, y)
        case Smoothed() as x, Smoothed() as y:
            return _smoothed(x, y)
    raise NotEnumerableError(f"the outcomes of {first.name} cannot be listed")


def output_of(call: PaidCall[Any], value: Any) -> Any:
    """An outcome as the sampler would return it on this call's table."""
    if not isinstance(call, ThresholdedCounts):
        return value
    listed = call.keys.tolist()
    extra = {key: noisy for key, noisy in value.items() if key not in set(listed) and noisy >= call.threshold}
    return SparseNoisy(
        values=np.array([value[key] for key in listed], dtype=np.int64),
        extra_keys=np.array(list(extra), dtype=call.keys.dtype),
        extra_values=np.array(list(extra.values()), dtype=np.int64),
    )


# ------------------------------------------------------------------------------------------------------------- counts


def log_tail(scale: float, least: int) -> float:
    """Ln P(DLap(scale) >= least), accurate in both tails."""
    a = math.exp(-1 / scale)
    if least >= 1:
        return -least / scale - math.log1p(a)
    return math.log1p(-math.exp((least - 1) / scale) / (1 + a))


def log_interval(scale: float, low: float, high: float) -> float:
    """Ln P(low <= DLap(scale) <= high); the ends may be infinite."""
    if high == math.inf:
        return 0.0 if low == -math.inf else log_tail(scale, int(low))
    if low == -math.inf:
        return log_tail(scale, -int(high))  # by symmetry
    if low > 0:
        above = log_tail(scale, int(low))
        return above + math.log1p(-math.exp(log_tail(scale, int(high) + 1) - above))
    if high < 0:
        return log_interval(scale, -high, -low)
    return math.log1p(-math.exp(log_tail(scale, int(high) + 1)) - math.exp(log_tail(scale, 1 - int(low))))


def _cell(x: int, y: int, scale: float, other_scale: float, starts: set[int]) -> list[tuple[int, float, float]]:
    """Intervals of a noisy count that begin at these values: a value in each, and its probability on both tables."""
    edges = [-math.inf, *sorted(starts), math.inf]
    intervals = [(a, b - 1) for a, b in pairwise(edges)]
    return [
        (int(a if math.isfinite(a) else b), log_interval(scale, a - x, b - x), log_interval(other_scale, a - y, b - y))
        for a, b in intervals
        if math.isfinite(a) or math.isfinite(b)
    ] or [(x, 0.0, 0.0)]


def _told_apart(x: int, y: int) -> set[int]:
    """Where the ratio of the two tables' probabilities changes: between the smaller and the larger count."""
    return {*range(min(x, y) + 1, max(x, y) + 1)}


def _joint(cells: dict[Any, list[tuple[int, float, float]]]) -> Iterator[Option]:
    if len(cells) > MAX_CELLS:
        raise NotEnumerableError(f"{len(cells)} cells take part in one draw")
    for chosen in product(*cells.values()):
        yield Option(
            value={key: value for key, (value, _, _) in zip(cells, chosen, strict=True)},
            first=sum(p for _, p, _ in chosen),
            second=sum(q for _, _, q in chosen),
        )


def _dense(first: Laplace, second: Laplace) -> Iterator[Option]:
    shape = first.values.shape
    if second.values.shape != shape:
        yield APART
        return
    pairs = zip(first.values.ravel().tolist(), second.values.ravel().tolist(), strict=True)
    cells = {i: _cell(x, y, first.scale, second.scale, _told_apart(x, y)) for i, (x, y) in enumerate(pairs)}
    for option in _joint(cells):
        yield replace(option, value=np.array(list(option.value.values()), dtype=np.int64).reshape(shape))


def _sparse(first: ThresholdedCounts, second: ThresholdedCounts) -> Iterator[Option]:
    x, y = _every_cell(first), _every_cell(second)
    if x.keys() != y.keys():
        yield APART
        return
    # Of a decision nothing is handed out but on which side of the threshold the noisy value lies.
    finer = not isinstance(first, Decisions)
    starts = {key: {first.threshold} | (_told_apart(x[key], y[key]) if finer else set()) for key in sorted(x)}
    yield from _joint({key: _cell(x[key], y[key], first.scale, second.scale, starts[key]) for key in starts})


def _every_cell(call: ThresholdedCounts) -> dict[Any, int]:
    cells = len(call.keys) + call.zeros
    if cells > MAX_CELLS:
        raise NotEnumerableError(f"{cells} cells take part in one draw")
    hidden = call.pick(call.zeros).tolist() if call.zeros else []
    return dict.fromkeys(hidden, 0) | call.counts()


# --------------------------------------------------------------------------------------------------------- selections


def exponential_law(scores: FloatArray, scale: float) -> FloatArray:
    """P(i) proportional to exp(score / scale)."""
    weights = np.exp((scores - scores.max()) / scale)
    return np.asarray(weights / weights.sum())


def permute_and_flip_law(scores: FloatArray, scale: float) -> FloatArray:
    """Candidates in random order, the first whose coin of bias q = exp((score - best) / scale) shows heads.

    Let every candidate come at a uniform time t: P(i) = q_i times the integral of the product of 1 - t q_j, j != i.
    The integrand is a polynomial, which Gauss-Legendre integrates exactly with half as many points as candidates.
    """
    heads = np.exp((scores - scores.max()) / scale)
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    times = (nodes + 1) / 2
    tails = 1 - times[:, None] * heads  # never zero: times lie strictly between 0 and 1
    return np.asarray(heads * (weights / 2 @ (tails.prod(axis=1)[:, None] / tails)))


def _selection(law: Callable[[FloatArray, float], FloatArray], first: Selection, second: Selection) -> Iterator[Option]:
    if len(first.scores) > MAX_CANDIDATES:
        raise NotEnumerableError(f"{len(first.scores)} candidates")
    if len(first.scores) != len(second.scores):
        yield APART
        return
    p, q = law(first.scores, first.scale), law(second.scores, second.scale)
    for i in range(len(p)):
        yield Option(value=i, first=math.log(p[i]), second=math.log(q[i]))


# ---------------------------------------------------------------------------------------------------- smoothed counts


def _smoothed(first: Smoothed, second: Smoothed) -> Iterator[Option]:
    """Sequences of cells, each with probability (count + alpha) / (n + K alpha), in exact arithmetic."""
    draws, every = first.draws, list(product(*(range(size) for size in first.shape)))
    if len(every) ** draws > MAX_SEQUENCES:
        raise NotEnumerableError(f"{len(every)}^{draws} sequences")
    laws = [_smoothed_law(call, every) for call in (first, second)]
    for indices in product(range(len(every)), repeat=draws):
        p, q = (math.prod((law[i] for i in indices), start=Fraction(1)) for law in laws)
        cells = np.array([every[i] for i in indices], dtype=np.int64).reshape(draws, len(first.shape))
        yield Option(value=cells, first=math.log(p), second=math.log(q))


def _smoothed_law(call: Smoothed, every: list[tuple[int, ...]]) -> list[Fraction]:
    counts = call.counts()
    total = sum(counts.values()) + len(every) * call.alpha
    return [(counts.get(cell, 0) + call.alpha) / total for cell in every]
