"""One column's part of a sequential model: its parameters, their prior, and what they mean.

Columns are made one after the other, each from those before it. Every column has one or more *features*, numbers of
mean zero and variance one that predict later columns: a number's or an ordered label's latent normal value, or one
indicator for each category but the first.

- A number is location + scale * h(L) with L standard normal, h the identity or a skewed curve (Tukey's g: shifted
  log-normal for a positive skew, normal for zero), cut off at the declared bounds and rounded to the declared step.
- An ordered label (also a whole number with few values) is the interval between cut points that L falls into.
- A boolean or category is drawn by a (multinomial) logit of the features.

L depends on earlier features t through its *correlations* r with them: L = w.t + sqrt(1 - r.w) z, w = R^-1 r, with R
the features' correlation matrix. So location and scale describe the column by itself whatever its predictors, and each
correlation describes one pair of columns. For two normal columns this is the five-parameter model of Snoke & Slavković,
section 5: X2 given X1 is a linear regression.

All parameters are unconstrained numbers with a normal prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.schema import Schema

NumberLaw: TypeAlias = Literal["normal", "skewed"]
NORMAL, SKEWED, ORDERED, NOMINAL = range(4)
"""How a column is made."""
FEW_VALUES = 8
"""Whole numbers with no more values than this are ordered labels: no bell curve fits them."""


@dataclass(frozen=True, kw_only=True)
class NormalPrior:
    """A normal prior for each of some parameters."""

    mean: FloatArray
    std: FloatArray


@dataclass(frozen=True, kw_only=True)
class ColumnModel:
    """What is public about one column's part."""

    column: Column
    form: int
    before: int
    """Features of the columns before it."""

    @property
    def levels(self) -> int:
        """Labels, or values of a whole number that is treated as one; zero for other numbers."""
        return (_values(self.column) or self.column.levels) if self.form in (ORDERED, NOMINAL) else 0

    @property
    def steps(self) -> int:
        """Steps between the bounds; zero for a continuum."""
        points = self.column.lattice
        return 0 if points is None or self.levels else points[1] - points[0]

    @property
    def own(self) -> int:
        """Parameters that describe the column by itself, without missing values."""
        return {NORMAL: 2, SKEWED: 3}.get(self.form, self.levels - 1)

    @property
    def weights_each(self) -> int:
        """Parameters for each earlier feature."""
        if self.form == NOMINAL:
            return self.levels - 1
        return 0 if self.levels == 1 else 1

    @property
    def size(self) -> int:
        """All parameters, in this order: own, missing, weights of earlier features."""
        return self.own + self.column.nullable + self.weights_each * self.before

    @property
    def features(self) -> int:
        """How many numbers later columns are predicted from."""
        return max(self.levels - 1, 0) if self.form == NOMINAL else int(self.levels != 1)

    @property
    def layout(self) -> tuple[int, ...]:
        """What compiled code needs to know of the column, in the order that it unpacks."""
        return self.form, self.levels, self.steps, int(self.column.nullable), self.before

    @cached_property
    def prior(self) -> NormalPrior:
        """From the declared bounds: a column fills a fair part of its range and depends moderately on others."""
        if self.form in (NORMAL, SKEWED):
            # Location anywhere between the bounds; scale from a fiftieth of the range to all of it; mild skew.
            mean, std = [0.5, math.log(0.15), 0.0][: self.own], [0.35, 1.0, 0.5][: self.own]
        elif self.form == ORDERED:
            # Each label's share of what the labels before it left over: even shares on average.
            left = np.arange(self.levels, 1, -1)
            mean, std = list(-np.log(left - 1.0)), [1.5] * self.own
        else:
            mean, std = [0.0] * self.own, [1.5] * self.own
        if self.column.nullable:
            mean, std = [*mean, -2.0], [*std, 1.5]
        weights_each = self.weights_each * self.before
        return NormalPrior(mean=np.array([*mean, *[0.0] * weights_each]), std=np.array([*std, *[0.6] * weights_each]))

    def values(self, positions: Positions) -> FloatArray:
        """A column as the score needs it: numbers as shares of their range, labels by place, missing as NaN."""
        values = positions.values.astype(np.float64)
        if not self.levels:
            low, width = self._range
            values = (values - low) / width
        return values if positions.missing is None else np.where(positions.missing, np.nan, values)

    def positions(self, values: FloatArray) -> Positions:
        missing = np.isnan(values)
        filled = np.where(missing, 0.0, values)
        low, width = self._range
        placed = filled if self.levels else low + filled * width
        whole = self.levels or self.steps
        fitted = np.rint(placed).astype(np.int64) if whole else np.clip(placed, low, low + width)
        return Positions(values=fitted, missing=missing if self.column.nullable else None)

    @property
    def _range(self) -> tuple[float, float]:
        """Smallest position and how far they reach; lattice positions count steps from zero."""
        if self.column.lattice is not None or not self.column.is_numeric:
            return 0.0, float(max(self.steps, 1))
        lower, upper = float(self.column.lower), float(self.column.upper)  # type: ignore[arg-type]
        return lower, upper - lower


def _values(column: Column) -> int:
    """How many values a whole number (or day, or decimal) has; zero for everything else."""
    points = column.lattice if column.is_numeric else None
    return 0 if points is None else points[1] - points[0] + 1


ColumnModels: TypeAlias = tuple[ColumnModel, ...]
"""One for each column, in the schema's order."""


def column_models(schema: Schema, law: NumberLaw) -> ColumnModels:
    """The parts of a sequential model, in the schema's order."""
    models: list[ColumnModel] = []
    for column in schema:
        before = sum(model.features for model in models)
        models.append(ColumnModel(column=column, form=_form(column, law), before=before))
    return tuple(models)


def _form(column: Column, law: NumberLaw) -> int:
    if column.kind in ("categorical", "boolean"):
        return NOMINAL
    if column.kind == "ordinal" or 0 < _values(column) <= FEW_VALUES:
        return ORDERED
    return NORMAL if law == "normal" else SKEWED
