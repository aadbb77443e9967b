"""Which column is compared between which two groups, and how a table is split accordingly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import SchemaError
from dpsynth_core.inference.mann_whitney import GroupsError, MannWhitney, check_levels, mann_whitney
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions, codec_for, reading_layout
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class GroupComparison:
    """A value column and two levels of a group column, checked against the declared facts."""

    value: Column
    group: Column
    levels: tuple[Any, Any]
    """The two groups, the first one first."""

    @classmethod
    def of(cls, schema: Schema, *, value: str, group: str, levels: Sequence[Any] | None = None) -> GroupComparison:
        """Errors name what cannot be compared, from public facts only."""
        values, groups = schema[value], schema[group]
        if value == group:
            raise SchemaError(value, "group", group, allowed="another column than the value")
        if not ordered(values):
            kinds = "a kind with an order: continuous, integer, ordinal, date, boolean"
            raise SchemaError(value, "kind", values.kind, allowed=kinds)
        labels = group_labels(groups)
        if levels is None and len(labels) != 2:
            remedy = "Choose a column with two levels, or two of this column's with ``levels``."
            raise SchemaError(group, "levels", len(labels), allowed="two levels", remedy=remedy)
        first, second = check_levels(labels if levels is None else levels)
        for level in (first, second):
            if level not in labels:
                raise SchemaError(group, "levels", level, allowed=", ".join(map(str, labels)))
        return cls(value=values, group=groups, levels=(first, second))

    @property
    def codes(self) -> tuple[int, int]:
        labels = group_labels(self.group)
        return labels.index(self.levels[0]), labels.index(self.levels[1])

    def split(self, table: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
        """Values of the two groups, as positions in the declared order; rows without a value or group are left out."""
        layout = reading_layout(table)
        values, groups = (codec_for(c, layout).positions(table[c.name]) for c in (self.value, self.group))
        return self.split_positions(values, groups)

    def split_positions(self, values: Positions, groups: Positions) -> tuple[FloatArray, FloatArray]:
        """The same where both columns have been encoded."""
        code = codec_for(self.group).codes(groups)
        if values.missing is not None:
            code = np.where(values.missing, -1, code)
        first, second = (values.values[code == c].astype(np.float64) for c in self.codes)
        return first, second

    def test(self, table: pd.DataFrame) -> MannWhitney:
        """The ordinary test on a table, with errors that name the columns."""
        first, second = self.split(table)
        if not len(first) or not len(second):
            empty = self.levels[0] if not len(first) else self.levels[1]
            raise GroupsError(
                f"No row of this table has {self.group.name!r} equal to {empty!r} and a value of "
                f"{self.value.name!r}, so there is nothing to compare. Choose other columns or levels."
            )
        if np.ptp(np.concatenate([first, second])) == 0:
            raise GroupsError(
                f"All values of {self.value.name!r} are equal in this table, so the groups cannot differ. "
                "Choose another value column."
            )
        return mann_whitney(first, second)

    def test_if_any(self, table: pd.DataFrame) -> MannWhitney | None:
        """The same; None where the table leaves nothing to test."""
        try:
            return self.test(table)
        except GroupsError:
            return None


def ordered(column: Column) -> bool:
    """Whether ranks of a column's values mean anything."""
    return column.is_numeric or column.kind in ("ordinal", "boolean")


def group_labels(column: Column) -> tuple[Any, ...]:
    """The levels of a column as groups: labels, or a few whole numbers that stand for labels."""
    if not column.is_numeric:
        return tuple(column.labels)
    points = column.lattice
    if column.kind == "integer" and points is not None and column.levels == points[1] - points[0] + 1:
        return tuple(range(points[0], points[1] + 1))
    raise SchemaError(
        column.name, "kind", column.kind, allowed="a column of labels, truth values or a few whole numbers"
    )
