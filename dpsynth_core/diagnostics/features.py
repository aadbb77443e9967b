"""Rows as points: mixed columns turned into numbers on one scale, by public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable

MOST_LEVELS = 50
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


def features(table: PrivateTable, kept: dict[str, list[int]] | None = None) -> Features:
    """Numbers scaled to [0, 1] by their declared bounds; labels as indicators divided by the square root of two.

    So the two ends of a range are as far apart as two different labels: a distance of one. Missing is an indicator of
    its own, with the number in the middle of its range.

    Args:
        table: Original or synthetic rows.
        kept: Labels with a coordinate of their own, from :func:`frequent_labels`; all others share one. None: all.
    """
    blocks: list[FloatArray] = []
    owner: list[str] = []
    labels: list[str] = []
    for column in table.schema:
        for label, block in _blocks(table, column, (kept or {}).get(column.name)):
            blocks.append(block)
            owner.append(column.name)
            labels.append(label)
    return Features(values=np.column_stack(blocks), owner=tuple(owner), labels=tuple(labels))


def frequent_labels(table: PrivateTable, most: int = MOST_LEVELS) -> dict[str, list[int]]:
    """For columns with many labels, the most frequent ones."""
    kept = {}
    for column in table.schema:
        if not column.is_numeric and column.levels > most:
            counts = table.counts([column.name]).dense()[: column.levels]
            kept[column.name] = sorted(np.argsort(-counts, kind="stable")[:most].tolist())
    return kept


def _blocks(table: PrivateTable, column: Column, kept: list[int] | None) -> list[tuple[str, FloatArray]]:
    positions = table.positions(column.name)
    missing = positions.missing
    values = positions.values
    blocks: list[tuple[str, FloatArray]] = []
    if column.is_numeric or column.kind == "ordinal":
        low, high = _ends(column)
        scaled = (values.astype(np.float64) - low) / (high - low) if high > low else np.zeros(len(values))
        if missing is not None:
            scaled = np.where(missing, 0.5, scaled)
        blocks.append((column.name, scaled))
    else:
        present = np.ones(len(values), dtype=bool) if missing is None else ~missing
        wanted = range(column.levels) if kept is None else kept
        for level in wanted:
            indicator = (values == level) & present
            blocks.append((f"{column.name} = {column.labels[level]}", indicator / np.sqrt(2)))
        if kept is not None:
            rest = ~np.isin(values, kept) & present
            blocks.append((f"{column.name} = another", rest / np.sqrt(2)))
    if missing is not None:
        blocks.append((f"{column.name} is missing", missing / np.sqrt(2)))
    return blocks


def _ends(column: Column) -> tuple[float, float]:
    """First and last position of a column with an order."""
    if column.kind == "ordinal":
        return 0.0, float(column.levels - 1)
    if column.lattice is not None:
        return 0.0, float(column.lattice[1] - column.lattice[0])
    return float(column.lower), float(column.upper)  # type: ignore[arg-type]
