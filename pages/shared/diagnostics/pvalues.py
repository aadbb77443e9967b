"""How reliable a p-value from a synthetic table is: which columns can be asked about, and asking."""

from __future__ import annotations

from dpsynth_core.inference.group_comparison import group_labels, ordered
from dpsynth_core.inference.reliability_question import ReliabilityQuestion, answer
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.schema import Schema
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.tasks import Task

PVALUE = "p-value"


def group_columns(schema: Schema) -> list[str]:
    """Columns that tell two groups apart."""
    return [column.name for column in schema if not column.is_numeric and len(group_labels(column)) == 2]


def value_columns(schema: Schema, group: str) -> list[str]:
    """Columns whose values can be compared between groups."""
    return [column.name for column in schema if column.name != group and ordered(column)]


def release_of(work: TableWork, run: RunRecord) -> Release:
    """A run as a release, with what is public about it."""
    return run.result.release(work.n)


def ask(work: TableWork, run: RunRecord, value: str, group: str) -> Task:
    """Simulate in a worker; it looks at published things only, so it costs nothing."""
    question = ReliabilityQuestion(release=release_of(work, run), table=run.result.tables[0], value=value, group=group)
    return work.tasks.start(
        PVALUE,
        "The simulation",
        answer,
        question,
        about=(run, value, group),
        store=lambda result: run.answers.update({(value, group): result}),
    )
