"""The cuts a tree may choose from: made from the synthetic sample alone, then applied to any row.

A column is divided into *cells*. Cells of numbers, dates and ordered categories stand in a line, and a cut keeps the
first few of them together; cells of unordered categories do not, and a cut sets one of them apart from the rest. What
the cells are depends on the synthetic column only, and each row finds its cell by its own value, so that replacing an
original row moves one row from one cell to another and nothing else. The sensitivity of the tree's score rests on this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, Int32Array
from dpsynth_core.jit import compiled
from dpsynth_core.table.cells import column_numbers
from dpsynth_core.table.column import label_text
from dpsynth_core.trees.columns import ColumnValues, TableLike, matched_columns, microseconds
from dpsynth_core.trees.quantiles import quick_quantiles

_COUNTED = 128
"""Thresholds up to which comparing with all of them is faster than searching."""
_BLOCK = 1024
"""Rows that are worked on at a time: they stay in the processor's cache."""


class ColumnCells(ABC):
    """The cells of one column."""

    nominal: bool
    """Whether a cut sets one cell apart, rather than the first few from the rest."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many cells there are, empty ones included."""

    @property
    def cuts(self) -> int:
        return self.size if self.nominal else self.size - 1

    @abstractmethod
    def place(self, values: ColumnValues) -> Int32Array:
        """The cell of each value; no value is without one."""


@dataclass(frozen=True, kw_only=True)
class OrderedCells(ColumnCells):
    """Below every synthetic value, up to each threshold in turn, above the last one, missing."""

    least: float
    thresholds: FloatArray
    """Rising synthetic values; the last one is the largest."""
    labels: tuple[str, ...] = ()
    """Names of ordered categories, where values are their places."""

    nominal = False

    @classmethod
    def of(cls, synthetic: FloatArray, bins: int, labels: tuple[str, ...] = ()) -> OrderedCells:
        """Quantiles of the synthetic values; all of them where no more than ``bins`` are different."""
        found = quick_quantiles(synthetic, bins)
        if found is not None:
            return cls(least=found[0], thresholds=found[1], labels=labels)
        ordered = np.sort(synthetic[~np.isnan(synthetic)])
        if not len(ordered):
            return cls(least=np.inf, thresholds=np.array([np.inf]), labels=labels)
        thresholds = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        if len(thresholds) > bins:
            ranks = -(-np.arange(1, bins + 1) * len(ordered) // bins) - 1
            thresholds = np.unique(ordered[ranks])
        return cls(least=float(ordered[0]), thresholds=thresholds, labels=labels)

    @property
    def size(self) -> int:
        return len(self.thresholds) + 3

    def place(self, values: ColumnValues) -> Int32Array:
        numeric = values if isinstance(values, np.ndarray) else _as_numbers(values, self.labels)
        return _find(numeric, self.least, self.thresholds)


@dataclass(frozen=True, kw_only=True)
class NominalCells(ColumnCells):
    """One for each category, one for every other label, one for missing."""

    categories: tuple[str, ...]
    """Texts of the labels that have a cell of their own."""

    nominal = True

    @classmethod
    def of(cls, synthetic: pd.Series[Any], bins: int) -> NominalCells:
        """The declared categories of the synthetic column, else its labels; the ``bins`` most frequent if more."""
        texts = [label_text(label) for label in synthetic.value_counts(sort=True).index]  # declared ones count as zero
        return cls(categories=tuple(dict.fromkeys(texts[:bins])))

    @property
    def size(self) -> int:
        return len(self.categories) + 2

    def place(self, values: ColumnValues) -> Int32Array:
        group, distinct = pd.factorize(pd.Series(values))
        index = {text: cell for cell, text in enumerate(self.categories)}
        other, missing = len(self.categories), len(self.categories) + 1
        cells = [index.get(label_text(label), other) for label in distinct]
        return np.array([*cells, missing], dtype=np.int32)[group]


@dataclass(frozen=True, kw_only=True)
class CutTable:
    """Two tables in cells: all that a tree needs to know of them."""

    cells: tuple[ColumnCells, ...]
    synthetic: Int32Array
    original: Int32Array
    """Cell of each row of either table, one line for each column."""

    @classmethod
    def of(cls, original: TableLike, synthetic: TableLike, *, bins: int) -> CutTable:
        """Cut both tables where the synthetic one says."""
        columns = matched_columns(synthetic=synthetic, original=original)
        made, given = zip(*columns.values(), strict=True)
        cells = tuple(_cells_of(column, bins) for column in made)
        return cls(
            cells=cells,
            synthetic=np.stack([cell.place(column) for cell, column in zip(cells, made, strict=True)]),
            original=np.stack([cell.place(column) for cell, column in zip(cells, given, strict=True)]),
        )


def _cells_of(synthetic: ColumnValues, bins: int) -> ColumnCells:
    if isinstance(synthetic, np.ndarray):
        return OrderedCells.of(synthetic, bins)
    dtype = synthetic.dtype
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        labels = tuple(map(label_text, dtype.categories))
        return OrderedCells.of(_as_numbers(synthetic, labels), bins, labels)
    if isinstance(dtype, pd.CategoricalDtype) or dtype.kind not in "biufmM":
        return NominalCells.of(synthetic, bins)
    return OrderedCells.of(_as_numbers(synthetic, ()), bins)


def _as_numbers(values: pd.Series[Any], labels: tuple[str, ...]) -> FloatArray:
    """Floats, missing as NaN: numbers as they are, moments in time by their order, ordered labels by their place."""
    if labels:
        group, distinct = pd.factorize(values)
        index = {text: float(place) for place, text in enumerate(labels)}
        return np.array([*(index.get(label_text(label), np.nan) for label in distinct), np.nan])[group]
    if values.dtype.kind in "mM":
        return microseconds(values)
    return column_numbers(values)


def _find(values: FloatArray, least: float, thresholds: FloatArray) -> Int32Array:
    """0 below ``least``, k up to the k-th threshold, then one cell for what is above and one for what is missing."""
    if len(thresholds) <= _COUNTED:
        return _count_less(values, least, thresholds)
    less = np.searchsorted(thresholds, values, side="left")
    cells = np.where(np.isnan(values), len(thresholds) + 2, (less + 1) * (values >= least))
    return cells.astype(np.int32)


@compiled
def _count_less(values: FloatArray, least: float, thresholds: FloatArray) -> Int32Array:
    """How many thresholds are less than each value: compared with all of them, which vectors do faster than a search.

    A search branches on values that nobody can predict. Four at a time, the counts are fetched and stored less often.
    """
    size = len(thresholds)
    padded = np.full(size + 3, np.inf)  # which is less than nothing
    padded[:size] = thresholds
    cells = np.empty(len(values), np.int32)
    less = np.empty(_BLOCK, np.int64)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        less[:] = 0
        for k in range(0, size, 4):
            a, b, c, d = padded[k], padded[k + 1], padded[k + 2], padded[k + 3]
            for row in range(len(block)):
                value = block[row]
                less[row] += (a < value) + (b < value) + (c < value) + (d < value)
        for row in range(len(block)):
            value = block[row]
            # Only a missing value differs from itself; it is not at least anything.
            cells[start + row] = (less[row] + 1) * (value >= least) + (size + 2) * (value != value)  # noqa: PLR0124
    return cells
