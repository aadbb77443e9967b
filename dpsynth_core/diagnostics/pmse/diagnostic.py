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
from dpsynth_core.diagnostics.pmse.logistic import PMSEScore, affordable_order, logistic_pmse
from dpsynth_core.errors import check_between, check_int
from dpsynth_core.inference.proportions import NORMAL_QUANTILE
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.trees.cart import CartTree, cart_pmse, fit_tree

LEVELS = 20
"""Labels of a column that get a coefficient of their own."""
LIMITS = 0.02, 0.16
"""pMSE beyond chance up to which tables are called close, and beyond which far apart: an observer who guesses which
table a row is from is right for at most 57, and 70, rows of 100."""
NULL_SEED = 20180
"""The null depends on the original and the sizes alone, so that releases at different epsilon share it."""
REGRESSIONS = {1: "Regression, main effects", 2: "Regression, pairs of columns"}
NOTHING_VARIES = "No column varies, so there is nothing to tell rows apart by."
READINGS: dict[Verdict, str] = {
    "excellent": "An observer does no better than with a fresh sample of the original.",
    "good": "An observer tells the tables apart slightly better than by chance",
    "fair": "An observer tells the tables apart clearly better than by chance",
    "poor": "An observer tells the tables apart easily",
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
        "the tables apart. What a fresh sample of the original would score by chance is taken off, and the rest is "
        "given as a share of the largest possible pMSE, so it means the same with few rows and with many. For "
        "logistic regression (main effects, and products of pairs of columns where there are enough rows) the part of "
        "chance is known in closed form. For the tree, grown as in R's rpart, one half of the original is compared "
        "several times with as many synthetic rows and with its other half. This null depends on the original alone; "
        "one made by permuting rows would grow as the synthetic table gets worse. The ratio to the null, which grows "
        "with the number of rows, is in the table of scores."
    )
    scale: ClassVar[Scale] = Scale(
        name="pMSE beyond chance", good="0: nothing tells the tables apart; at 1 every row can be told"
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
        progress("Fitting regressions", 0.0)
        frequent = frequent_labels(pair.original, LEVELS)
        points = features(pair.original, frequent), features(pair.synthetic, frequent)
        order = affordable_order(points[0].owner, pair.original.n + pair.synthetic.n, self.order)
        scores = {REGRESSIONS[degree]: logistic_pmse(*points, degree) for degree in range(1, order + 1)}
        items = [_measure(name, score, NOTHING_VARIES) for name, score in scores.items()]
        original, synthetic = (_some(table.rows(), self.tree_rows, rng) for table in (pair.original, pair.synthetic))
        halves = self._tree_score(original, synthetic, rng, progress)
        items.append(_measure("Tree", halves, "The original has a single row, which cannot be cut in two."))
        tree = fit_tree(original, synthetic, cp=self.cp)
        notes = []
        if order < self.order:
            notes.append("There are too few rows, or too many columns, for products of columns: main effects only.")
        if len(original) // 2 < pair.original.n // 2:
            notes.append(f"The tree saw {len(original):,} and {len(synthetic):,} rows.")
        tables = {
            "scores": _score_table({**scores, "Tree, half of the rows": halves}, tree),
            "giveaways": pd.DataFrame(tree.importance.items(), columns=["column", "importance"]),
            "splits": pd.DataFrame({"what the tree saw": tree.in_words()}),
        }
        return self.result(items, headline=worst_verdict(items), notes=notes, tables=tables)

    def _tree_score(
        self, original: pd.DataFrame, synthetic: pd.DataFrame, rng: np.random.Generator, progress: Progress
    ) -> PMSEScore | None:
        """One half of the original against as many synthetic rows, and against its other half, over random halvings."""
        n, m = len(original) // 2, min(len(original) - len(original) // 2, len(synthetic))
        if not n:
            return None
        # Not `rng`: the halves must be the same for every release of this original.
        fixed = np.random.default_rng(NULL_SEED)
        null, observed = np.empty(self.halvings), np.empty(self.halvings)
        for i in range(self.halvings):
            progress("Growing trees", (i + 1) / (self.halvings + 1))
            order = fixed.permutation(len(original))
            half, rest = original.iloc[order[:n]], original.iloc[order[n : n + m]]
            null[i] = cart_pmse(half, rest, self.cp)
            observed[i] = cart_pmse(half, _some(synthetic, m, rng), self.cp)
        c = m / (n + m)
        # Where no tree ever split, what telling a single row apart would give.
        expected = max(float(null.mean()), c * (1 - c) / (n + m))
        return PMSEScore(
            pmse=float(observed.mean()),
            expected=expected,
            std=float(null.std(ddof=1)),
            usual=max(1.0, float(null.max()) / expected),
            error=NORMAL_QUANTILE * float(observed.std(ddof=1)) / expected,
            c=c,
            terms=math.nan,
        )


def _measure(name: str, score: PMSEScore | None, problem: str) -> Measure:
    """What exceeds the null, as a share of the largest possible pMSE: it means the same whatever the number of rows."""
    if score is None:
        return Measure.failed(name, problem)
    value, reference_high = score.beyond_chance, score.usual_beyond_chance
    verdict = judge(value, reference_high, value, LIMITS)
    return Measure(
        name=name,
        value=value,
        low=max(0.0, value - score.error_beyond_chance),
        high=min(1.0, value + score.error_beyond_chance),
        reference=0.0,
        reference_high=reference_high,
        verdict=verdict,
        reading=_reading(verdict, value, score.c),
    )


def _reading(verdict: Verdict, value: float, c: float) -> str:
    if verdict == "excellent":
        return READINGS[verdict]
    right = 100 * best_guess(value, c)
    return f"{READINGS[verdict]}: a guess at which table a row is from is right for at most about {right:.0f} of 100."


def best_guess(share: float, c: float) -> float:
    """Chance, at most, that a guess is right, where a row is from either table with equal odds (docs/proofs.md).

    Args:
        share: pMSE over its largest value, c (1 - c).
        c: Share of synthetic rows when the model was fitted.

    Example:
        >>> best_guess(0.0, 0.5), round(best_guess(0.16, 0.5), 2), best_guess(1.0, 0.2)
        (0.5, 0.7, 1.0)
    """
    return (1 + min(1.0, math.sqrt(share / (4 * c * (1 - c))))) / 2


def _score_table(scores: Mapping[str, PMSEScore | None], tree: CartTree) -> pd.DataFrame:
    rows: list[tuple[object, ...]] = [
        (name, score.pmse, score.expected, score.ratio, score.standardised, score.terms)
        for name, score in scores.items()
        if score is not None
    ]
    rows.append(("Tree, all rows", tree.pmse, math.nan, math.nan, math.nan, tree.leaves))
    return pd.DataFrame(rows, columns=["model", "pMSE", "expected", "ratio", "standardised", "terms or leaves"])


def _some(table: pd.DataFrame, max_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    return table.iloc[some_rows(len(table), max_rows, rng)]
