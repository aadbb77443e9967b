"""What a reviewer needs to see before deciding: diagnostics, the nearest rows, the risk of false discoveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dpsynth_core.diagnostics import Diagnostic
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.mann_whitney import default_group
from dpsynth_core.diagnostics.nearest_rows import NearestRows, nearest_rows
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference import ErrorRates, GroupComparison, error_rates
from dpsynth_core.inference.group_comparison import ordered
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

REPETITIONS = 1_000
"""Simulated releases of each kind behind the false-discovery risk."""
FEWEST_REPETITIONS = 40
"""With fewer, the risk would be anybody's guess."""
MOST_SECONDS = 30.0
"""Of expected computing for that risk; slower mechanisms get fewer repetitions."""
SEED = 20_240


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was found about a release. Private: for internal review."""

    evaluation: Evaluation
    """Every diagnostic's result."""
    nearest: NearestRows | None
    """How close synthetic rows come to original ones; None where that cannot be said."""
    discoveries: ErrorRates | None
    """How often tests between two groups err on releases like this one; None where that cannot be said."""
    pair: tuple[str, str] | None
    """The value and the group column that the tests stand for."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why ``nearest`` or ``discoveries`` is None, by that name."""
    releasable: Literal[False] = field(default=False, init=False)
    """Never: it was computed from private rows."""


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest:
    """What evidence to gather, as plain values that can be sent to a worker."""

    outcome: RunResult
    """The release."""
    diagnostics: tuple[str | Diagnostic, ...] | None = None
    """Which diagnostics; None: all."""
    evaluation: Evaluation | None = None
    """What diagnostics found before; they do not run again then."""


def gather(private: PrivateTable, search: EvidenceRequest, *, progress: Progress = no_progress) -> Evidence:
    """Gather the evidence on a release's first table. Spends nothing, because its result stays in the building.

    Args:
        private: The original.
        search: The release, and what is known of it already.
        progress: Told about stages; raises to cancel.
    """
    outcome, problems = search.outcome, {}
    found = search.evaluation or evaluate(
        private, outcome.tables[0], search.diagnostics, progress=_part(progress, 0.0, 0.7)
    )
    nearest, discoveries, pair = None, None, default_pair(private.schema)
    try:
        nearest = nearest_rows(
            private, outcome.tables[0], np.random.default_rng(SEED), progress=_part(progress, 0.7, 0.8)
        )
    except DPSynthError as error:
        problems["nearest"] = str(error)
    try:
        discoveries = discovery_rates(outcome, private.n, pair, progress=_part(progress, 0.8, 1.0))
    except DPSynthError as error:
        problems["discoveries"] = str(error)
    return Evidence(evaluation=found, nearest=nearest, discoveries=discoveries, pair=pair, problems=problems)


def default_pair(schema: Schema) -> tuple[str, str] | None:
    """A value and a group column to be tested, from public facts: the first of each kind."""
    group = default_group(schema)
    values = [column.name for column in schema if column.name != group and ordered(column)]
    return (values[0], group) if group is not None and values else None


def discovery_rates(
    outcome: RunResult, n: int, pair: tuple[str, str] | None, *, progress: Progress = no_progress
) -> ErrorRates:
    """How often an ordinary test errs on releases of two such columns, by simulation: no private row is looked at."""
    if pair is None:
        raise DPSynthError("This table has no column with two levels and another one with an order.")
    comparison = GroupComparison.of(outcome.schema, value=pair[0], group=pair[1])
    first, second = (max(1, len(side)) for side in comparison.split(outcome.tables[0]))
    mechanism, budget = outcome.config.mechanism, outcome.config.each.per_row(outcome.schema.rows_per_person)
    reps = REPETITIONS
    if not isinstance(mechanism, HISTOGRAMS):
        each = mechanism.plan(outcome.schema.select(pair), n, budget).seconds
        reps = min(100, int(MOST_SECONDS / (2 * each)))
    if reps < FEWEST_REPETITIONS:
        raise DPSynthError("One run of this mechanism takes too long to repeat it often enough here.")
    return error_rates(
        mechanism, epsilon=budget.epsilon, delta=budget.delta or None, n=n, ratio=first / (first + second),
        bins=max(2, comparison.value.levels), reps=reps, seed=SEED, progress=progress,
    )  # fmt: skip


def _part(progress: Progress, start: float, end: float) -> Progress:
    def told(stage: str, done: float, /, *points: Point) -> None:
        progress(stage, start + done * (end - start), *points)

    return told
