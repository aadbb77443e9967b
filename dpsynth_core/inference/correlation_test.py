"""Whether two columns move together, as a question to be simulated: Pearson's correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betainc

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import SchemaError
from dpsynth_core.inference.group_comparison import ordered
from dpsynth_core.inference.null_simulation import Findings
from dpsynth_core.inference.question import OrdinaryFinding, Question
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for, reading_layout
from dpsynth_core.table.schema import Schema

SINGULAR = 1e-12
"""Variance, as a share of the range's square, below which a column does not vary."""


@dataclass(frozen=True, kw_only=True)
class CorrelationTest(Question):
    """The ordinary test of Pearson's correlation between two columns with an order."""

    group: Column
    value: Column

    @classmethod
    def of(cls, schema: Schema, *, value: str, other: str) -> CorrelationTest:
        """Errors name what cannot be correlated, from public facts only."""
        if value == other:
            raise SchemaError(value, "other", other, allowed="another column")
        check_ordered(schema, (value, other))
        return cls(group=schema[other], value=schema[value])

    def correlation(self, table: pd.DataFrame) -> tuple[float, int] | None:
        """Pearson's r and the rows with both values; None where it is not defined."""
        x, y = numbers_of(self.group, table), numbers_of(self.value, table)
        known = ~(np.isnan(x) | np.isnan(y))
        x, y = x[known], y[known]
        if len(x) < 3:
            return None
        x, y = (values - values.mean() for values in (x, y))
        xx, yy = float(x @ x), float(y @ y)
        if min(xx / width_of(self.group) ** 2, yy / width_of(self.value) ** 2) <= SINGULAR:
            return None
        return min(max(float(x @ y) / math.sqrt(xx * yy), -1.0), 1.0), len(x)

    def finding(self, table: pd.DataFrame) -> OrdinaryFinding | None:
        found = self.correlation(table)
        if found is None:
            return None
        r, rows = found
        text = f"The correlation of {self.group.name!r} and {self.value.name!r} is {r:.3f}, in {rows:,} rows."
        return OrdinaryFinding(text=text, pvalue=correlation_pvalue(r, rows - 2))

    def on_rows(self, table: pd.DataFrame) -> Findings:
        found = self.correlation(table)
        if found is None:
            return Findings(pvalues=np.array([np.nan]), statistics=np.array([0.0]))
        r, rows = found
        pvalue, z = correlation_pvalue(r, rows - 2), fisher_z(r, rows)
        return Findings(pvalues=np.array([pvalue]), statistics=np.array([z]))


def correlation_pvalue(r: float, free: int) -> float:
    """Two-sided p-value of t = r sqrt(free / (1 - r^2)).

    Example:
        >>> round(correlation_pvalue(0.5, 18), 4)
        0.0248
    """
    return float(betainc(free / 2, 0.5, max(1 - r * r, 0.0)))


def fisher_z(r: float, rows: int) -> float:
    """Fisher's transform over its standard error: nearly normal, whatever the correlation."""
    return math.atanh(min(max(r, -1 + 1e-12), 1 - 1e-12)) * math.sqrt(max(rows - 3, 1))


def check_ordered(schema: Schema, names: Sequence[str]) -> None:
    """Refuse columns whose values are no numbers and have no order."""
    for name in names:
        if not ordered(schema[name]):
            kinds = "a kind with an order: continuous, integer, ordinal, date, boolean"
            raise SchemaError(name, "kind", schema[name].kind, allowed=kinds)


def numbers_of(column: Column, table: pd.DataFrame) -> FloatArray:
    """A column's values as numbers in its own unit (days for dates, codes for labels); NaN where missing."""
    found = codec_for(column, reading_layout(table)).positions(table[column.name])
    unit = 10.0 ** -(column.decimals or 0) if column.is_numeric and column.lattice is not None else 1.0
    values = found.values.astype(np.float64) * unit
    return values if found.missing is None else np.where(found.missing, np.nan, values)


def width_of(column: Column) -> float:
    """The width of the declared range, in the unit of ``numbers_of``."""
    if not column.is_numeric:
        return float(max(column.levels - 1, 1))
    if column.lattice is not None:
        return float(column.lattice[1] - column.lattice[0] or 1) * 10.0 ** -(column.decimals or 0)
    return float(column.upper) - float(column.lower)  # type: ignore[arg-type]
