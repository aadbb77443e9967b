"""Counting rows by cell, sparsely: the work and the memory follow the rows, never the size of the domain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import ParameterError

KEY_LIMIT = 2**62
"""Largest product of sizes that one int64 key may span."""


@dataclass(frozen=True, kw_only=True)
class SparseCounts:
    """How many rows fall into each occupied cell of a group-by over declared cells."""

    columns: tuple[str, ...]
    shape: tuple[int, ...]
    """Number of cells of each column, missing levels included."""
    cells: IntArray
    """Codes of the occupied cells, one row each, in lexicographic order."""
    counts: IntArray
    """Number of rows in each of them, at least one."""

    @property
    def domain_size(self) -> int:
        """Number of cells, occupied or not."""
        return math.prod(self.shape)

    @property
    def n(self) -> int:
        """Number of rows counted."""
        return int(self.counts.sum())

    def dense(self, *, limit: int = 10_000_000) -> IntArray:
        """Every cell's count as an array of ``shape``; refused before allocating when there are too many."""
        if self.domain_size > limit:
            remedy = "Use fewer bins or columns, or a mechanism that does not need every cell."
            raise ParameterError("cells", self.domain_size, allowed=f"at most {limit} for a full grid", remedy=remedy)
        full = np.zeros(self.shape, dtype=np.int64)
        full[tuple(self.cells.T)] = self.counts
        return full


def count_cells(codes: Sequence[IntArray], shape: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Occupied cells in lexicographic order and their counts.

    Columns are folded into one int64 key. Where the next column would overflow it, the keys so far are replaced
    by their ranks (at most one per row), which keeps the order and makes room, so any number of columns works.

    Example:
        >>> cells, counts = count_cells([np.array([1, 0, 1])], [2])
        >>> cells.tolist(), counts.tolist()
        ([[0], [1]], [1, 2])
    """
    rows = len(codes[0])
    key: IntArray = np.zeros(rows, dtype=np.int64)
    span, ranked = 1, False
    for column, size in zip(codes, shape, strict=True):
        if span * size > KEY_LIMIT:
            distinct, key = np.unique(key, return_inverse=True)
            span, ranked = len(distinct), True
        key *= size
        key += column
        span *= size
    if ranked:
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        return np.column_stack([column[first] for column in codes]), counts.astype(np.int64)
    occupied, counts = _count_keys(key, span)
    return unfold_keys(occupied, shape), counts


def unfold_keys(key: IntArray, shape: Sequence[int]) -> IntArray:
    """The codes behind each key, laid out column by column: that is how they are made and mostly how they are read."""
    cells = np.empty((len(shape), len(key)), dtype=np.int64)
    rest = key.copy()
    for i in range(len(shape) - 1, 0, -1):
        np.divmod(rest, shape[i], out=(rest, cells[i]))
    cells[0] = rest
    return cells.T


def _count_keys(key: IntArray, span: int) -> tuple[IntArray, IntArray]:
    if span <= len(key):  # a table no larger than the rows themselves beats sorting them
        table = np.bincount(key, minlength=span)
        occupied = np.flatnonzero(table)
        return occupied, table[occupied].astype(np.int64, copy=False)
    occupied, counts = np.unique(key, return_counts=True)
    return occupied, counts.astype(np.int64, copy=False)
