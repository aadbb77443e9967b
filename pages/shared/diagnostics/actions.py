"""What the Diagnostics page does: compare runs with the original."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic, Result
from dpsynth_core.diagnostics.classification import ClassificationDiagnostic, can_be_label
from dpsynth_core.diagnostics.classifiers import QUICK
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate, evaluate_each, evaluate_in_parts
from dpsynth_core.diagnostics.regression import RegressionDiagnostic
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.regression.design import can_be_outcome
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.forecast import Forecast, Scenario, alternatives, forecast_each
from dpsynth_core.runs.jobs import on_private_table
from pages.shared.mechanism.actions import known_forecasts, offered_delta, remember_forecasts
from pages.shared.session import Session
from pages.shared.sign_in import visitor
from pages.shared.table_work import ForecastRecord, RunRecord, TableWork
from pages.shared.tasks import Task

EXAMINATION, ADVICE, CLASSIFYING = "examination", "advice", "classifying"
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
        partial(evaluate_in_parts, columns=columns),
        work.data.sampled(visitor()),
        result.schema,
        result.tables[0],
        configured(result, target_of(work, columns), label_of(work, columns)),
        about=(run, columns),
        store=lambda evaluation: run.evaluations.update({columns: evaluation}),
    )


def ready_parts(work: TableWork, run: RunRecord, columns: tuple[str, ...]) -> Evaluation | None:
    """What is known of a comparison that is still at work."""
    task = work.tasks.get(EXAMINATION)
    if task is None or not task.active or task.about != (run, columns) or not task.job.parts:
        return None
    return Evaluation(results=task.job.parts)


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
        remember_forecasts(work, ways, found)

    ways = alternatives(scenario, delta)
    known = known_forecasts(work, ways)
    return work.tasks.start(ADVICE, "The forecast", forecast_each, ways, known, about=scenario, store=store)


def configured(outcome: RunResult, target: str = "", label: str = "") -> tuple[Diagnostic, ...]:
    """Every diagnostic, with what it needs to know: the release's epsilon, its other tables, target and label."""
    chosen: dict[str, Diagnostic] = {
        RegressionDiagnostic.key: _regression(outcome, target or None),
        ClassificationDiagnostic.key: ClassificationDiagnostic(label=label or None),
    }
    return tuple(chosen.get(key) or kind() for key, kind in DIAGNOSTICS.items())


def target_of(work: TableWork, columns: tuple[str, ...]) -> str:
    """The column that a model is to explain, if it is among these and can be explained."""
    schema = work.schema
    known = work.target in columns and schema is not None and work.target in schema.names
    return work.target if known and schema is not None and can_be_outcome(schema[work.target]) else ""


def label_of(work: TableWork, columns: tuple[str, ...]) -> str:
    """The column that classifiers are to predict, if somebody has named one that is among these and has labels."""
    named = work.label or work.target
    known = named in columns and work.schema is not None and named in work.schema.names
    return named if known and work.schema is not None and can_be_label(work.schema[named]) else ""


def choose_target(work: TableWork, target: str) -> None:
    """Declare what a model is to explain; comparisons made before get a regression of it, and classifiers of labels."""
    if target == work.target:
        return
    work.target = target
    if target:
        regress(work, target, ())
        if work.schema is not None and can_be_label(work.schema[target]):
            classify(work, target, QUICK)


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


def to_classify(work: TableWork, label: str) -> list[tuple[RunRecord, tuple[str, ...]]]:
    """The comparisons that include a label, by run and columns."""
    key = ClassificationDiagnostic.key
    return [
        (run, columns)
        for run in work.runs
        for columns, found in run.evaluations.items()
        if key in found and label in columns
    ]


def classify(work: TableWork, label: str, classifiers: tuple[str, ...]) -> Task | None:
    """Train classifiers of a label in a worker, for every comparison that includes it."""
    schema, work.label = work.schema, label
    asked = to_classify(work, label)
    if schema is None or not asked:
        return None
    chosen = ClassificationDiagnostic(label=label, classifiers=classifiers)

    def store(results: list[Result]) -> None:
        for (run, columns), again in zip(asked, results, strict=True):
            evaluation = run.evaluations[columns]
            kept = tuple(again if result.key == again.key else result for result in evaluation.results)
            run.evaluations[columns] = replace(evaluation, results=kept)

    return work.tasks.start(
        CLASSIFYING,
        "The training of classifiers",
        on_private_table,
        evaluate_each,
        work.data.sampled(visitor()),
        schema,
        [(run.result.tables[0], columns) for run, columns in asked],
        chosen,
        about=(label, classifiers),
        store=store,
        expected=len(asked) * chosen.seconds(schema, work.n),
    )
