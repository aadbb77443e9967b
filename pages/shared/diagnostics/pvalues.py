"""Asking what a p-value on a release is worth, without a widget in sight."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.group_comparison import GroupComparison, group_labels, ordered
from dpsynth_core.inference.reliability_question import ReliabilityAnswer, ReliabilityQuestion, answer
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.schema import Schema
from pages.shared.session import Question, Session
from pages.shared.synthesize.actions import cancel, runner


def group_columns(schema: Schema) -> list[str]:
    """Columns that tell two groups apart."""
    return [column.name for column in schema if not column.is_numeric and len(group_labels(column)) == 2]


def value_columns(schema: Schema, group: str) -> list[str]:
    """Columns whose values can be compared between groups."""
    return [column.name for column in schema if column.name != group and ordered(column)]


def comparison_of(schema: Schema, question: Question) -> GroupComparison:
    """The two groups that a question is about."""
    return GroupComparison.of(schema, value=question[1], group=question[2])


def release_of(session: Session, place: int) -> Release:
    """A release of this session, with what is public about it."""
    if session.data is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    return session.outcomes[place].release(len(session.data.table))


def ask(session: Session, question: Question) -> None:
    """Hand the question to a worker; it looks at published things only, so it costs nothing."""
    if session.enquiry is not None and session.enquiry.active:
        cancel(session.enquiry)
    place, value, group = question
    enquiry = ReliabilityQuestion(
        release=release_of(session, place), table=session.outcomes[place].tables[0], value=value, group=group
    )
    session.question = question
    session.enquiry = runner().submit("What a p-value is worth", answer, enquiry)


def collect_answer(session: Session) -> None:
    """Keep an answer that has arrived."""
    job = session.enquiry
    if job is not None and session.question is not None and isinstance(job.result, ReliabilityAnswer):
        session.answers[session.question] = job.result
        job.result = None
