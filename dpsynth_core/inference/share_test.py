"""A difference in shares between two groups, as a question to be simulated: the two-by-two table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import erfc

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import SchemaError
from dpsynth_core.inference.group_comparison import group_labels
from dpsynth_core.inference.mann_whitney import check_levels
from dpsynth_core.inference.null_simulation import CountCells, Findings
from dpsynth_core.inference.question import OrdinaryFinding, Question
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for, reading_layout
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class ShareTest(Question):
    """The ordinary test of whether a label is as frequent in one group as in another (two proportions, pooled z)."""

    group: Column
    value: Column
    levels: tuple[Any, Any]
    """The two groups, the first one first."""
    outcome: Any
    """The label whose share is compared."""

    @classmethod
    def of(
        cls, schema: Schema, *, value: str, group: str, outcome: Any, levels: Sequence[Any] | None = None
    ) -> ShareTest:
        """Errors name what cannot be compared, from public facts only."""
        if value == group:
            raise SchemaError(value, "group", group, allowed="another column than the one with the outcome")
        labels, outcomes = group_labels(schema[group]), group_labels(schema[value])
        if levels is None and len(labels) != 2:
            remedy = "Choose a column with two levels, or two of this column's with ``levels``."
            raise SchemaError(group, "levels", len(labels), allowed="two levels", remedy=remedy)
        first, second = check_levels(labels if levels is None else levels)
        for level in (first, second):
            if level not in labels:
                raise SchemaError(group, "levels", level, allowed=", ".join(map(str, labels)))
        if outcome not in outcomes:
            raise SchemaError(value, "outcome", outcome, allowed=", ".join(map(str, outcomes)))
        return cls(group=schema[group], value=schema[value], levels=(first, second), outcome=outcome)

    @property
    def _codes(self) -> tuple[int, int]:
        labels = group_labels(self.group)
        return labels.index(self.levels[0]), labels.index(self.levels[1])

    def shares(self, table: pd.DataFrame) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows with the outcome and rows in all, for each group; rows without either value are left out."""
        layout = reading_layout(table)
        group, value = (codec_for(column, layout) for column in (self.group, self.value))
        where = group.codes(group.positions(table[self.group.name]))
        what = value.codes(value.positions(table[self.value.name]))
        known, hit = what < self.value.levels, what == group_labels(self.value).index(self.outcome)
        first, second = ((int((hit & (where == c)).sum()), int((known & (where == c)).sum())) for c in self._codes)
        return first, second

    def finding(self, table: pd.DataFrame) -> OrdinaryFinding | None:
        (a, n1), (b, n2) = self.shares(table)
        pvalue = float(self.on_rows(table).pvalues[0])
        if np.isnan(pvalue):
            return None
        first, second = self.levels
        return OrdinaryFinding(
            text=f"{self.value.name!r} is {self.outcome!r} in {a / n1:.1%} of {n1:,} rows with {self.group.name!r} "
            f"{first!r} and in {b / n2:.1%} of {n2:,} with {second!r}: a difference of {100 * (a / n1 - b / n2):.1f} "
            "percentage points.",
            pvalue=pvalue,
        )

    def on_rows(self, table: pd.DataFrame) -> Findings:
        (a, n1), (b, n2) = self.shares(table)
        return _tested(*(np.array([count], dtype=np.float64) for count in (a, n1, b, n2)))

    def on_counts(self, counts: FloatArray, cells: CountCells, rng: np.random.Generator) -> Findings | None:  # noqa: ARG002
        groups, outcomes = group_labels(self.group), group_labels(self.value)
        if cells.group.slots != len(groups) or cells.value.slots != len(outcomes):
            return None  # the grid does not keep the labels apart
        hit = outcomes.index(self.outcome)
        first, second = (counts[:, code, : len(outcomes)] for code in self._codes)
        found = _tested(first[:, hit], first.sum(axis=1), second[:, hit], second.sum(axis=1))
        return Findings(pvalues=found.pvalues[:, None], statistics=found.statistics[:, None])


def _tested(hits1: FloatArray, n1: FloatArray, hits2: FloatArray, n2: FloatArray) -> Findings:
    """Z = (p1 - p2) / sqrt(p (1 - p) (1/n1 + 1/n2)) with the pooled share p, two-sided."""
    n = n1 + n2
    possible = (n1 > 0) & (n2 > 0)
    pooled = np.where(n > 0, (hits1 + hits2) / np.where(n > 0, n, 1.0), 0.0)
    defined = possible & (pooled > 0) & (pooled < 1)
    one, two = np.where(possible, n1, 1.0), np.where(possible, n2, 1.0)
    std = np.sqrt(np.where(defined, pooled * (1 - pooled) * (1 / one + 1 / two), 1.0))
    z = np.where(defined, (hits1 / one - hits2 / two) / std, 0.0)
    return Findings(pvalues=np.where(defined, erfc(np.abs(z) / np.sqrt(2.0)), np.nan), statistics=z)
