"""Groups of bins: a coarser view of a column, for pairs, chosen from noisy counts alone."""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.bins import Bins


def grouped(bins: Bins, counts: FloatArray, most: int) -> IntArray:
    """The group of each bin: at most ``most`` of them, runs of about equal mass for ordered bins.

    Unordered categories keep a group each while they are among the largest; the others share the last one. Missing
    values have a group of their own among ordered bins and count as one more category otherwise.
    """
    size = len(counts)
    if size <= most:
        return np.arange(size)
    if not bins.ordered:
        rank = np.empty(size, dtype=np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(size)
        return np.minimum(rank, most - 1)
    values = len(bins.edges) - 1
    groups = np.empty(size, dtype=np.int64)
    groups[:values] = _runs(counts[:values], max(1, most - (size - values)))
    groups[values:] = groups[values - 1] + 1
    return groups


def _runs(counts: FloatArray, most: int) -> IntArray:
    """Consecutive runs; a new one begins where the mass so far is nearest to the next multiple of an equal share."""
    total = counts.sum()
    if total <= 0:
        return np.arange(len(counts)) * most // len(counts)
    middle = np.cumsum(counts) - counts / 2
    groups = np.minimum((middle * most / total).astype(np.int64), most - 1)
    _, dense = np.unique(groups, return_inverse=True)
    return dense.astype(np.int64)
