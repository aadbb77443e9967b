"""Noisy counts brought back to what counts can be: post-processing, free of charge.

The number of rows is public, counts are not negative, small categories are alike more often than the noise says, and
neighbouring bins of a number are.
"""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray

SMALL = 3.0
"""Standard deviations of noise below which a category's own noisy count says little."""
PIECE_PRICE = 2.0
"""Squared error, in units of the noise variance, that one more piece must save: Mallows' criterion."""


def to_simplex(values: FloatArray, total: float) -> FloatArray:
    """The nearest vector of non-negative numbers with this sum, by Euclidean distance (Held, Wolfe & Crowder 1974).

    Example:
        >>> to_simplex(np.array([3.0, 1.0, -2.0]), 2.0).tolist()
        [2.0, 0.0, 0.0]
    """
    if total <= 0:
        return np.zeros_like(values)
    ordered = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    last = np.flatnonzero(ordered > excess)
    # With huge values rounding may leave no index; the largest value then takes everything.
    return np.asarray(np.maximum(values - excess[last[-1] if len(last) else 0], 0.0))


def summing_to(values: FloatArray, total: float) -> FloatArray:
    """The nearest vector with this sum: what is missing, in equal parts."""
    return np.asarray(values + (total - values.sum()) / values.size)


def category_counts(noisy: FloatArray, deviation: float, total: float) -> FloatArray:
    """Counts of unordered categories.

    Small ones are drawn towards their common mean, by as much as the noise explains of how they differ (empirical
    Bayes); what they hold together comes from the unbiased sum, so that many empty ones do not add up to something.
    """
    values = summing_to(noisy, total)
    small = values < SMALL * deviation
    if small.sum() < 3 or small.all():
        return to_simplex(values, total)
    held = min(max(0.0, float(values[small].sum())), total)
    spread = float(np.var(values[small]))
    trust = max(0.0, 1 - deviation**2 / spread) if spread > 0 else 0.0
    out = np.empty_like(values)
    out[small] = to_simplex(held / small.sum() + trust * (values[small] - values[small].mean()), held)
    out[~small] = to_simplex(summing_to(values[~small], total - held), total - held)
    return out


def ordered_counts(noisy: FloatArray, widths: FloatArray, deviation: float, total: float) -> FloatArray:
    """Counts of consecutive bins, then of whatever has no place among them (missing values).

    Bins are joined into pieces of constant density where that saves less squared error than one more piece's noise
    costs (NoiseFirst, Xu et al. 2013, with Mallows' penalty), by dynamic programming over the last piece.
    """
    values = summing_to(noisy, total)
    values[: len(widths)] = _pieces(values[: len(widths)], widths, PIECE_PRICE * deviation**2)
    return to_simplex(values, total)


def _pieces(values: FloatArray, widths: FloatArray, price: float) -> FloatArray:
    size = len(values)
    squares, cross, own = (
        np.insert(np.cumsum(part), 0, 0.0) for part in (widths**2, values * widths, values**2)
    )  # fmt: skip
    best, start = np.zeros(size + 1), np.zeros(size + 1, dtype=np.int64)
    for end in range(1, size + 1):
        first = np.arange(end)
        left = own[end] - own[first] - (cross[end] - cross[first]) ** 2 / (squares[end] - squares[first])
        cost = best[first] + left + price
        start[end] = int(np.argmin(cost))
        best[end] = cost[start[end]]
    fitted, end = np.empty(size), size
    while end:
        first_ = int(start[end])
        density = (cross[end] - cross[first_]) / (squares[end] - squares[first_])
        fitted[first_:end] = density * widths[first_:end]
        end = first_
    return fitted


def shrunk_towards(noisy: FloatArray, prior: FloatArray, deviation: float) -> tuple[FloatArray, float]:
    """A noisy table drawn towards what was expected, by as much as noise explains of the difference (James & Stein).

    Returns the table and the weight that the noisy one kept.
    """
    apart = noisy - prior
    distance = float((apart**2).sum())
    weight = max(0.0, 1 - noisy.size * deviation**2 / distance) if distance > 0 else 0.0
    return prior + weight * apart, weight
