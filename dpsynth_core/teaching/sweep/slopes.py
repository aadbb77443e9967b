"""One regression on both tables, and how far off the synthetic table's slopes are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.regression.design import Design, build, choose, estimable, is_logistic
from dpsynth_core.inference.regression.fitting import fit, standardised
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """The slopes of the outcome that the original's columns explain best."""

    design: Design
    """Of the original."""
    predictors: tuple[str, ...]
    logistic: bool
    values: FloatArray
    """In standard deviations of the outcome per standard deviation of the term."""

    @classmethod
    def of(cls, table: PrivateTable) -> Slopes | None:
        """None if no column explains another."""
        outcome, *predictors = choose(table, None, None, table.n) or ("",)
        if not predictors:
            return None
        full = build(table, outcome, predictors)
        design, logistic = full.only(estimable(full.X)), is_logistic(table.schema[outcome])
        try:
            values = standardised(fit(design, logistic=logistic).estimate, design, logistic=logistic)
        except DPSynthError:
            return None
        return cls(design=design, predictors=tuple(predictors), logistic=logistic, values=values)

    def error(self, synthetic: PrivateTable) -> float:
        """The largest difference of a slope; one that the synthetic rows do not determine counts as zero there."""
        full = build(synthetic, self.design.outcome.column, self.predictors)
        names = [term.name for term in full.terms]
        other = full.only([names.index(term.name) for term in self.design.terms])
        return float(np.abs(self._slopes(other) - self.values).max())

    def fresh_error(self, rng: np.random.Generator) -> float:
        """The same between two samples with replacement of the original."""
        first, second = (
            self._slopes(replace(self.design, y=self.design.y[rows], X=self.design.X[rows]))
            for rows in rng.integers(self.design.n, size=(2, self.design.n))
        )
        return float(np.abs(first - second).max())

    def _slopes(self, design: Design) -> FloatArray:
        try:
            slopes = standardised(fit(design, logistic=self.logistic).estimate, self.design, logistic=self.logistic)
        except DPSynthError:
            # An outcome that does not vary any more has no slopes at all.
            return np.zeros(len(self.values))
        return np.nan_to_num(slopes, nan=0.0)
