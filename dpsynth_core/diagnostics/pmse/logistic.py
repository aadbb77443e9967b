"""Propensity scores by logistic regression, with the closed-form law of their mean squared error.

Snoke, Raab, Nowok, Dibben & Slavković (2018): where the synthetic rows are drawn from the original's own law, N pMSE is
distributed as (1 - c)^2 c times a chi-square with k - 1 degrees of freedom, k the number of coefficients with the
intercept and c the share of synthetic rows.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.features import Features
from dpsynth_core.inference.proportions import NORMAL_QUANTILE

MAX_TERMS = 400
ROWS_PER_TERM = 10
"""Rows that every coefficient needs for the large-sample law to be near the truth."""
WEAK_PENALTY = 1e6
"""scikit-learn's C: so weak that it only keeps coefficients finite where the tables can be told apart perfectly."""
_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class PMSEScore:
    """What a model found, and what it would have found in a fresh sample of the original: the null."""

    pmse: float
    """Mean square of the propensity score less the share of synthetic rows."""
    expected: float
    """Mean under the null."""
    std: float
    """Under the null."""
    usual: float
    """The ratio that a fresh sample hardly ever exceeds."""
    error: float
    """Half the width of the ratio's 95% interval."""
    c: float
    """Share of synthetic rows."""
    terms: float
    """Coefficients besides the intercept that the rows can tell apart (k - 1); not a number for trees."""

    @property
    def ratio(self) -> float:
        """The score over its mean under the null: one is as good as a fresh sample."""
        return self.pmse / self.expected

    @property
    def beyond_chance(self) -> float:
        """What exceeds the null's mean, as a share of the largest pMSE, c (1 - c): 0 as a fresh sample, 1 if every row
        can be told."""
        return min(1.0, max(0.0, (self.ratio - 1) * self._unit))

    @property
    def usual_beyond_chance(self) -> float:
        """What a fresh sample hardly ever exceeds, on the same scale."""
        return max(0.0, (self.usual - 1) * self._unit)

    @property
    def error_beyond_chance(self) -> float:
        """Half the width of its 95% interval, on the same scale."""
        return self.error * self._unit

    @property
    def _unit(self) -> float:
        """A ratio of one, on that scale."""
        return self.expected / (self.c * (1 - self.c))

    @property
    def standardised(self) -> float:
        """Standard deviations above the mean under the null."""
        return (self.pmse - self.expected) / self.std if self.std else math.nan


def logistic_pmse(original: Features, synthetic: Features, order: int = 1) -> PMSEScore | None:
    """Fit and compare with the null; None where no coordinate varies, so that nothing can be told apart."""
    values = np.concatenate([original.values, synthetic.values])
    design = _whitened(_expanded(values, original.owner, order))
    if design.shape[1] == 0:
        return None
    label = np.repeat([0, 1], [len(original.values), len(synthetic.values)])
    c, rows = float(label.mean()), len(label)
    pmse = float(np.mean((_scores(design, label) - c) ** 2))
    terms = design.shape[1]
    unit = (1 - c) ** 2 * c / rows
    expected, std = terms * unit, math.sqrt(2 * terms) * unit
    # In large samples: a chi-square with excess L has variance 2 (k - 1) + 4 L.
    error = NORMAL_QUANTILE * math.sqrt(2 * terms + 4 * terms * max(pmse / expected - 1, 0.0)) / terms
    usual = 1 + NORMAL_QUANTILE * std / expected
    return PMSEScore(pmse=pmse, expected=expected, std=std, usual=usual, error=error, c=c, terms=terms)


def term_count(owner: tuple[str, ...], order: int) -> int:
    """Coefficients of a regression of this order, at most."""
    if order == 1:
        return len(owner)
    sizes = [owner.count(name) for name in dict.fromkeys(owner)]
    return len(owner) + (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def affordable_order(owner: tuple[str, ...], rows: int, wanted: int) -> int:
    """The highest order up to the wanted one whose coefficients the rows can bear."""
    limit = min(MAX_TERMS, rows // ROWS_PER_TERM)
    return wanted if term_count(owner, wanted) <= limit else 1


def _expanded(values: FloatArray, owner: tuple[str, ...], order: int) -> FloatArray:
    """Coordinates and, for order two, products of coordinates of different columns."""
    centred: FloatArray = values - values.mean(axis=0)
    if order == 1:
        return centred
    couples = [(i, j) for i, j in combinations(range(len(owner)), 2) if owner[i] != owner[j]]
    products = [centred[:, i] * centred[:, j] for i, j in couples]
    return np.column_stack([centred, *products]) if products else centred


def _whitened(design: FloatArray) -> FloatArray:
    """The same span in uncorrelated coordinates of unit variance, without directions that do not vary.

    Propensity scores do not change with the coordinates, and the number of columns left is k - 1.
    """
    centred = design - design.mean(axis=0)
    spread = centred.std(axis=0)
    varying = spread > _RANK_TOLERANCE
    centred = np.asarray(centred[:, varying] / spread[varying])
    if not centred.shape[1]:
        return centred
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    varies = values > _RANK_TOLERANCE * max(values[-1], 1.0) * len(values)
    return np.asarray(centred @ (vectors[:, varies] / np.sqrt(values[varies])))


def _scores(design: FloatArray, label: np.ndarray) -> FloatArray:
    # scikit-learn takes long to import, and the first page should not wait for it.
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    model = LogisticRegression(C=WEAK_PENALTY, solver="newton-cholesky", max_iter=100, tol=1e-8)
    with warnings.catch_warnings():
        # Under perfect separation coefficients creep towards infinity; the scores have long converged by then.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(design, label)
    return np.asarray(model.predict_proba(design)[:, 1])
