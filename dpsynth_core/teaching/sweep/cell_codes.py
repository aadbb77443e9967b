"""Rows counted in cells: how far two tables are apart, column by column, pair by pair, and group by group."""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

COLUMN_CELLS, PAIR_CELLS = 30, 8
"""Most cells that a range is cut into, alone and in pairs: as in the diagnostics."""
FEWEST_GROUPS = 3
"""Groups of about one size that are needed before their typical error is told."""

CellCodes: TypeAlias = tuple[dict[str, IntArray], dict[str, IntArray]]
"""Each row's cell in every column: fine for one column, coarse for pairs."""


def cells_of(table: PrivateTable) -> CellCodes:
    """Where every row falls."""
    fine, rough = (
        {c.name: codec_for(coarse(c, most)).codes(table.positions(c.name)) for c in table.schema}
        for most in (COLUMN_CELLS, PAIR_CELLS)
    )
    return fine, rough


def taken(cells: CellCodes, places: IntArray) -> CellCodes:
    """The same for some of the rows."""
    fine, rough = ({name: codes[places] for name, codes in part.items()} for part in cells)
    return fine, rough


def variation(first: CellCodes, second: CellCodes) -> dict[str, float]:
    """Total variation of the worst column, and of a pair of columns on average."""
    found = {"column": max(_apart(*_counted(codes, second[0][name])) for name, codes in first[0].items())}
    pairs = [_apart(*counts) for counts in _grids(first[1], second[1])]
    if pairs:
        found["pairs"] = float(np.mean(pairs))
    return found


def error_by_size(first: CellCodes, second: CellCodes) -> dict[int, float]:
    """By how much the size of a group is typically off, as a share of it; groups are the cells of columns and pairs.

    Keys are powers of two: the groups of the first table with at least so many rows and fewer than twice as many. The
    value is the median of ``|c' - c| / c`` over them. The two tables have the same number of rows.
    """
    grids = [_counted(codes, second[0][name]) for name, codes in first[0].items()] + _grids(first[0], second[0])
    size = np.concatenate([counts[0] for counts in grids])
    other = np.concatenate([counts[1] for counts in grids])
    size, other = size[size > 0], other[size > 0]
    error = np.abs(other - size) / size
    # A count of rows is exact in floating point, and so is the exponent of a power of two.
    power = np.frexp(size.astype(np.float64))[1] - 1
    return {
        int(2**k): float(np.median(error[power == k]))
        for k in np.unique(power)
        if np.count_nonzero(power == k) >= FEWEST_GROUPS
    }


def _grids(first: dict[str, IntArray], second: dict[str, IntArray]) -> list[tuple[IntArray, IntArray]]:
    """Rows in every cell of every pair of columns, in both tables."""
    found = []
    for a, b in combinations(first, 2):
        width = 1 + max(int(part[b].max()) for part in (first, second))
        left, right = (part[a] * width + part[b] for part in (first, second))
        found.append(_counted(left, right))
    return found


def _counted(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    cells = 1 + int(max(first.max(), second.max()))
    left, right = (np.bincount(codes, minlength=cells) for codes in (first, second))
    return left, right


def _apart(first: IntArray, second: IntArray) -> float:
    return float(total_variation(first, second))
