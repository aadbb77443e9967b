"""How reliable a p-value from a synthetic table is: which columns can be asked about, and asking."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

from dpsynth_core.inference.discovery_risk import discovery_risk, private_discovery_risk
from dpsynth_core.inference.group_comparison import group_labels, ordered
from dpsynth_core.runs.jobs import on_private_table
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.schema import Schema
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.tasks import Task

RISK, OWN_RISK = "p-value", "p-value of the original"
RiskKey: TypeAlias = tuple[str, str, tuple[Any, ...] | None]
"""Value column, group column and the two levels; None: all pairs of them."""


def value_columns(schema: Schema, group: str) -> list[str]:
    """Columns whose values can be compared between groups."""
    return [column.name for column in schema if column.name != group and ordered(column)]


def level_pairs(schema: Schema, group: str) -> list[tuple[Any, ...] | None]:
    """What can be compared: the two levels; or, of more, any pair or all pairs at once."""
    pairs: list[tuple[Any, ...] | None] = list(combinations(group_labels(schema[group]), 2))
    return pairs if len(pairs) == 1 else [*pairs, None]


def release_of(work: TableWork, run: RunRecord) -> Release:
    """A run as a release, with what is public about it."""
    return run.result.release(work.n)


def ask(work: TableWork, run: RunRecord, key: RiskKey) -> Task:
    """Simulate in a worker, one step finer than before; it looks at published things only, so it costs nothing."""
    value, group, levels = key
    before = run.risks.get(key)
    stage = 0 if before is None else before.stage + 1
    return work.tasks.start(
        RISK,
        "The simulation",
        partial(discovery_risk, value=value, group=group, levels=levels, table=run.result.tables[0], stage=stage),
        release_of(work, run),
        about=(run, key),
        store=lambda result: run.risks.update({key: result}),
    )


def ask_own(work: TableWork, run: RunRecord, key: RiskKey) -> Task:
    """The same with the original's own groups. Free, because its result never leaves the session."""
    value, group, levels = key
    return work.tasks.start(
        OWN_RISK,
        "The simulation",
        on_private_table,
        partial(private_discovery_risk, value=value, group=group, levels=levels, table=run.result.tables[0]),
        work.data.table,
        run.result.schema,
        release_of(work, run),
        about=(run, key),
        store=lambda result: run.own_risks.update({key: result}),
    )
