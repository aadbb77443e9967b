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
from dpsynth_core.inference.experiments import ErrorRates, error_rates
from dpsynth_core.inference.group_comparison import GroupComparison, ordered
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

REPETITIONS = 1_000
"""Simulated releases of each kind behind the false-discovery risk."""
MIN_REPETITIONS = 40
"""With fewer, the estimate would say too little."""
MAX_SECONDS = 30.0
"""Expected computing time for that risk; slower mechanisms get fewer repetitions."""
SEED = 20_240


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was measured about a release. Private: for internal review."""

    evaluation: Evaluation
    nearest: NearestRows | None
    """None if it cannot be computed."""
    discoveries: ErrorRates | None
    """How often tests between two groups err on releases like this one; None if it cannot be simulated."""
    pair: tuple[str, str] | None
    """The value and the group column that the simulated tests use."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why ``nearest`` or ``discoveries`` is None, by that name."""
    releasable: Literal[False] = field(default=False, init=False)


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest:
    """What evidence to gather, as plain values that can be sent to a worker."""

    outcome: RunResult
    diagnostics: tuple[str | Diagnostic, ...] | None = None
    """None: all."""
    evaluation: Evaluation | None = None
    """Results that are known already; no diagnostic runs then."""


def gather(private: PrivateTable, request: EvidenceRequest, *, progress: Progress = no_progress) -> Evidence:
    """Gather the evidence on a release's first table. Spends nothing, because its result stays in the building.

    Args:
        private: The original.
        request: The release, and what is known of it already.
        progress: Receives the stages; raises to cancel.
    """
    outcome, pair, problems = request.outcome, default_pair(private.schema), {}
    synthetic = outcome.tables[0]
    evaluation, nearest, discoveries = request.evaluation, None, None
    if evaluation is None:
        evaluation = evaluate(private, synthetic, request.diagnostics, progress=share_of(progress, 0.0, 0.7))
    try:
        rng = np.random.default_rng(SEED)
        nearest = nearest_rows(private, synthetic, rng, progress=share_of(progress, 0.7, 0.8))
    except DPSynthError as error:
        problems["nearest"] = str(error)
    try:
        discoveries = discovery_rates(outcome, private.n, pair, progress=share_of(progress, 0.8, 1.0))
    except DPSynthError as error:
        problems["discoveries"] = str(error)
    return Evidence(evaluation=evaluation, nearest=nearest, discoveries=discoveries, pair=pair, problems=problems)


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
    mechanism, budget = outcome.config.mechanism, outcome.config.fitted.per_row(outcome.schema.rows_per_person)
    reps = REPETITIONS
    if not isinstance(mechanism, HISTOGRAMS):
        each = mechanism.plan(outcome.schema.select(pair), n, budget).seconds
        reps = min(100, int(MAX_SECONDS / (2 * each)))
    if reps < MIN_REPETITIONS:
        raise DPSynthError("One run of this mechanism takes too long to repeat it often enough here.")
    return error_rates(
        mechanism,
        epsilon=budget.epsilon,
        delta=budget.delta or None,
        n=n,
        ratio=first / (first + second),
        bins=max(2, comparison.value.levels),
        reps=reps,
        seed=SEED,
        progress=progress,
    )
