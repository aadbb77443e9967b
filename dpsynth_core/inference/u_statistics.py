"""U of many tables of untied values at once, by one sort of whole numbers."""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray

_VALUE_BITS = 38


def u_of_rows(values: FloatArray, first: int, *, lower: float, upper: float) -> IntArray:
    """2 U1 for each line of ``values``, the first ``first`` entries of which are the first group.

    Values are told apart to one part in 2^38 of the range, beyond which order is arbitrary.
    """
    tables, n = values.shape
    share = np.clip((values - lower) / (upper - lower), 0.0, 1.0)
    fine = np.minimum((share * 2.0**_VALUE_BITS).astype(np.int64), 2**_VALUE_BITS - 1)
    is_first = np.arange(n) < first
    key = np.arange(tables)[:, None] << (_VALUE_BITS + 1) | fine << 1 | is_first
    return _won(key.ravel(), np.full(tables, n))


def u_within_cells(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> IntArray:
    """2 U1 for each table of counts when rows lie anywhere in their cells, so that nothing is tied."""
    counts = np.stack([second, first], axis=2).astype(np.int64)
    which = np.repeat(np.arange(counts.size), counts.ravel())  # (table, cell, group) of each row
    fine = rng.integers(0, 2**_VALUE_BITS, size=len(which))
    key = which >> 1 << (_VALUE_BITS + 1) | fine << 1 | which & 1
    return _won(key, counts.sum(axis=(1, 2)))


def _won(key: IntArray, sizes: IntArray) -> IntArray:
    """Sorted by table and value, with the group in the last bit: each first-group row wins the second's before it."""
    is_first = np.sort(key) & 1
    losers = np.cumsum(1 - is_first)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    running = np.concatenate([[0], np.cumsum(is_first * losers)])
    before = np.concatenate([[0], losers])[starts]  # losers of earlier tables
    members = np.concatenate([[0], np.cumsum(is_first)])
    won: IntArray = running[ends] - running[starts] - before * (members[ends] - members[starts])
    won *= 2
    return won
