"""Rows as points: mixed columns turned into numbers on one scale, by public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

MAX_LEVELS = 50
"""Labels of a column that get a coordinate of their own; the rarest of the original share one."""


@dataclass(frozen=True, kw_only=True)
class Features:
    """Coordinates of every row."""

    values: FloatArray
    """One line per row."""
    owner: tuple[str, ...]
    """The column that each coordinate comes from."""
    labels: tuple[str, ...]
    """What each coordinate stands for."""


def features(table: PrivateTable, frequent: dict[str, list[int]] | None = None) -> Features:
    """Numbers scaled to [0, 1] by their declared bounds; labels as indicators divided by the square root of two.

    So the two ends of a range are as far apart as two different labels: a distance of one. Missing is an indicator of
    its own, with the number in the middle of its range.

    Args:
        table: Original or synthetic rows.
        frequent: Labels with a coordinate of their own, from :func:`frequent_labels`; all others share one. None: all.
    """
    found = [
        (column.name, label, values)
        for column in table.schema
        for label, values in _coordinates(table, column, (frequent or {}).get(column.name))
    ]
    owner, labels, values = zip(*found, strict=True)
    return Features(values=np.column_stack(values), owner=owner, labels=labels)


def frequent_labels(table: PrivateTable, max_levels: int = MAX_LEVELS) -> dict[str, list[int]]:
    """For columns with many labels, the most frequent ones."""
    frequent = {}
    for column in table.schema:
        if not column.is_numeric and column.levels > max_levels:
            counts = table.counts([column.name]).dense()[: column.levels]
            frequent[column.name] = sorted(np.argsort(-counts, kind="stable")[:max_levels].tolist())
    return frequent


def uniform_rows(table: PrivateTable, rows: int, rng: np.random.Generator) -> PrivateTable:
    """Rows drawn uniformly from the declared domain: a table of nothing but noise."""
    drawn = {c.name: codec_for(c).decode(rng.integers(0, c.size, size=rows), rng.random) for c in table.schema}
    return PrivateTable(pd.DataFrame(drawn), table.schema)


def has_order(column: Column) -> bool:
    """Whether a column's values lie on a line; labels without an order are equal or not."""
    return column.is_numeric or column.kind == "ordinal"


def scaled(table: PrivateTable, column: Column, missing: float) -> FloatArray:
    """A column with an order as shares of its declared range."""
    positions = table.positions(column.name)
    low, high = column.position_range
    values: FloatArray = np.zeros(table.n)
    if high > low:
        values = (positions.values.astype(np.float64) - low) / (high - low)
    return values if positions.missing is None else np.where(positions.missing, missing, values)


def _coordinates(table: PrivateTable, column: Column, frequent: list[int] | None) -> list[tuple[str, FloatArray]]:
    positions = table.positions(column.name)
    out: list[tuple[str, FloatArray]] = []
    if has_order(column):
        out.append((column.name, scaled(table, column, missing=0.5)))
    else:
        present = np.ones(table.n, dtype=bool) if positions.missing is None else ~positions.missing
        for level in range(column.levels) if frequent is None else frequent:
            indicator = (positions.values == level) & present
            out.append((f"{column.name} = {column.labels[level]}", indicator / np.sqrt(2)))
        if frequent is not None:
            rest = ~np.isin(positions.values, frequent) & present
            out.append((f"{column.name} = another", rest / np.sqrt(2)))
    if positions.missing is not None:
        out.append((f"{column.name} is missing", positions.missing / np.sqrt(2)))
    return out
