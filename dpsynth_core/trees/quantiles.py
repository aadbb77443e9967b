"""Quantiles of many values without sorting them all."""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.jit import compiled

_BUCKETS = 1024
_ENOUGH = 512
"""Values from which on this is quicker than sorting."""
_CROWDED = 64
"""Values in a bucket beyond which sorting all of them is quicker."""


def quick_quantiles(values: FloatArray, bins: int) -> tuple[float, FloatArray] | None:
    """The least value, and those at ranks ceil(k n / bins), each once.

    None where that takes sorting: few values, missing or infinite ones, no more different ones than ``bins``, many
    close together.
    """
    if len(values) < max(_ENOUGH, bins):
        return None
    least, found = _select(values, bins)
    return (least, found) if len(found) else None


@compiled
def _select(values: FloatArray, bins: int) -> tuple[float, FloatArray]:
    """All values go into equal buckets, and only the buckets that hold a rank are sorted."""
    nothing = np.empty(0)
    least, largest, total = values[0], values[0], 0.0
    for value in values:
        least, largest = min(least, value), max(largest, value)
        total += value
    scale = _BUCKETS / (largest - least) if largest > least else np.inf
    if not (np.isfinite(total) and 0.0 < scale < np.inf):
        return least, nothing
    # Rounding never turns the order of two values round, so a bucket holds what lies between its neighbours.
    bucket = np.empty(len(values), np.uint16)
    ends = np.zeros(_BUCKETS + 1, np.int64)
    for row in range(len(values)):
        here = np.uint16(min((values[row] - least) * scale, _BUCKETS - 1.0))
        bucket[row] = here
        ends[here + 1] += 1
    if (ends > 0).sum() <= bins:
        return least, nothing
    for b in range(_BUCKETS):
        ends[b + 1] += ends[b]
    ordered, free = np.empty(len(values)), ends[:-1].copy()
    for row in range(len(values)):
        here = bucket[row]
        ordered[free[here]] = values[row]
        free[here] += 1
    found, size, b, ready = np.empty(bins), 0, 0, -1
    for k in range(1, bins + 1):
        rank = -(-k * len(values) // bins) - 1
        while ends[b + 1] <= rank:
            b += 1
        if b > ready:
            if ends[b + 1] - ends[b] > _CROWDED:
                return least, nothing
            _sort(ordered[ends[b] : ends[b + 1]])
            ready = b
        if size == 0 or ordered[rank] > found[size - 1]:
            found[size] = ordered[rank]
            size += 1
    return least, found[:size]


@compiled
def _sort(values: FloatArray) -> None:
    """By insertion: a few values, in place."""
    for i in range(1, len(values)):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
