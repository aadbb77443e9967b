"""What a low p-value is worth for one release and one pair of columns: the work behind the Diagnostics page's panel.

Computed from what is published (the synthetic table, the mechanism, its epsilon): no private row is looked at.
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
class Enquiry:
    """A question about a release."""

    release: Release
    """What was published: its mechanism is run again, on simulated tables only."""
    table: pd.DataFrame
    """The synthetic table."""
    value: str
    """Column to compare."""
    group: str
    """Column of the two groups."""
    effect: float = 1.0
    """Difference worth finding, in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a low p-value is worth."""

    worth: Reliability
    """Chances of a false and of a missed discovery over epsilon, for a table of these two columns alone."""
    calibrated: CalibratedMannWhitney | None
    """The calibrated test on this very release; None where it cannot be had."""
    problem: str
    """Why it cannot, in words."""


def answer(enquiry: Enquiry, progress: Progress = no_progress) -> Answer:
    """Simulate."""
    release, quick = enquiry.release, isinstance(enquiry.release.mechanism, HISTOGRAMS)
    comparison = GroupComparison.of(release.schema, value=enquiry.value, group=enquiry.group)
    sizes = [len(side) for side in comparison.split(enquiry.table)]
    scale = release.n / len(enquiry.table)
    budget = release.guarantee.budget
    if budget is not None:
        budget = budget.per_row(release.schema.rows_per_person)  # simulated tables have one row a person
    epsilon = None if budget is None else budget.epsilon
    problem, calibrated = "", None
    try:
        calibrated = calibrated_mann_whitney(
            release,
            value=enquiry.value,
            group=enquiry.group,
            table=enquiry.table,
            seed=SEED,
            simulations=None if quick else FEW_SIMULATIONS,
            progress=part_of(progress, 0, 2),
        )
    except DPSynthError as error:
        problem = str(error)
    worth = p_value_reliability(
        release.mechanism,
        *(max(1, round(size * scale)) for size in sizes),
        effect=enquiry.effect,
        today=epsilon,
        bins=comparison.value.levels,
        epsilons=EPSILONS if quick else FEW_EPSILONS,
        reps=300 if quick else FEW_REPS,
        delta=None if budget is None or not budget.delta else budget.delta,
        seed=SEED,
        progress=part_of(progress, 1, 2),
    )
    return Answer(worth=worth, calibrated=calibrated, problem=problem)
