"""Two groups compared, as a question to be simulated: Mann and Whitney's test between pairs of levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.group_comparison import GroupComparison, group_labels
from dpsynth_core.inference.histograms import GroupIndices
from dpsynth_core.inference.mann_whitney import EXACT_UP_TO, mann_whitney, weighted_z
from dpsynth_core.inference.null_simulation import CountCells, Findings, NullTest
from dpsynth_core.inference.u_statistics import ordinary_pvalues
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_RANKED = 400
"""Rows of a simulated release up to which each is ranked by itself."""
MAX_POINTS = 4096
"""Values of a column of evenly spaced ones up to which ties between them are counted."""
MAX_LEVELS = 12
"""Levels of which all pairs are compared at most: 66 pairs."""


@dataclass(frozen=True, kw_only=True)
class GroupTest(NullTest):
    """The ordinary test of one value column between pairs of levels of one group column."""

    comparisons: tuple[GroupComparison, ...]

    @classmethod
    def of(cls, schema: Schema, *, value: str, group: str, levels: Sequence[Any] | None = None) -> GroupTest:
        """The pair of ``levels``, or every pair of the column's levels."""
        labels = group_labels(schema[group])
        if levels is not None or len(labels) <= 2:
            return cls(comparisons=(GroupComparison.of(schema, value=value, group=group, levels=levels),))
        if len(labels) > MAX_LEVELS:
            raise ParameterError(
                "levels", None, allowed=f"two of the column's {len(labels)} levels", remedy="Choose the two to compare."
            )
        pairs = combinations(labels, 2)
        return cls(
            comparisons=tuple(GroupComparison.of(schema, value=value, group=group, levels=pair) for pair in pairs)
        )

    @property
    def levels(self) -> tuple[Any, ...]:
        """Every level that is compared with another."""
        return tuple(dict.fromkeys(level for comparison in self.comparisons for level in comparison.levels))

    @property
    def group(self) -> Column:  # type: ignore[override]
        return self.comparisons[0].group

    @property
    def value(self) -> Column:  # type: ignore[override]
        return self.comparisons[0].value

    def on_rows(self, table: pd.DataFrame) -> Findings:
        return self._found(comparison.split(table) for comparison in self.comparisons)

    def on_positions(self, table: PrivateTable) -> Findings:
        values, groups = table.positions(self.value.name), table.positions(self.group.name)
        return self._found(comparison.split_positions(values, groups) for comparison in self.comparisons)

    @staticmethod
    def _found(pairs: Iterable[tuple[FloatArray, FloatArray]]) -> Findings:
        found = [_tested(*pair) for pair in pairs]
        pvalues, statistics = zip(*found, strict=True)
        return Findings(pvalues=np.array(pvalues), statistics=np.array(statistics))

    def on_counts(self, counts: FloatArray, cells: CountCells, rng: np.random.Generator) -> Findings | None:
        if cells.group.slots != len(group_labels(self.group)):
            return None  # the grid does not keep the groups apart
        pvalues, statistics = [], []
        for comparison in self.comparisons:
            first, second = comparison.codes
            indices = GroupIndices(first=first, second=second, values=cells.value.slots)
            pair = np.stack(indices.of(counts), axis=1)
            pvalues.append(_count_pvalues(pair, cells.value, rng, centre=cells.law.centre))
            statistics.append(cells.law.statistic(counts, indices))
        return Findings(pvalues=np.stack(pvalues, axis=1), statistics=np.stack(statistics, axis=1))


def _tested(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """The p-value and the standardised U; not a number and 0 where there is nothing to compare."""
    if not len(first) or not len(second):
        return float("nan"), 0.0
    values, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    if len(values) < 2:
        return float("nan"), 0.0
    a, b = (np.bincount(part, minlength=len(values)).astype(np.float64) for part in np.split(index, [len(first)]))
    if min(len(first), len(second)) <= EXACT_UP_TO:
        return mann_whitney(first, second).pvalue, float(weighted_z(a, b))
    pvalue = ordinary_pvalues(np.stack([a, b])[None], np.random.default_rng(0), centre=True)
    return float(pvalue[0]), float(weighted_z(a, b))


def tied_in_cells(axis: Axis, *, centre: bool) -> bool:
    """Rows of a cell are tied if they lie at its middle, or if the cell is a single value."""
    return centre or _points(axis) == axis.slots


def _points(axis: Axis) -> int | None:
    return axis.column.points if axis.column.is_numeric else axis.slots


def _count_pvalues(counts: FloatArray, axis: Axis, rng: np.random.Generator, *, centre: bool) -> FloatArray:
    points = _points(axis)
    if tied_in_cells(axis, centre=centre):
        return ordinary_pvalues(counts, rng, centre=True)
    if points is None or points > MAX_POINTS:
        return ordinary_pvalues(counts, rng, centre=False, max_sorted=MAX_RANKED)
    return ordinary_pvalues(_spread(counts, axis.slots, points, rng), rng, centre=True)


def _spread(counts: FloatArray, slots: int, points: int, rng: np.random.Generator) -> FloatArray:
    """Rows of each cell dealt to the cell's values evenly, as placement does."""
    edges = [-(-i * points // slots) for i in range(slots + 1)]
    parts = []
    for slot in range(slots):
        width = edges[slot + 1] - edges[slot]
        parts.append(rng.multinomial(counts[:, :, slot].astype(np.int64), np.full(width, 1 / width)))
    return np.concatenate(parts, axis=2).astype(np.float64)
