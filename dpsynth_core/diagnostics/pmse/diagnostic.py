"""Can an observer tell the synthetic rows from the original ones?

Snoke & Slavković (2018), section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.base import (
    Diagnostic,
    Measure,
    Result,
    Scale,
    TablePair,
    Verdict,
    judge,
    some_rows,
    worst_verdict,
)
from dpsynth_core.diagnostics.features import features, frequent_labels
from dpsynth_core.diagnostics.pmse.logistic import LogisticScore, affordable_order, logistic_pmse
from dpsynth_core.errors import check_between, check_int
from dpsynth_core.inference.proportions import NORMAL_QUANTILE
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.trees.cart import CartTree, cart_pmse, fit_tree

LEVELS = 20
"""Labels of a column that get a coefficient of their own."""
LIMITS = 0.02, 0.1
"""Shares of the largest possible pMSE, beyond the null's, up to which tables are called close, and beyond which far."""
NULL_SEED = 20180
"""The null depends on the original and the sizes alone, so that releases at different epsilon share it."""
REGRESSIONS = {1: "Regression, main effects", 2: "Regression, with pairs of columns"}
READINGS: dict[Verdict, str] = {
    "excellent": "An observer does no better than with a fresh sample of the original.",
    "good": "An observer tells the tables apart slightly better than chance.",
    "fair": "An observer tells the tables apart clearly better than chance.",
    "poor": "An observer tells the tables apart easily.",
}


@dataclass(frozen=True, kw_only=True)
class PMSEDiagnostic(Diagnostic):
    """Propensity mean squared error by logistic regression and by a classification tree."""

    key: ClassVar[str] = "pmse"
    title: ClassVar[str] = "Telling the tables apart (pMSE)"
    question: ClassVar[str] = "Could an observer tell a synthetic row from an original one?"
    method: ClassVar[str] = (
        "Both tables are stacked, and a model estimates for each row the probability that it is synthetic. pMSE is "
        "the mean squared difference between that probability and the share of synthetic rows: zero if nothing tells "
        "the tables apart. Every number is given as a ratio to its value for a fresh sample of the original. For "
        "logistic regression (main effects, and products of pairs of columns where there are enough rows) that value "
        "is known in closed form. For the tree, grown as in R's rpart, one half of the original is compared several "
        "times with as many synthetic rows and with its other half. This null depends on the original alone. A null "
        "made by permuting rows would grow as the synthetic table gets worse, and the ratio would improve as epsilon "
        "falls."
    )
    scale: ClassVar[Scale] = Scale(
        name="pMSE ratio", low=0.0, high=math.inf, better="lower", good="about 1: nothing tells the tables apart"
    )

    order: int = 2
    """Highest order of the products of columns in the regression."""
    cp: float = 0.001
    """The tree's complexity parameter, as in rpart."""
    halvings: int = 10
    """How often the original is cut in two at random, for the tree's null."""
    tree_rows: int = 20_000
    """Rows of either table, at most, that the tree sees."""

    def __post_init__(self) -> None:
        check_int("order", self.order, 1, 2)
        check_between("cp", self.cp, -1e-12, 1)
        check_int("halvings", self.halvings, 3, 10_000)
        check_int("tree_rows", self.tree_rows, 100, 10**7)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        """Every model, and what gives the synthetic table away."""
        progress("Fitting regressions", 0.0)
        frequent = frequent_labels(pair.original, LEVELS)
        original, synthetic = features(pair.original, frequent), features(pair.synthetic, frequent)
        order = affordable_order(original.owner, pair.original.n + pair.synthetic.n, self.order)
        scores = {REGRESSIONS[degree]: logistic_pmse(original, synthetic, degree) for degree in range(1, order + 1)}
        trees = self._grow_trees(pair, rng, progress)
        items = [*(_measure(name, score) for name, score in scores.items()), trees.measure()]
        few = "There are too few rows, or too many columns, for products of columns: main effects only."
        return self.result(
            items,
            headline=worst_verdict(items),
            notes=(*((few,) if order < self.order else ()), *trees.notes),
            tables={
                "scores": _score_table(scores, trees),
                "giveaways": pd.DataFrame(trees.tree.importance.items(), columns=["column", "importance"]),
                "splits": pd.DataFrame({"what the tree saw": trees.tree.in_words()}),
            },
        )

    def _grow_trees(self, pair: TablePair, rng: np.random.Generator, progress: Progress) -> TreeScore:
        """The tree on all rows, and on halves: one half of the original against synthetic rows and the other half."""
        original, synthetic = (_some(table.rows(), self.tree_rows, rng) for table in (pair.original, pair.synthetic))
        n, m = len(original) // 2, min(len(original) - len(original) // 2, len(synthetic))
        # Not `rng`: the halves must be the same for every release of this original.
        fixed = np.random.default_rng(NULL_SEED)
        null, observed = [], []
        for i in range(self.halvings if n else 0):
            progress("Growing trees", (i + 1) / (self.halvings + 1))
            order = fixed.permutation(len(original))
            half, rest = original.iloc[order[:n]], original.iloc[order[n : n + m]]
            null.append(cart_pmse(half, rest, self.cp))
            observed.append(cart_pmse(half, _some(synthetic, m, rng), self.cp))
        seen = f"The tree saw {len(original):,} and {len(synthetic):,} rows."
        return TreeScore(
            tree=fit_tree(original, synthetic, cp=self.cp),
            observed=np.array(observed),
            null=np.array(null),
            rows=n + m,
            c=m / (n + m),
            notes=(seen,) if n < pair.original.n // 2 else (),
        )


@dataclass(frozen=True, kw_only=True)
class TreeScore:
    """What the trees found."""

    tree: CartTree
    """Grown on all rows of both tables."""
    observed: FloatArray
    """pMSE between a half of the original and as many synthetic rows, over random halvings."""
    null: FloatArray
    """pMSE between that half and the other one."""
    rows: int
    """In each of these comparisons."""
    c: float
    """Share of synthetic rows in them."""
    notes: tuple[str, ...]

    @property
    def expected(self) -> float:
        """Mean of the null; where no tree ever split, what telling a single row apart would give."""
        return max(float(self.null.mean()), self.c * (1 - self.c) / self.rows)

    @property
    def pmse(self) -> float:
        """Mean of the observed scores."""
        return float(self.observed.mean())

    @property
    def ratio(self) -> float:
        """Mean of the observed over that of the null."""
        return self.pmse / self.expected

    def measure(self) -> Measure:
        """As a ratio to the null."""
        if not len(self.null):
            return Measure.failed("Tree", "The original has a single row, which cannot be cut in two.")
        error = NORMAL_QUANTILE * float(self.observed.std(ddof=1)) / self.expected
        usual = max(1.0, float(self.null.max()) / self.expected)
        excess = (self.pmse - self.expected) / (self.c * (1 - self.c))
        return _ratio("Tree", self.ratio, (max(0.0, self.ratio - error), self.ratio + error), usual, excess)


def _measure(name: str, score: LogisticScore | None) -> Measure:
    if score is None:
        return Measure.failed(name, "No column varies, so there is nothing to tell rows apart by.")
    usual = 1 + NORMAL_QUANTILE * score.std / score.expected
    excess = (score.pmse - score.expected) / (score.c * (1 - score.c))
    return _ratio(name, score.ratio, score.interval, usual, excess)


def _ratio(name: str, value: float, interval: tuple[float, float], usual: float, excess: float) -> Measure:
    """A ratio to the null; ``excess`` is beyond it, as a share of the largest possible pMSE."""
    verdict = judge(value, usual, excess, LIMITS)
    return Measure(
        name=name,
        value=value,
        low=interval[0],
        high=interval[1],
        reference=1.0,
        reference_high=usual,
        verdict=verdict,
        reading=READINGS[verdict],
    )


def _score_table(scores: Mapping[str, LogisticScore | None], trees: TreeScore) -> pd.DataFrame:
    rows: list[tuple[object, ...]] = [
        (name, score.pmse, score.expected, score.ratio, score.standardised, score.terms)
        for name, score in scores.items()
        if score is not None
    ]
    if len(trees.null):
        std = float(trees.null.std(ddof=1))
        standardised = (trees.pmse - trees.expected) / std if std else math.nan
        rows.append(("Tree, half of the rows", trees.pmse, trees.expected, trees.ratio, standardised, math.nan))
    rows.append(("Tree, all rows", trees.tree.pmse, math.nan, math.nan, math.nan, trees.tree.leaves))
    return pd.DataFrame(rows, columns=["model", "pMSE", "expected", "ratio", "standardised", "terms or leaves"])


def _some(table: pd.DataFrame, max_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    return table.iloc[some_rows(len(table), max_rows, rng)]
