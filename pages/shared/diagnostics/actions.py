"""Examining releases against their original, without a widget in sight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.regression import RegressionDiagnostic
from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.jobs import on_private_table
from pages.shared.session import Session, Subject
from pages.shared.synthesize.actions import cancel, runner

MOST_COMPARED = 4
"""Releases that fit side by side."""


def collect_review(session: Session) -> None:
    """Keep the result of an examination that has ended."""
    job = session.examination
    if job is not None and session.subject is not None and isinstance(job.result, Evaluation):
        session.found[session.subject] = job.result
        job.result = None


def next_missing(session: Session, places: Iterable[int], columns: tuple[str, ...]) -> Subject | None:
    """The first of these releases that has not been examined yet."""
    return next(((place, columns) for place in places if (place, columns) not in session.found), None)


def examine(session: Session, subject: Subject) -> None:
    """Hand an examination to a worker; it spends nothing, because its result never leaves the session."""
    if session.data is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    if session.examination is not None and session.examination.active:
        cancel(session.examination)
    place, columns = subject
    outcome = session.outcomes[place]
    session.subject = subject
    task, table = partial(evaluate, columns=columns), session.data.table
    session.examination = runner().submit(
        "Diagnostics", on_private_table, task, table, outcome.schema, outcome.tables[0], configured(outcome)
    )


def configured(outcome: RunResult) -> tuple[Diagnostic, ...]:
    """Every diagnostic, told what it needs to know of the release: its epsilon, and its other tables."""
    return tuple(
        _regression(outcome) if key == RegressionDiagnostic.key else kind() for key, kind in DIAGNOSTICS.items()
    )


def _regression(
    outcome: RunResult, left: str | None = None, right: tuple[str, ...] | None = None
) -> RegressionDiagnostic:
    epsilon = None if outcome.guarantee.budget is None else float(outcome.config.total.epsilon)
    return RegressionDiagnostic(outcome=left, predictors=right or None, epsilon=epsilon, more=outcome.tables[1:])


def regress(session: Session, outcome: str, predictors: tuple[str, ...]) -> None:
    """Another regression, wherever one was found that looks at these columns. Quick enough not to need a worker."""
    private = session.private()
    if private is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    for (place, columns), found in list(session.found.items()):
        if RegressionDiagnostic.key in found and {outcome, *predictors} <= set(columns):
            made = session.outcomes[place]
            chosen = _regression(made, outcome, predictors)
            (again,) = evaluate(private, made.tables[0], [chosen], columns=columns).results
            results = tuple(again if result.key == again.key else result for result in found.results)
            session.found[place, columns] = replace(found, results=results)


def release_name(session: Session, place: int) -> str:
    """What a release is called on screen."""
    order = session.outcomes[place].config
    return f"{place + 1}: {order.mechanism.title}, ε {format_amount(order.each.epsilon)}"
