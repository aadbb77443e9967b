"""The paper's score: the pMSE of a greedy tree, which has no bound on what one row does to it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.pmse.parts import NOMINAL, Part
from dpsynth_core.mechanisms.pmse.score import Randomness, Score
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.trees.cart import cart_pmse


class GreedyScore(Score):
    """As ``Score``, by CART with rpart's rules on all columns of the pairs together."""

    def __init__(
        self, table: PrivateTable, parts: tuple[Part, ...], randomness: Randomness, *, cp: float, depth: int
    ) -> None:
        super().__init__(table, parts, randomness)
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
            part, line = self.parts[j], values[j]
            columns[part.column.name] = line
            if part.form == NOMINAL:
                codes = np.where(np.isnan(line), -1, line).astype(np.int64)
                labels = pd.Index([str(k) for k in range(part.levels)])
                columns[part.column.name] = pd.Categorical.from_codes(codes, labels)
        return pd.DataFrame(columns)
