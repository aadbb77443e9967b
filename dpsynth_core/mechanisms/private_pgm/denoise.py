"""Noisy counts brought back to what counts can be: post-processing, free of charge.

The number of rows is public, counts are not negative, and small categories or neighbouring bins of a number are more
alike than their noisy counts suggest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm.pieces import averaged_pieces
from dpsynth_core.mechanisms.simplex import project_to_simplex

SMALL_STDS = 3.0
"""Standard deviations of noise below which a category's own noisy count says little."""
PATIENCE = 3
"""Times that all bins which are on the wrong side change it although they have not become fewer; then one at a time."""
ROUNDING_ERROR = 1e-10
"""Relative to the largest value, what counts as negative."""
MAX_PIVOTS = 100
"""Corrections of the guess, beside one for each bin: rounding could make it go round in circles, noise cannot."""
SUM_STDS = 1e-2
"""Noise of the public number of rows, in units of a bin's: next to none."""


@dataclass(frozen=True, kw_only=True)
class CoarseCounts:
    """Noisy counts of parts that bins lie in, wholly or partly."""

    parts: FloatArray
    """A row for each part: the fraction of each bin that lies in it."""
    values: FloatArray
    std: float


def precision(size: int, std: float, coarser: Sequence[CoarseCounts]) -> FloatArray:
    """The inverse of the covariance of bins that were counted themselves and in coarser parts (least squares)."""
    of_bins = np.eye(size) / std**2 + 1 / (size * (SUM_STDS * std) ** 2)
    return np.asarray(sum((each.parts.T @ each.parts / each.std**2 for each in coarser), start=of_bins))


def _with_sum(values: FloatArray, total: float) -> FloatArray:
    """The nearest vector with this sum: what is missing, in equal parts."""
    return np.asarray(values + (total - values.sum()) / values.size)


def category_counts(noisy: FloatArray, std: float, total: float) -> FloatArray:
    """Counts of unordered categories.

    Small ones are shrunk towards their common mean, by as much as the noise explains of how they differ (empirical
    Bayes); their common total comes from the unbiased sum, so that many empty ones do not add up to something.
    """
    values = _with_sum(noisy, total)
    small = values < SMALL_STDS * std
    if small.sum() < 3 or small.all():
        return project_to_simplex(values, total)
    held = min(max(0.0, float(values[small].sum())), total)
    variance = float(np.var(values[small]))
    weight = max(0.0, 1 - std**2 / variance) if variance > 0 else 0.0
    out = np.empty_like(values)
    out[small] = project_to_simplex(held / small.sum() + weight * (values[small] - values[small].mean()), held)
    out[~small] = project_to_simplex(_with_sum(values[~small], total - held), total - held)
    return out


def ordered_counts(
    noisy: FloatArray, widths: FloatArray, std: float, total: float, coarser: Sequence[CoarseCounts] = ()
) -> FloatArray:
    """Counts of consecutive bins, followed by whatever has no position among them (missing values).

    Bins are smoothed by an average over all ways to cut them into pieces of constant density, so that one that saves
    less squared error than its noise costs counts for little (after NoiseFirst, Xu et al. 2013). Counts of coarser
    parts know the sums of many bins far better than the bins do, and correct them by least squares.
    """
    values = _with_sum(noisy, total)
    values[: len(widths)] = averaged_pieces(values[: len(widths)], widths, std)
    return project_to_simplex(_with_coarser(values, std, total, coarser) if coarser else values, total)


def _with_coarser(values: FloatArray, std: float, total: float, coarser: Sequence[CoarseCounts]) -> FloatArray:
    """The counts that fit best, none below zero, in units of the noise.

    That bins are not negative must be said together with what is known of their sums: where noise alone put rows into
    nearly empty parts, other parts are short of them, not many bins of one part.
    """
    weighted = values / std**2 + total / (len(values) * (SUM_STDS * std) ** 2)
    for each in coarser:
        weighted = weighted + each.parts.T @ (each.values / each.std**2)
    return nonnegative_solution(precision(len(values), std, coarser), weighted)


def nonnegative_solution(gram: FloatArray, wanted: FloatArray) -> FloatArray:
    """The x >= 0 for which x' gram x / 2 - wanted' x is smallest; gram must be positive definite.

    Block principal pivoting (Portugal, Judice & Vicente 1994): a guess which x are free and which are zero, solved, and
    corrected wherever a free one comes out negative or a zero one would better be positive. It takes a few solutions
    where an active set that grows by one bin at a time takes one for every bin.
    """
    free = np.ones(len(wanted), dtype=bool)
    fewest, patience = len(wanted) + 1, PATIENCE
    x = np.zeros(len(wanted))
    for _ in range(MAX_PIVOTS + len(wanted)):
        x = np.zeros(len(wanted))
        x[free] = np.linalg.solve(gram[np.ix_(free, free)], wanted[free])
        slope = gram @ x - wanted
        wrong = np.where(free, x < -ROUNDING_ERROR * np.abs(x).max(), slope < -ROUNDING_ERROR * np.abs(wanted).max())
        count = int(wrong.sum())
        if not count:
            break
        if count < fewest:
            fewest, patience = count, PATIENCE
        elif patience:
            patience -= 1
        else:  # Murty's rule, which always ends.
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return np.maximum(x, 0.0)
