"""The cells of a column: what they are called, where they lie on an axis, and the share of rows in them."""

from __future__ import annotations

import itertools
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.charts.theme import SMALL_AXIS_LETTERS, plain, wrapped
from dpsynth_core.table.column import Column, label_text
from dpsynth_core.table.encoding import codec_for, reading_layout

MISSING = "(missing)"


def axis_title(column: Column) -> str:
    """Name and unit, in two lines where one would run into the next panel's."""
    title = plain(column.name) + (f" ({plain(column.unit)})" if column.unit else "")
    return wrapped(title, SMALL_AXIS_LETTERS)


def cell_names(column: Column) -> list[str]:
    """A name for every code, the missing level last."""
    if column.is_numeric:
        names = [_interval(a, b, column) for a, b in _ends(column)]
    else:
        names = [label_text(label) for label in column.labels]
    return [*names, MISSING] if column.nullable else names


def tick_text(column: Column, name: str) -> str:
    """A cell's name as a tick: a label, or where a range begins in a few digits."""
    if not column.is_numeric or name == MISSING:
        return plain(name)
    start = name.split(" to ", maxsplit=1)[0]
    if column.kind in ("date", "integer"):
        return start
    return f"{float(start):.0f}" if abs(float(start)) >= 1000 else f"{float(start):.3g}"


def cell_codes(table: pd.DataFrame, column: Column) -> IntArray:
    codec = codec_for(column, reading_layout(table))
    return codec.codes(codec.positions(table[column.name]))


def cell_shares(table: pd.DataFrame, column: Column) -> FloatArray:
    """Share of rows in every cell, the missing level last."""
    return np.asarray(np.bincount(cell_codes(table, column), minlength=column.size) / len(table))


def bar_geometry(column: Column) -> tuple[list[Any], list[float]]:
    """Centre and width of a bar for every cell of a range: widths in axis units (milliseconds for dates)."""
    if column.kind == "date":
        day = timedelta(days=1)
        spans = [(datetime.combine(a, time.min), datetime.combine(b, time.min) + day) for a, b in _ends(column)]
        return [a + (b - a) / 2 for a, b in spans], [(b - a) / timedelta(milliseconds=1) for a, b in spans]
    half = 0.0 if column.lattice is None else 0.5 * 10.0 ** -(column.decimals or 0)
    bars = [(float(a) - half, float(b) + half) for a, b in _ends(column)]
    return [(a + b) / 2 for a, b in bars], [b - a for a, b in bars]


def _ends(column: Column) -> list[tuple[Any, Any]]:
    """First and last value of every cell of a range, as numbers or dates; for a continuous one, its edges."""
    if column.lattice is None:
        low, high = float(column.lower), float(column.upper)  # type: ignore[arg-type]
        edges = np.linspace(low, high, column.levels + 1).tolist()
        return list(itertools.pairwise(edges))
    starts = column.lattice_edges()
    ends = [(start, following - 1) for start, following in itertools.pairwise(starts)]
    if column.kind == "date":
        return [(date.fromordinal(a), date.fromordinal(b)) for a, b in ends]
    if column.kind == "integer":
        return list(ends)
    scale = 10.0 ** (column.decimals or 0)
    return [(a / scale, b / scale) for a, b in ends]


def _interval(left: object, right: object, column: Column) -> str:
    texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in (left, right)]
    return texts[0] if column.lattice is not None and left == right else " to ".join(texts)
