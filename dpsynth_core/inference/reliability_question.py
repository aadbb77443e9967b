"""How reliable a low p-value is for one release and one pair of columns: the work behind the Diagnostics page's panel.

Only published facts are used (the synthetic table, the mechanism, its epsilon), never a private row.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrated_mann_whitney
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.reliability import EPSILONS, Reliability, p_value_reliability
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.runs.workers import part_of

FEW_EPSILONS = (0.1, 1.0, 10.0)
FEW_REPS, FEW_SIMULATIONS = 100, 99
"""For mechanisms that must run repetition by repetition."""
SEED = 20240


@dataclass(frozen=True, kw_only=True)
class ReliabilityQuestion:
    """A question about a release; its mechanism is run again, on simulated tables only."""

    release: Release
    table: pd.DataFrame
    """The synthetic table that was published."""
    value: str
    group: str
    effect: float = 1.0
    """The difference that matters, in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class ReliabilityAnswer:
    """How reliable a low p-value is."""

    reliability: Reliability
    """Over epsilon, for a table of these two columns alone."""
    calibrated: CalibratedMannWhitney | None
    """The calibrated test on this very release, where it can be computed."""
    problem: str
    """Why it cannot be, otherwise."""


def answer(question: ReliabilityQuestion, progress: Progress = no_progress) -> ReliabilityAnswer:
    release, table = question.release, question.table
    quick = isinstance(release.mechanism, HISTOGRAMS)
    comparison = GroupComparison.of(release.schema, value=question.value, group=question.group)
    problem, calibrated = "", None
    try:
        calibrated = calibrated_mann_whitney(
            release,
            value=question.value,
            group=question.group,
            table=table,
            seed=SEED,
            simulations=None if quick else FEW_SIMULATIONS,
            progress=part_of(progress, 0, 2),
        )
    except DPSynthError as error:
        problem = str(error)
    budget = release.budget
    if budget is not None:
        budget = budget.per_row(release.schema.rows_per_person)  # simulated tables have one row a person
    n1, n2 = (max(1, round(len(side) * release.n / len(table))) for side in comparison.split(table))
    reliability = p_value_reliability(
        release.mechanism,
        n1,
        n2,
        effect=question.effect,
        today=None if budget is None else budget.epsilon,
        bins=comparison.value.levels,
        epsilons=EPSILONS if quick else FEW_EPSILONS,
        reps=300 if quick else FEW_REPS,
        delta=None if budget is None or not budget.delta else budget.delta,
        seed=SEED,
        progress=part_of(progress, 1, 2),
    )
    return ReliabilityAnswer(reliability=reliability, calibrated=calibrated, problem=problem)
