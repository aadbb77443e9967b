"""How an outcome moves with a predictor, other columns held fixed, as a question to be simulated: a slope."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.correlation_test import check_ordered, correlation_pvalue, fisher_z, numbers_of, width_of
from dpsynth_core.inference.null_simulation import Findings
from dpsynth_core.inference.question import OrdinaryFinding, Question
from dpsynth_core.table.column import Column
from dpsynth_core.table.schema import Schema

MAX_OTHERS = 20
"""Columns that a slope can be adjusted for."""
SINGULAR = 1e-10
"""Share of a predictor's variance beside the others below which it says nothing of its own."""


@dataclass(frozen=True, kw_only=True)
class Slope:
    """An ordinary least-squares slope, which takes the rows for real ones."""

    slope: float
    """Change of the outcome for one unit of the predictor, the other columns held fixed."""
    std: float
    """Its ordinary standard error."""
    correlation: float
    """Of outcome and predictor, given the other columns."""
    pvalue: float
    rows: int
    """Rows with a value in every column."""


@dataclass(frozen=True, kw_only=True)
class SlopeTest(Question):
    """The ordinary t-test of a slope."""

    group: Column
    """The predictor."""
    value: Column
    """The outcome."""
    others: tuple[Column, ...] = ()
    """Held fixed."""

    @classmethod
    def of(cls, schema: Schema, *, value: str, predictor: str, others: tuple[str, ...] = ()) -> SlopeTest:
        """Errors name what cannot be used, from public facts only."""
        names = (value, predictor, *others)
        if len(set(names)) != len(names):
            raise ParameterError("columns", ", ".join(map(repr, names)), allowed="different columns")
        if len(others) > MAX_OTHERS:
            raise ParameterError("others", len(others), allowed=f"at most {MAX_OTHERS} columns")
        check_ordered(schema, names)
        return cls(group=schema[predictor], value=schema[value], others=tuple(schema[name] for name in others))

    def fit(self, table: pd.DataFrame) -> Slope | None:
        """The slope in a table; None where there is none: too few rows, or a column that does not vary by itself."""
        columns = [numbers_of(column, table) for column in (self.value, self.group, *self.others)]
        known = ~np.isnan(np.stack(columns)).any(axis=0)
        y, x, *others = (column[known] for column in columns)
        rows, free = len(y), len(y) - 2 - len(others)
        if free < 1:
            return None
        design = np.column_stack([np.ones(rows), *others])
        rest_x, rest_y = x - design @ _fitted(design, x), y - design @ _fitted(design, y)
        xx, yy, xy = float(rest_x @ rest_x), float(rest_y @ rest_y), float(rest_x @ rest_y)
        if not (_varies(self.group, x, xx) and _varies(self.value, y, yy)):
            return None
        r = min(max(xy / math.sqrt(xx * yy), -1.0), 1.0)
        return Slope(
            slope=xy / xx,
            std=math.sqrt(max(yy - xy * xy / xx, 0.0) / free / xx),
            correlation=r,
            pvalue=correlation_pvalue(r, free),
            rows=rows,
        )

    def finding(self, table: pd.DataFrame) -> OrdinaryFinding | None:
        found = self.fit(table)
        if found is None:
            return None
        fixed = f", with {len(self.others)} other column(s) held fixed" if self.others else ""
        return OrdinaryFinding(
            text=f"{self.value.name!r} changes by {found.slope:.3g} (standard error {found.std:.2g}) for one unit of "
            f"{self.group.name!r}{fixed}, in {found.rows:,} rows.",
            pvalue=found.pvalue,
        )

    def on_rows(self, table: pd.DataFrame) -> Findings:
        found = self.fit(table)
        if found is None:
            return Findings(pvalues=np.array([np.nan]), statistics=np.array([0.0]))
        # Of the partial correlation: nearly normal, and a strong relation does not blow it up as it does t.
        z = fisher_z(found.correlation, found.rows - len(self.others))
        return Findings(pvalues=np.array([found.pvalue]), statistics=np.array([z]))


def _fitted(design: FloatArray, y: FloatArray) -> FloatArray:
    coefficients, *_ = np.linalg.lstsq(design, y, rcond=None)
    return np.asarray(coefficients, dtype=np.float64)


def _varies(column: Column, values: FloatArray, rest: float) -> bool:
    """Whether a column varies at all, and beside the others; ``rest`` is what they leave of its sum of squares."""
    centred = values - values.mean()
    return rest > SINGULAR * max(float(centred @ centred), width_of(column) ** 2 * SINGULAR)
