"""Multiplicative weights with the exponential mechanism (Hardt, Ligett & McSherry 2012), stage by stage."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.mwem.workload import Workload
from dpsynth_core.privacy.noise import Noise

Correction: TypeAlias = Literal["relative", "paper"]
SELECTION, MEASUREMENT = "which queries to measure", "counts of the selected queries"
GRID = 2.0**16
"""Weights enter scores as multiples of 1/GRID: sums of them are exact, so that scores have exactly the sensitivity that
is claimed and no rounding error comes on top."""
CONVERGED = 1e-5
"""Updates that change no weight by more than this share are not repeated."""
TINY = 1e-300
"""Keeps a relative correction defined where both counts are zero; smaller weights do not exist."""
MAX_SUGGESTED_ROUNDS = 40
"""More rounds than this are slow and hardly ever better."""


@dataclass(frozen=True, kw_only=True)
class MeasuredQuery:
    query: int
    values: FloatArray
    """Noisy counts, clipped to between 0 and the number of rows."""


def select_query(
    workload: Workload,
    histogram: IntArray,
    weights: FloatArray,
    noise: Noise,
    *,
    epsilon: Fraction,
    measuring: Fraction,
    taken: Collection[int] = (),
) -> int:
    """A query that the weights answer badly, by the exponential mechanism; never one that was taken before.

    The score is the L1 error of the answer less the error that the noise of measuring it with ``measuring`` would
    bring (a public number), so that a large marginal is not preferred for its size. One replaced row changes an answer
    by at most ``workload.sensitivity`` in L1, hence also its distance to the fixed answer of the weights.
    """
    left = np.setdiff1d(np.arange(len(workload)), np.fromiter(taken, dtype=np.int64, count=len(taken)))
    errors = workload.norms(histogram - np.rint(weights * GRID) / GRID)
    penalty = np.rint(workload.sizes * (float(workload.sensitivity / measuring) * GRID)) / GRID
    # Beyond every possible gain the penalty does not matter, and scores stay where floats are exact.
    scores = errors - np.minimum(penalty, 2.0 * histogram.sum())
    index = noise.exponential(scores[left], sensitivity=workload.sensitivity, epsilon=epsilon, label=SELECTION)
    return int(left[index])


def measure_query(
    workload: Workload, histogram: IntArray, noise: Noise, *, query: int, epsilon: Fraction
) -> MeasuredQuery:
    """A query's counts plus discrete Laplace noise of scale sensitivity/epsilon."""
    exact = workload.answer(histogram, query)
    noisy = noise.laplace(exact, sensitivity=workload.sensitivity, epsilon=epsilon, label=MEASUREMENT)
    # n is public, so counts that the noise moved out of range can be clipped.
    return MeasuredQuery(query=query, values=np.clip(noisy, 0, histogram.sum()).astype(np.float64))


def reweigh(
    workload: Workload,
    weights: FloatArray,
    measured: Sequence[MeasuredQuery],
    *,
    rows: int,
    passes: int,
    correction: Correction,
) -> FloatArray:
    """The newest measurement once, then all of them in turn: w(x) <- w(x) exp(q(x) (m - q(w)) / 2n), sum n.

    Repeating them costs nothing, because they are already paid for (Hardt et al., section 3.3). With a relative
    correction the error is divided by the larger of m and q(w) instead of n: the same fixed point, sooner.
    """
    fitted = weights.copy()
    _update(workload, fitted, measured[-1], rows, correction)
    for _ in range(passes):
        if max(_update(workload, fitted, each, rows, correction) for each in measured) < CONVERGED:
            break
    fitted *= rows / fitted.sum()
    return fitted


def _update(
    workload: Workload, weights: FloatArray, measured: MeasuredQuery, rows: int, correction: Correction
) -> float:
    """One multiplicative update in place; returns the largest change of a logarithm."""
    answer = workload.answer(weights, measured.query)
    scale = rows if correction == "paper" else np.maximum(np.maximum(measured.values, answer), TINY)
    change = (measured.values - answer) / (2 * scale)
    factors = np.exp(change)
    if workload.partitions:  # counts that are added up anew in every update: their rounding errors do not grow
        workload.scale(weights, measured.query, factors * (rows / float(answer @ factors)))
    else:
        workload.scale(weights, measured.query, factors)
        weights *= rows / weights.sum()
    return float(np.abs(change).max())


def suggested_rounds(rows: int, epsilon: float, cells: int, queries: int) -> int:
    """Rounds that balance the two terms of Hardt et al.'s Theorem 2.2, 2n sqrt(ln|X| / T) + 10 T ln|Q| / epsilon.

    Setting the derivative to zero gives T^(3/2) = n epsilon sqrt(ln|X|) / (10 ln|Q|).
    """
    balance: float = rows * epsilon * math.sqrt(math.log(max(cells, 2))) / (10 * math.log(max(queries, 2)))
    return max(1, min(queries, MAX_SUGGESTED_ROUNDS, round(math.pow(balance, 2 / 3))))
