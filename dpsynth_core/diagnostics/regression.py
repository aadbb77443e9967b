"""Would a regression on the synthetic rows have given the same answer?

Interval overlap after Karr, Kohnen, Oganian, Reiter & Sanil (2006); several tables combined after Raab et al. (2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, get_args

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, Verdict, judge, worst_verdict
from dpsynth_core.errors import DPSynthError, check_choice, check_int
from dpsynth_core.inference.proportions import NORMAL_QUANTILE, UPPER_TAIL
from dpsynth_core.inference.regression.design import Design, build, choose, estimable, is_logistic
from dpsynth_core.inference.regression.fitting import CombiningRule, Fit, combined, fit, standardised
from dpsynth_core.inference.regression.private import functional_mechanism, k_norm_mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable

LIMITS = 0.05, 0.15
"""Differences of standardised slopes up to which they are called close, and beyond which far apart."""
MEDIAN_ERROR = 0.6745
"""Of a normal estimate, in standard errors."""
LARGEST_GAP = 1e6
"""Gaps are cut off here: with many rows intervals have almost no width."""
ORIGINAL, SYNTHETIC = "original", "synthetic"
FUNCTIONAL, K_NORM = "private: functional (l1)", "private: K-norm (l-infinity)"
COMPARATORS = {FUNCTIONAL: functional_mechanism, K_NORM: k_norm_mechanism}
INTERCEPT = "intercept"
READINGS: dict[Verdict, str] = {
    "excellent": "The two intervals differ no more than those of two samples of the original would.",
    "good": "The coefficient differs more than by chance, though by little.",
    "fair": "The coefficient differs enough to be noticed.",
    "poor": "The synthetic rows give another answer.",
}


@dataclass(frozen=True, kw_only=True)
class RegressionDiagnostic(Diagnostic):
    """Coefficients and intervals from both tables, and how far the intervals are from overlapping."""

    key: ClassVar[str] = "regression"
    title: ClassVar[str] = "Regression"
    question: ClassVar[str] = "Would a regression on the synthetic rows give the same answer?"
    method: ClassVar[str] = (
        "The same linear regression (logistic for an outcome of two labels) is fitted to both tables. For every slope "
        "the overlap of the two 95% intervals is averaged over their lengths (Karr et al. 2006): 1 if they are the "
        "same, 0 if they touch, negative if they are apart. The gap is one minus the overlap. The reference is what a "
        "fresh sample of the original would show, its upper end adjusted for the number of slopes. A gap beyond "
        "it is judged by the difference of the slopes in standard deviations of the outcome per standard deviation of "
        "the predictor. Labels are compared with the first one; a missing number takes the middle of its range and a "
        "coefficient of its own. Several synthetic tables are combined as Raab et al. (2017) show. Where an epsilon is "
        "given, two regressions that are private by themselves are simulated at it, many times; their bars show where "
        "95% of these runs lie, which leaves out that the original is a sample itself."
    )
    scale: ClassVar[Scale] = Scale(
        name="interval gap",
        high=LARGEST_GAP,
        good="no more than a fresh sample of the original would show; beyond 1 the intervals do not overlap",
    )

    outcome: str | None = None
    """The column to be explained. None: the number that the others explain best."""
    predictors: tuple[str, ...] | None = None
    """The columns that explain it. None: those that correlate most with it, as many as the rows bear."""
    epsilon: float | None = None
    """For the regressions that are private by themselves. None: without them."""
    repeats: int = 100
    """How often each of those is simulated."""
    rule: CombiningRule = "between"
    """How several synthetic tables are combined."""
    more: tuple[pd.DataFrame, ...] = field(default=(), compare=False, repr=False)
    """Further synthetic tables of the same release."""

    def __post_init__(self) -> None:
        check_int("repeats", self.repeats, 2, 100_000)
        check_choice("rule", self.rule, get_args(CombiningRule))
        if self.epsilon is not None:
            Budget.of(self.epsilon)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        progress("Choosing the regression", 0.0)
        rows = min(pair.original.n, pair.synthetic.n)
        outcome, *predictors = choose(pair.original, self.outcome, self.predictors, rows) or ("",)
        if not predictors:
            return self.unable("There are too few rows, or no two columns vary, so there is nothing to regress on.")
        logistic = is_logistic(pair.original.schema[outcome])
        progress("Fitting regressions", 0.2)
        design = build(pair.original, outcome, predictors)
        # What the original cannot tell is no question to put to the synthetic rows.
        design = design.only(estimable(design.X)) if design.n else design
        try:
            original = fit(design, logistic=logistic)
            synthetic = self._synthetic(pair, design, predictors, logistic=logistic)
        except DPSynthError as error:
            return self.unable(str(error))
        measures = _measures(design, original, synthetic, count=1 + len(self.more), logistic=logistic)
        simulated = {}
        if self.epsilon is not None:
            # Per row, so that a person with several rows is protected alike.
            budget = Budget.of(self.epsilon).per_row(pair.original.schema.rows_per_person)
            simulated = self._simulated(design, budget, rng, progress, logistic=logistic)
        table = _table(design, {ORIGINAL: original, SYNTHETIC: synthetic}, simulated, logistic=logistic)
        return self.result(
            measures,
            headline=worst_verdict(measures),
            notes=self._notes(outcome, predictors, logistic=logistic),
            tables={"coefficients": table},
        )

    def _synthetic(self, pair: TablePair, design: Design, predictors: Sequence[str], *, logistic: bool) -> Fit:
        """What the synthetic table says, or all of them together."""
        wanted = [term.name for term in design.terms]
        tables = [pair.synthetic, *(PrivateTable(frame, pair.original.schema) for frame in self.more)]
        fits = []
        for table in tables:
            whole = build(table, design.outcome.column, predictors)
            names = [term.name for term in whole.terms]
            fits.append(fit(whole.only([names.index(name) for name in wanted]), logistic=logistic))
        return combined(fits, design.n, self.rule)

    def _simulated(
        self, design: Design, budget: Budget, rng: np.random.Generator, progress: Progress, *, logistic: bool
    ) -> dict[str, FloatArray]:
        """Coefficients of the private regressions, one line for each repeat. Seeded, so nothing here is a release."""
        drawn = {}
        for step, (name, mechanism) in enumerate(COMPARATORS.items()):
            progress("Simulating private regressions", 0.5 + 0.25 * step)
            seeds = rng.integers(0, 2**63, self.repeats)
            drawn[name] = np.array(
                [mechanism(design, SeededNoise(budget, int(seed)), logistic=logistic) for seed in seeds]
            )
        return drawn

    def _notes(self, outcome: str, predictors: Sequence[str], *, logistic: bool) -> tuple[str, ...]:
        kind = "logistic" if logistic else "linear"
        notes = [f"A {kind} regression of {outcome!r} on {', '.join(map(repr, predictors))}."]
        if logistic:
            notes.append(f"The outcome counts as yes for the second of the declared labels of {outcome!r}.")
        if self.more:
            notes.append(f"{1 + len(self.more)} synthetic tables, combined by the rule {self.rule!r}.")
        if self.epsilon is not None:
            notes.append(
                f"The private regressions are simulated with seeded noise at epsilon {self.epsilon:g}, "
                f"{self.repeats} times; their ranges hold 95% of the results."
            )
        return tuple(notes)


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Karr et al. (2006): the common part of two intervals, as a share of either, averaged; negative if apart.

    Example:
        >>> overlap((0.0, 2.0), (1.0, 3.0))
        0.5
    """
    common = min(first[1], second[1]) - max(first[0], second[0])
    return (common / (first[1] - first[0]) + common / (second[1] - second[0])) / 2


def _gap(apart: float, widths: tuple[float, float]) -> float:
    """One less the overlap of two intervals of these widths whose middles are so far apart."""
    shared = overlap((-widths[0] / 2, widths[0] / 2), (apart - widths[1] / 2, apart + widths[1] / 2))
    return min(max(1 - shared, 0.0), LARGEST_GAP)


def _measures(design: Design, original: Fit, synthetic: Fit, *, count: int, logistic: bool) -> list[Measure]:
    def unit(values: FloatArray) -> FloatArray:
        return standardised(values, design, logistic=logistic)

    slopes, others = unit(original.estimate), unit(synthetic.estimate)
    errors, other_errors = unit(original.error), unit(synthetic.error)
    # A perfect fit has intervals without any width.
    least = 1e-9 * (1 + np.abs(slopes))
    widths, other_widths = (np.maximum(2 * unit(f.interval[1] - f.estimate), least) for f in (original, synthetic))
    known = max(1, int(np.isfinite(others).sum()))
    # One fresh sample in forty exceeds this in any of its slopes (Sidak).
    usual = float(ndtri((1 + UPPER_TAIL ** (1 / known)) / 2))
    ratio = original.rows / (synthetic.rows * count)
    measures = []
    for j, term in enumerate(design.terms):
        if not np.isfinite(others[j]):
            why = "The synthetic rows cannot tell: this does not vary there, or only together with other columns."
            measures.append(Measure.failed(term.name, why, (term.column,)))
            continue
        width = widths[j], other_widths[j]
        apart = abs(others[j] - slopes[j])
        doubt = NORMAL_QUANTILE * math.hypot(errors[j], other_errors[j])
        fresh = max(errors[j], least[j]) * math.sqrt(1 + ratio)
        alike = width[0], width[0] * math.sqrt(ratio if count == 1 else 1 + ratio)
        value, high = _gap(apart, width), _gap(usual * fresh, alike)
        verdict = judge(value, high, apart, LIMITS)
        measures.append(
            Measure(
                name=term.name,
                columns=(design.outcome.column, term.column),
                value=value,
                low=_gap(max(0.0, apart - doubt), width),
                high=_gap(apart + doubt, width),
                reference=_gap(MEDIAN_ERROR * fresh, alike),
                reference_high=high,
                verdict=verdict,
                reading=f"{READINGS[verdict]} Intervals overlap by {max(1 - value, 0.0):.0%}.",
            )
        )
    return measures


def _table(
    design: Design, fits: Mapping[str, Fit], simulated: Mapping[str, FloatArray], *, logistic: bool
) -> pd.DataFrame:
    """Every coefficient from every source, in the columns' own units and standardised."""
    sources = {name: (found.estimate, *found.interval) for name, found in fits.items()}
    for name, drawn in simulated.items():
        low, middle, high = np.quantile(drawn, (1 - UPPER_TAIL, 0.5, UPPER_TAIL), axis=0)
        sources[name] = (middle, low, high)
    names = [INTERCEPT, *(term.name for term in design.terms)]
    parts = []
    for name, values in sources.items():
        plain = dict(zip(("estimate", "low", "high"), values, strict=True))
        unit = {
            f"standardised {key}": np.append(np.nan, standardised(value, design, logistic=logistic))
            for key, value in plain.items()
        }
        parts.append(pd.DataFrame({"term": names, "source": name, **plain, **unit}))
    return pd.concat(parts, ignore_index=True)
