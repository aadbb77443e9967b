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
    """Coordinates of every row, one line each."""

    values: FloatArray
    owner: tuple[str, ...]
    """The column that each coordinate comes from."""


def features(table: PrivateTable, frequent: dict[str, list[int]] | None = None) -> Features:
    """Numbers scaled to [0, 1] by their declared bounds; labels as indicators divided by the square root of two.

    So the two ends of a range are as far apart as two different labels: a distance of one. Missing is an indicator of
    its own, with the number in the middle of its range. Labels with a coordinate of their own are the ``frequent`` ones
    from :func:`frequent_labels`, and all others share one; without it every label has its own.
    """
    blocks = {column.name: _coordinates(table, column, (frequent or {}).get(column.name)) for column in table.schema}
    owner = tuple(name for name, block in blocks.items() for _ in block)
    return Features(values=np.column_stack([values for block in blocks.values() for values in block]), owner=owner)


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


def position_values(table: PrivateTable, name: str) -> FloatArray:
    """Where each row lies in a column's declared domain; not a number where its value is missing."""
    positions = table.positions(name)
    values = positions.values.astype(np.float64)
    return values if positions.missing is None else np.where(positions.missing, np.nan, values)


def scaled(table: PrivateTable, column: Column, missing: float) -> FloatArray:
    """A column with an order as shares of its declared range."""
    low, high = column.position_range
    return np.nan_to_num((position_values(table, column.name) - low) / ((high - low) or 1.0), nan=missing)


def _coordinates(table: PrivateTable, column: Column, frequent: list[int] | None) -> list[FloatArray]:
    positions = table.positions(column.name)
    numbers, indicators = [], []
    if has_order(column):
        numbers.append(scaled(table, column, missing=0.5))
    else:
        present = np.ones(table.n, dtype=bool) if positions.missing is None else ~positions.missing
        levels = range(column.levels) if frequent is None else frequent
        indicators += [(positions.values == level) & present for level in levels]
        if frequent is not None:
            indicators.append(~np.isin(positions.values, frequent) & present)
    if positions.missing is not None:
        indicators.append(positions.missing)
    return [*numbers, *(indicator / np.sqrt(2) for indicator in indicators)]
