"""What the Diagnostics page does: compare runs with the original."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic
from dpsynth_core.diagnostics.evaluation import evaluate
from dpsynth_core.diagnostics.regression import RegressionDiagnostic
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.regression.design import can_be_outcome
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.forecast import Forecast, Scenario, alternatives, forecast_each
from dpsynth_core.runs.jobs import on_private_table
from pages.shared.mechanism.actions import offered_delta
from pages.shared.session import Session
from pages.shared.table_work import ForecastRecord, RunRecord, TableWork
from pages.shared.tasks import Task

EXAMINATION, ADVICE = "examination", "advice"
MAX_COMPARED = 4
"""Runs that fit side by side."""


def next_missing(runs: Iterable[RunRecord], columns: tuple[str, ...]) -> RunRecord | None:
    """The first of these runs whose columns have not been compared with the original yet."""
    return next((run for run in runs if columns not in run.evaluations), None)


def examine(work: TableWork, run: RunRecord, columns: tuple[str, ...]) -> Task:
    """Compare a run with the original in a worker; it spends nothing, because its result never leaves the session."""
    result = run.result
    return work.tasks.start(
        EXAMINATION,
        "The comparison",
        on_private_table,
        partial(evaluate, columns=columns),
        work.data.table,
        result.schema,
        result.tables[0],
        configured(result, target_of(work, columns)),
        about=(run, columns),
        store=lambda evaluation: run.evaluations.update({columns: evaluation}),
    )


def scenario_of_run(work: TableWork, run: RunRecord) -> Scenario:
    """A release as a forecast sees it: public facts only."""
    config = run.config
    return Scenario(mechanism=config.mechanism, schema=run.result.schema, n=work.n, budget=config.fitted)


def start_advice(session: Session, run: RunRecord) -> Task:
    """Forecast what changes would do, in a worker: from public facts, so it spends nothing."""
    work, delta = session.work, offered_delta(session)
    scenario = scenario_of_run(work, run)

    def store(found: dict[str, Forecast]) -> None:
        work.advice = ForecastRecord(scenario=scenario, found=found, delta=delta)

    ways = alternatives(scenario, delta)
    return work.tasks.start(ADVICE, "The forecast", forecast_each, ways, about=scenario, store=store)


def configured(outcome: RunResult, target: str = "") -> tuple[Diagnostic, ...]:
    """Every diagnostic, with what it needs to know: the release's epsilon, its other tables, and the target."""
    return tuple(
        _regression(outcome, target or None) if key == RegressionDiagnostic.key else kind()
        for key, kind in DIAGNOSTICS.items()
    )


def target_of(work: TableWork, columns: tuple[str, ...]) -> str:
    """The column that a model is to explain, if it is among these and can be explained."""
    schema = work.schema
    known = work.target in columns and schema is not None and work.target in schema.names
    return work.target if known and schema is not None and can_be_outcome(schema[work.target]) else ""


def choose_target(work: TableWork, target: str) -> None:
    """Declare what a model is to explain; comparisons made before get a regression of it."""
    if target == work.target:
        return
    work.target = target
    if target:
        regress(work, target, ())


def _regression(
    outcome: RunResult, left: str | None = None, right: tuple[str, ...] | None = None
) -> RegressionDiagnostic:
    epsilon = None if outcome.guarantee.budget is None else float(outcome.config.total.epsilon)
    return RegressionDiagnostic(outcome=left, predictors=right or None, epsilon=epsilon, more=outcome.tables[1:])


def regress(work: TableWork, outcome: str, predictors: tuple[str, ...]) -> None:
    """Another regression in every comparison that includes these columns. Quick enough not to need a worker."""
    private = work.private
    if private is None:
        raise DPSynthError("The public facts are not complete. Correct them on the Data page.")
    for run in work.runs:
        for columns, evaluation in run.evaluations.items():
            if RegressionDiagnostic.key in evaluation and {outcome, *predictors} <= set(columns):
                chosen = _regression(run.result, outcome, predictors)
                (again,) = evaluate(private, run.result.tables[0], [chosen], columns=columns).results
                results = tuple(again if result.key == again.key else result for result in evaluation.results)
                run.evaluations[columns] = replace(evaluation, results=results)
