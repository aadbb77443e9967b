"""How reliable a p-value from a synthetic table is: which columns can be asked about, and asking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.discovery_risk import (
    DiscoveryRisk,
    discovery_risk_in_parts,
    private_discovery_risk,
)
from dpsynth_core.inference.efforts import FIRST_SECONDS
from dpsynth_core.inference.group_comparison import group_labels, ordered
from dpsynth_core.inference.null_simulation import NullTest
from dpsynth_core.inference.stated_risk import StatedRisk, expected_seconds, nothing_simulated, too_slow
from dpsynth_core.runs.jobs import on_private_table
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.schema import Schema
from pages.shared.formatting import duration
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.tasks import Task

RISK, OWN_RISK = "p-value", "p-value of the original"
OWN_RISK_NEEDS_ROWS = "This figure needs all rows of the original in memory, so there is none for this table."
RiskKey: TypeAlias = tuple[str, str, tuple[Any, ...] | None]
"""Value column, group column and the two levels; None: all pairs of them."""
NO_WAIT = 10.0
"""Expected seconds that need no words."""
MAX_AUTOMATIC = 120.0
"""Expected seconds up to which a finer figure begins by itself; longer ones are offered."""
MAX_WAIT = 3600.0
"""Expected seconds beyond which a figure is not offered."""


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


@dataclass(frozen=True, kw_only=True)
class Wait:
    """What a figure will take, told before anybody waits for it."""

    seconds: float
    """Expected, by the mechanism's own estimate, which is a high one."""
    problem: str = ""
    """Why it is not offered."""

    @classmethod
    def of(cls, work: TableWork, run: RunRecord, test: NullTest, known: StatedRisk | None) -> Wait:
        """For the next figure after what is known."""
        try:
            stage = 0 if known is None else known.stage + 1
            seconds = expected_seconds(release_of(work, run), test, stage)
        except DPSynthError as error:
            return cls(seconds=math.inf, problem=str(error))
        return cls(seconds=seconds, problem=too_slow(seconds) if seconds > MAX_WAIT else "")

    @property
    def automatic(self) -> bool:
        """Whether it may begin by itself, while somebody reads the figure before."""
        return self.seconds <= MAX_AUTOMATIC

    def nothing_known(self, subject: str) -> str:
        """What is true before anybody has waited, where a first figure takes long or cannot be had; empty elsewhere."""
        if self.seconds <= FIRST_SECONDS:
            return ""
        why = f"A first, rough range takes {duration(self.seconds)} at most, and you can cancel at any time."
        return f"{nothing_simulated(subject)} {self.problem or why}"

    def label(self, *, first: bool) -> str:
        """What the button says: the wait too, if it is one."""
        label = "Work it out" if first else "Refine it"
        return label if self.seconds <= NO_WAIT else f"{label} ({duration(self.seconds)} at most)"


def ask(work: TableWork, run: RunRecord, key: RiskKey) -> Task:
    """Simulate in a worker, one step finer than before; it looks at published things only, so it costs nothing."""
    value, group, levels = key
    before = run.risks.get(key)
    stage = 0 if before is None else before.stage + 1
    return work.tasks.start(
        RISK,
        "The simulation",
        partial(
            discovery_risk_in_parts,
            value=value,
            group=group,
            levels=levels,
            table=run.result.tables[0],
            stage=stage,
            max_seconds=MAX_WAIT,
        ),
        release_of(work, run),
        about=(run, key),
        store=lambda result: run.risks.update({key: result}),
        background=stage > 0,
    )


def newest_figure(work: TableWork, run: RunRecord, key: RiskKey) -> DiscoveryRisk | None:
    """The finest one there is, also while the advice on it is worked out, or where somebody did not wait for that."""
    task, known = work.tasks.get(RISK), run.risks.get(key)
    if task is not None and task.about == (run, key) and task.job.parts:
        figure = task.job.parts[-1]
        if known is None or known.stage < figure.stage:
            known = run.risks[key] = figure
    return known


def ask_own(work: TableWork, run: RunRecord, key: RiskKey) -> Task:
    """The same with the original's own groups. Free, because its result never leaves the session."""
    value, group, levels = key
    if not work.data.complete:
        raise DPSynthError(OWN_RISK_NEEDS_ROWS)
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
