"""Linear and logistic regression, and what several synthetic tables say together.

The combining rules are those of Raab, Nowok & Dibben (2017), Practical data synthesis for large samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.proportions import CONFIDENCE
from dpsynth_core.inference.regression.design import Design, Term, estimable

CombiningRule: TypeAlias = Literal["simple", "proper", "between"]
"""How the variance of a mean over several synthetic tables is estimated."""

LOGISTIC_STD = math.pi / math.sqrt(3)
"""Of the standard logistic law: the unit of the latent outcome of a logistic regression."""
MAX_STEPS = 100
WEAKEST_PENALTY = 1e-6
"""On squared coefficients, per row: keeps them finite where the terms separate the labels perfectly."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Coefficients in the columns' own units, the intercept first."""

    estimate: FloatArray
    """Not a number where the rows cannot tell."""
    variance: FloatArray
    freedom: float
    """Degrees of freedom behind the variance; infinite for large-sample ones."""
    rows: int

    @property
    def error(self) -> FloatArray:
        return np.sqrt(self.variance)

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Ends at 95% confidence."""
        reach = float(special.stdtrit(self.freedom, (1 + CONFIDENCE) / 2)) * self.error
        return self.estimate - reach, self.estimate + reach


def fit(design: Design, *, logistic: bool) -> Fit:
    """Least squares, or maximum likelihood for two labels."""
    kept = estimable(design.X) if design.n > 1 else []
    if design.n < len(kept) + 3:
        raise DPSynthError(f"{len(kept) + 1} coefficients need at least {len(kept) + 3} rows with an outcome.")
    if np.ptp(design.y) == 0:
        raise DPSynthError("The outcome is the same in every row.")
    middle, spread = design.X[:, kept].mean(axis=0), design.X[:, kept].std(axis=0)
    Z = np.column_stack([np.ones(design.n), (design.X[:, kept] - middle) / spread])
    coefficients, covariance, freedom = _logistic(Z, design.y > 0) if logistic else _least_squares(Z, design.y)
    # Back from standardised terms to the scale from -1 to 1: b_j = c_j / s_j, b_0 = c_0 - sum c_j m_j / s_j.
    back = np.diag(np.append(1.0, 1 / spread))
    back[0, 1:] = -middle / spread
    indices = [0, *(1 + j for j in kept)]
    matrix, shift = _units(design.terms, design.outcome, logistic=logistic)
    own = matrix[np.ix_(indices, indices)] @ back
    estimate, variance = np.full((2, len(design.terms) + 1), np.nan)
    estimate[indices] = own @ coefficients + shift[indices]
    variance[indices] = np.clip(np.diag(own @ covariance @ own.T), 0, None)
    return Fit(estimate=estimate, variance=variance, freedom=freedom, rows=design.n)


def own_units(terms: Sequence[Term], outcome: Term, unit: FloatArray, *, logistic: bool) -> FloatArray:
    """Coefficients of columns scaled to [-1, 1] in the columns' own units."""
    matrix, shift = _units(terms, outcome, logistic=logistic)
    return np.asarray(matrix @ unit + shift)


def _units(terms: Sequence[Term], outcome: Term, *, logistic: bool) -> tuple[FloatArray, FloatArray]:
    height, centre = (1.0, 0.0) if logistic else (outcome.half, outcome.middle)
    matrix = np.diag(np.append(height, [height / term.half for term in terms]))
    matrix[0, 1:] = [-height * term.middle / term.half for term in terms]
    return matrix, np.append(centre, np.zeros(len(terms)))


def _least_squares(Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    inverse = np.linalg.inv(Z.T @ Z)
    coefficients = inverse @ (Z.T @ y)
    freedom = len(y) - Z.shape[1]
    residual = float(((y - Z @ coefficients) ** 2).sum()) / freedom
    return coefficients, residual * inverse, float(freedom)


def _logistic(Z: FloatArray, truth: np.ndarray) -> tuple[FloatArray, FloatArray, float]:
    """Newton's method with a penalty that is felt only under perfect separation."""
    penalty = WEAKEST_PENALTY * len(Z) * np.eye(Z.shape[1])
    penalty[0, 0] = 0.0
    coefficients = np.zeros(Z.shape[1])
    coefficients[0] = special.logit(truth.mean())
    for _ in range(MAX_STEPS):
        chance = special.expit(Z @ coefficients)
        weight = np.maximum(chance * (1 - chance), 1e-12)
        information = (Z * weight[:, None]).T @ Z + penalty
        step = np.linalg.solve(information, Z.T @ (truth - chance) - penalty @ coefficients)
        # A long step overshoots where the labels are nearly separated.
        coefficients = coefficients + step * min(1.0, 5.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-8:
            break
    return coefficients, np.asarray(np.linalg.inv(information), dtype=np.float64), math.inf


def combined(fits: Sequence[Fit], n: int, rule: CombiningRule = "between") -> Fit:
    """What several synthetic tables say together about the population that the n original rows come from.

    With k rows in each of l tables and v the mean of their variances, v k/n estimates the original's own variance, and
    the mean of the estimates adds 1/l of what scatters between tables:

    - ``simple``: v (k/n + 1/l), where all tables come from one fitted model;
    - ``proper``: v (k/n + (1 + k/n)/l), where each table's parameters are a posterior draw of their own;
    - ``between``: v k/n + b/l, b the observed variance between estimates, which sees privacy noise too.

    A single table is taken as it is: nothing shows how far another would have been.
    """
    if len(fits) == 1:
        return fits[0]
    estimates = np.array([fit.estimate for fit in fits])
    variance = np.array([fit.variance for fit in fits]).mean(axis=0)
    rows = float(np.mean([fit.rows for fit in fits]))
    count, ratio = len(fits), rows / n
    if rule == "between":
        between = estimates.var(axis=0, ddof=1)
        total = variance * ratio + between / count
        # Satterthwaite: only b/l rests on few degrees of freedom. The coefficient that needs most caution decides.
        part = float(np.nanmax(between / count / np.maximum(total, 1e-300), initial=0.0))
        freedom = max(count - 1.0, (count - 1) / max(part, 1e-6) ** 2)
    else:
        spread = 1 / count if rule == "simple" else (1 + ratio) / count
        total, freedom = variance * (ratio + spread), math.inf
    return Fit(estimate=estimates.mean(axis=0), variance=total, freedom=freedom, rows=round(rows))


def standardised(values: FloatArray, design: Design, *, logistic: bool) -> FloatArray:
    """Slopes in standard deviations of the outcome per standard deviation of the term, both of the original."""
    spread = np.array([term.half for term in design.terms]) * design.X.std(axis=0)
    height = LOGISTIC_STD if logistic else design.outcome.half * design.y.std()
    return np.asarray(values[1:] * spread / height)
