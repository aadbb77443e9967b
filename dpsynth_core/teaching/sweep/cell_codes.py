"""Rows counted in cells: how far two tables are apart, column by column, pair by pair, and group by group."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

COLUMN_CELLS, PAIR_CELLS = 30, 8
"""Maximum cells of a range, alone and in pairs: as in the diagnostics."""
MIN_GROUPS = 3
"""Groups of about the same size that are needed before their typical error is stated."""


@dataclass(frozen=True, kw_only=True)
class CellCodes:
    """The cell of every row, column by column."""

    fine: dict[str, IntArray]
    """For single columns."""
    coarse: dict[str, IntArray]
    """For pairs."""

    @classmethod
    def of(cls, table: PrivateTable) -> CellCodes:
        """Encode every column of a table."""
        fine, rough = (
            {c.name: codec_for(coarse(c, cells)).codes(table.positions(c.name)) for c in table.schema}
            for cells in (COLUMN_CELLS, PAIR_CELLS)
        )
        return cls(fine=fine, coarse=rough)

    def take(self, rows: IntArray) -> CellCodes:
        """The same for some of the rows, by index."""
        fine, rough = ({name: codes[rows] for name, codes in part.items()} for part in (self.fine, self.coarse))
        return CellCodes(fine=fine, coarse=rough)


def variation(first: CellCodes, second: CellCodes) -> dict[str, float]:
    """Total variation of the worst column, and of a pair of columns on average."""
    columns = [total_variation(*counts) for counts in _column_counts(first.fine, second.fine)]
    pairs = [total_variation(*counts) for counts in _pair_counts(first.coarse, second.coarse)]
    return {"column": max(map(float, columns)), **({"pairs": float(np.mean(pairs))} if pairs else {})}


def error_by_size(first: CellCodes, second: CellCodes) -> dict[int, float]:
    """The typical relative error of a group's size; groups are the cells of columns and pairs.

    Keys are powers of two: the groups of the first table with at least so many rows and fewer than twice as many. The
    value is the median of ``|c' - c| / c`` over them. The two tables have the same number of rows.
    """
    counts = [*_column_counts(first.fine, second.fine), *_pair_counts(first.fine, second.fine)]
    size, other = (np.concatenate(part) for part in zip(*counts, strict=True))
    size, other = size[size > 0], other[size > 0]
    error = np.abs(other - size) / size
    # A count of rows is exact in floating point, and so is the exponent of a power of two.
    power = np.frexp(size.astype(np.float64))[1] - 1
    return {
        int(2**k): float(np.median(error[power == k]))
        for k in np.unique(power)
        if np.count_nonzero(power == k) >= MIN_GROUPS
    }


def _column_counts(first: dict[str, IntArray], second: dict[str, IntArray]) -> list[tuple[IntArray, IntArray]]:
    return [_counts(codes, second[name]) for name, codes in first.items()]


def _pair_counts(first: dict[str, IntArray], second: dict[str, IntArray]) -> list[tuple[IntArray, IntArray]]:
    """Rows in every cell of every pair of columns, in both tables."""
    counts = []
    for a, b in combinations(first, 2):
        width = 1 + max(int(part[b].max()) for part in (first, second))
        counts.append(_counts(*(part[a] * width + part[b] for part in (first, second))))
    return counts


def _counts(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    cells = 1 + int(max(first.max(), second.max()))
    left, right = (np.bincount(codes, minlength=cells) for codes in (first, second))
    return left, right
