"""How long it takes to score one line of parameters, from public facts only.

Rows of the model are made column by column: a number in a few sums, a category from an exponential for each of its
levels. Values of both tables are put into cells, and each pair of columns is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth_core.mechanisms.pmse.column_models import NOMINAL, ORDERED, SKEWED, ColumnModel, ColumnModels
from dpsynth_core.mechanisms.pmse.fit_steps import FitStep
from dpsynth_core.mechanisms.pmse.objective import CELLS, TREE

SECONDS_PER_PLACED_VALUE = 1.25e-9
"""Putting one value of either table into its cell, and making it in the simplest case."""
SECONDS_PER_PREDICTED_VALUE = 4.4e-10
"""What each predictor adds to making a value, for each logit."""
SECONDS_PER_SKEWED_VALUE = 8.2e-9
SECONDS_PER_LEVEL = {NOMINAL: 1e-8, ORDERED: 6.3e-10}
"""Of one value, by how its column is made."""
SECONDS_PER_CHOSEN_LABEL = 3.8e-9
"""What predictors add to choosing a category: which one it is can no longer be foreseen by the processor."""
SECONDS_PER_COUNTED_VALUE, SECONDS_PER_CUT_PAIR = 8.8e-10, 1.6e-8
"""For the best tree: counting a row in a pair of columns, and comparing two cuts."""
SECONDS_PER_GATHERED_VALUE = 7e-9
"""For all cells: counting a row in a pair of columns, neighbouring cells together."""


@dataclass(frozen=True, kw_only=True)
class ScoreTime:
    """Of a model, for one way to compare it with the original rows."""

    models: ColumnModels
    judge: int
    original: int
    """Rows."""
    made: int
    """Rows of the model."""

    def of(self, step: FitStep, predictors: Sequence[int]) -> float:
        """Seconds for one score of a step. ``predictors`` has for each column how many features predict it."""
        columns = sum(self._column(self.models[j], predictors[j]) for j in range(step.first, step.last + 1))
        return columns + sum(self._pair(self.models[i], self.models[k]) for i, k in step.pairs)

    def _column(self, model: ColumnModel, predictors: int) -> float:
        each = SECONDS_PER_LEVEL.get(model.form, 0.0) * model.levels + SECONDS_PER_PLACED_VALUE
        each += SECONDS_PER_PREDICTED_VALUE * predictors * model.weights_each
        if model.form == SKEWED:
            each += SECONDS_PER_SKEWED_VALUE
        if model.form == NOMINAL and predictors:
            each += SECONDS_PER_CHOSEN_LABEL
        return self.made * each + (self.made + self.original) * SECONDS_PER_PLACED_VALUE

    def _pair(self, first: ColumnModel, second: ColumnModel) -> float:
        rows = self.made + self.original
        if self.judge != TREE:
            return rows * SECONDS_PER_GATHERED_VALUE
        cuts = (first.levels or CELLS) * (second.levels or CELLS)
        return rows * SECONDS_PER_COUNTED_VALUE + cuts * SECONDS_PER_CUT_PAIR
