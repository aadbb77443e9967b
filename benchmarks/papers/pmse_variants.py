"""The pMSE mechanism as the paper has it, where the app offers what is proven or works better.

Snoke & Slavković (2018) score by greedy trees, bound one row's effect twice as loosely as docs/proofs.md, and let
random walks begin from a flat prior.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError, check_between, check_choice, check_int
from dpsynth_core.mechanisms.pmse import PMSE
from dpsynth_core.mechanisms.pmse.column_models import NOMINAL, ColumnModel
from dpsynth_core.mechanisms.pmse.mechanism import JUDGES
from dpsynth_core.mechanisms.pmse.objective import PMSEObjective, Randomness
from dpsynth_core.privacy.budget import Guarantee
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.trees.cart import cart_pmse

FLAT_STD = 100_000**0.5
"""Of the paper's prior N(0, 100000), section 6."""


@dataclass(frozen=True, kw_only=True)
class PaperPMSE(PMSE):
    """The pMSE mechanism with the paper's own choices, one by one."""

    cart: bool = False
    """Score by CART in place of the best tree. One row can move it further than any proof allows, so epsilon is not
    guaranteed; it is also slow."""
    cp: float = 0.01
    """Share of misclassified rows that a split of CART must save (rpart's cp)."""
    tree_depth: int = 30
    """Most splits of CART on a path."""
    bound: Literal["tight", "paper"] = "tight"
    """How far one row can move the score: as proven in docs/proofs.md, or the paper's, twice as large."""
    prior: Literal["bounds", "flat"] = "bounds"
    """What random walks expect before looking: a moderate use of the declared bounds, or the paper's N(0, 100000)."""
    over_pairs: Literal["mean", "worst"] = "mean"
    """How scores of different pairs of columns are combined."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("cp", self.cp, 0, 1)
        check_int("tree_depth", self.tree_depth, 1, 30)
        check_choice("bound", self.bound, ("tight", "paper"))
        check_choice("prior", self.prior, ("bounds", "flat"))
        check_choice("over_pairs", self.over_pairs, ("mean", "worst"))
        if self.cart and self.criterion != "optimal":
            raise ParameterError("criterion", self.criterion, allowed="optimal with cart")

    @property
    def bound_factor(self) -> int:
        """Times the proven bound."""
        return 1 if self.bound == "tight" else 2

    def judge(self, guarantee: Guarantee) -> Guarantee:
        """Nothing is proven of a score by CART."""
        if self.cart:
            guarantee = guarantee.weakened(
                "heuristic",
                "Scored by greedy trees, which one row can move further than the bound that epsilon rests on.",
            )
        return super().judge(guarantee)

    def _objective(self, table: PrivateTable, models: tuple[ColumnModel, ...], randomness: Randomness) -> PMSEObjective:
        if self.cart:
            return CartObjective(table, models, randomness, cp=self.cp, depth=self.tree_depth)
        if self.over_pairs == "worst":
            return WorstPairObjective(table, models, randomness, judge=JUDGES[self.criterion])
        return super()._objective(table, models, randomness)

    def _walk_prior(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (np.zeros_like(mean), np.full_like(std, FLAT_STD)) if self.prior == "flat" else (mean, std)


class WorstPairObjective(PMSEObjective):
    """The largest score over the pairs in place of their mean."""

    def __call__(self, thetas: FloatArray, last: int, pairs: IntArray) -> FloatArray:
        """The score of each line of parameters."""
        return np.max([super(WorstPairObjective, self).__call__(thetas, last, pair[None]) for pair in pairs], axis=0)


class CartObjective(PMSEObjective):
    """As ``PMSEObjective``, by CART with rpart's rules on all columns of the pairs together."""

    def __init__(
        self, table: PrivateTable, models: tuple[ColumnModel, ...], randomness: Randomness, *, cp: float, depth: int
    ) -> None:
        super().__init__(table, models, randomness)
        self._cp, self._depth = cp, depth

    def __call__(self, thetas: FloatArray, last: int, pairs: IntArray) -> FloatArray:
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
