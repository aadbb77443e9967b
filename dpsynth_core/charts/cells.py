"""What the cells of a column are called and where they lie on an axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from dpsynth_core.table.column import Column, label_text

MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class NumericCells:
    """Ends of every cell of a numeric column, as numbers or dates, without the missing level."""

    left: list[Any]
    """Where each cell begins."""
    right: list[Any]
    """Where it ends; for whole numbers and days, the last value inside."""


def cell_names(column: Column) -> list[str]:
    """A name for every code, the missing level last."""
    if column.is_numeric:
        ends = numeric_cells(column)
        names = [_interval(a, b, column) for a, b in zip(ends.left, ends.right, strict=True)]
    else:
        names = [label_text(label) for label in column.labels]
    return [*names, MISSING] if column.nullable else names


def numeric_cells(column: Column) -> NumericCells:
    """Ends of the cells of a numeric column."""
    if column.lattice is None:
        low, high = float(column.lower), float(column.upper)  # type: ignore[arg-type]
        edges = np.linspace(low, high, column.levels + 1).tolist()
        return NumericCells(left=edges[:-1], right=edges[1:])
    starts = column.lattice_edges()
    left, right = starts[:-1], [start - 1 for start in starts[1:]]
    if column.kind == "date":
        return NumericCells(left=[date.fromordinal(i) for i in left], right=[date.fromordinal(i) for i in right])
    if column.kind == "integer":
        return NumericCells(left=left, right=right)
    step = 10.0 ** (column.decimals or 0)
    return NumericCells(left=[i / step for i in left], right=[i / step for i in right])


def bar_geometry(column: Column) -> tuple[list[Any], list[float]]:
    """Centre and width of a bar for every cell: widths in axis units (milliseconds for dates)."""
    ends = numeric_cells(column)
    pairs = list(zip(ends.left, ends.right, strict=True))
    if column.kind == "date":
        day = timedelta(days=1)
        spans = [(datetime.combine(a, time.min), datetime.combine(b, time.min) + day) for a, b in pairs]
        return [a + (b - a) / 2 for a, b in spans], [(b - a) / timedelta(milliseconds=1) for a, b in spans]
    half = 0.0 if column.lattice is None else 0.5 * 10.0 ** -(column.decimals or 0)
    bars = [(float(a) - half, float(b) + half) for a, b in pairs]
    return [(a + b) / 2 for a, b in bars], [b - a for a, b in bars]


def drawable(column: Column, most: int = 60) -> Column:
    """The column with few enough cells to be drawn as bars."""
    if not column.is_numeric or column.levels <= most:
        return column
    return replace(column, bins=most)


def _interval(left: object, right: object, column: Column) -> str:
    if column.lattice is not None and left == right:
        return _show(left)
    return f"{_show(left)} to {_show(right)}"


def _show(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
