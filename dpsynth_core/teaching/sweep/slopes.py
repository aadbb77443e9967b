"""One regression that both tables are asked for, and how far the synthetic answer is off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.regression.design import Design, build, choose, estimable, is_logistic
from dpsynth_core.inference.regression.fitting import fit, standardised
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """The regression that the original explains best, and its slopes there."""

    design: Design
    """Outcome and terms of the original."""
    predictors: tuple[str, ...]
    """The columns that explain the outcome."""
    logistic: bool
    """Whether the outcome is one of two labels."""
    values: FloatArray
    """Slopes in standard deviations of the outcome per standard deviation of the term."""

    @classmethod
    def of(cls, table: PrivateTable) -> Slopes | None:
        """None where no column explains another."""
        outcome, *predictors = choose(table, None, None, table.n) or ("",)
        if not predictors:
            return None
        whole = build(table, outcome, predictors)
        design, logistic = whole.only(estimable(whole.X)), is_logistic(table.schema[outcome])
        try:
            values = standardised(fit(design, logistic=logistic).estimate, design, logistic=logistic)
        except DPSynthError:
            return None
        return cls(design=design, predictors=tuple(predictors), logistic=logistic, values=values)

    def error(self, synthetic: PrivateTable) -> float:
        """The largest difference of a slope; one that the synthetic rows cannot tell counts as zero there."""
        whole = build(synthetic, self.design.outcome.column, self.predictors)
        names = [term.name for term in whole.terms]
        other = whole.only([names.index(term.name) for term in self.design.terms])
        return float(np.abs(self._slopes(other) - self.values).max())

    def fresh(self, rng: np.random.Generator) -> float:
        """The same between two samples, with replacement, of the original."""
        n = self.design.n
        first, second = (
            self._slopes(Design(outcome=self.design.outcome, terms=self.design.terms, y=self.design.y[i],
                                X=self.design.X[i]))
            for i in rng.integers(n, size=(2, n))
        )  # fmt: skip
        return float(np.abs(first - second).max())

    def _slopes(self, design: Design) -> FloatArray:
        try:
            found = standardised(fit(design, logistic=self.logistic).estimate, self.design, logistic=self.logistic)
        except DPSynthError:
            # An outcome that does not vary any more has no slopes at all.
            return np.zeros(len(self.values))
        return np.nan_to_num(found, nan=0.0)
