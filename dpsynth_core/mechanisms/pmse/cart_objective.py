"""The paper's score: the pMSE of a greedy tree, which has no bound on what one row does to it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.pmse.column_models import NOMINAL, ColumnModel
from dpsynth_core.mechanisms.pmse.objective import PMSEObjective, Randomness
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.trees.cart import cart_pmse


class CartObjective(PMSEObjective):
    """As ``PMSEObjective``, by CART with rpart's rules on all columns of the pairs together."""

    def __init__(
        self, table: PrivateTable, models: tuple[ColumnModel, ...], randomness: Randomness, *, cp: float, depth: int
    ) -> None:
        super().__init__(table, models, randomness)
        self._cp, self._depth = cp, depth

    def __call__(self, thetas: FloatArray, last: int, pairs: IntArray, *, worst: bool = False) -> FloatArray:  # noqa: ARG002
        """The score of each line of parameters."""
        columns = np.unique(pairs)
        original = self._frame(self._original, columns)
        return np.array([self._pmse(original, theta, last, columns) for theta in thetas])

    def _pmse(self, original: pd.DataFrame, theta: FloatArray, last: int, columns: IntArray) -> float:
        trial = copy.copy(self)
        trial.natural, trial._values = list(self.natural), self._values.copy()
        trial._features = self._features.copy()
        trial.settle(theta, last)
        return cart_pmse(original, self._frame(trial._values, columns), cp=self._cp, maxdepth=self._depth)

    def _frame(self, values: FloatArray, chosen: IntArray) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for j in chosen:
            model, line = self.models[j], values[j]
            columns[model.column.name] = line
            if model.form == NOMINAL:
                codes = np.where(np.isnan(line), -1, line).astype(np.int64)
                labels = pd.Index([str(k) for k in range(model.levels)])
                columns[model.column.name] = pd.Categorical.from_codes(codes, labels)
        return pd.DataFrame(columns)
