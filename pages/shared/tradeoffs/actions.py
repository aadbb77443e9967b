"""What the Trade-offs page does: simulations on public tables. Nothing here reads a private row or spends anything.

Results on an example are kept for every visitor: the simulations are seeded, so all of them would get the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.analysts import AnalystPanel
from dpsynth_core.teaching.sweep.config import SweepConfig
from dpsynth_core.teaching.sweep.sizes import SizeSweepConfig
from pages.shared.mechanism.settings import plan_for
from pages.shared.session import Session
from pages.shared.tasks import Task
from pages.shared.tradeoffs.state import Finding
from pages.shared.tradeoffs.tables import PublicTable

MAX_SHARED = 60
MEASURING = 0.05
"""Seconds, roughly, that comparing one table takes."""
PATIENCE = 20
"""Seconds up to which work begins by itself."""
FEWER_ANALYSTS = 20, 10, 0
_lock = threading.Lock()
_known: dict[tuple[str, object, object], Any] = {}


def finding_on(session: Session, kind: str, table: PublicTable) -> Finding | None:
    """The latest result of this kind on this table; one of another table is forgotten."""
    finding = session.tradeoffs.findings.get(kind)
    if finding is not None and finding.table_id != table.id:
        del session.tradeoffs.findings[kind]
        return None
    return finding


def task_on(session: Session, kind: str, table: PublicTable) -> Task | None:
    """The latest work of this kind on this table; work on another table is cancelled."""
    task = session.tradeoffs.tasks.get(kind)
    if task is not None and task.about[0] != table.id:
        session.tradeoffs.tasks.drop(kind)
        return None
    return task


def last_config(session: Session, kind: str, table: PublicTable) -> Any | None:
    """What was last asked for on this table; None before anything was."""
    task, finding = task_on(session, kind, table), finding_on(session, kind, table)
    if task is not None:
        return task.about[1]
    return None if finding is None else finding.config


def begin(
    session: Session, kind: str, table: PublicTable, config: Any, work: Callable[..., Any], *, expected: float | None
) -> None:
    """Take a result that is known already, or hand the work to a worker."""
    tradeoffs = session.tradeoffs

    def store(result: Any) -> None:
        tradeoffs.findings[kind] = Finding(table_id=table.id, config=config, result=result)
        if table.shared:
            _share((kind, table.id, config), result)

    with _lock:
        known = _known.get((kind, table.id, config)) if table.shared else None
    if known is not None:
        tradeoffs.tasks.drop(kind)
        store(known)
        return
    tradeoffs.tasks.start(
        kind,
        "The simulation",
        work,
        table.table,
        table.schema,
        config,
        about=(table.id, config),
        store=store,
        expected=expected,
    )


def _share(key: tuple[str, object, object], result: Any) -> None:
    with _lock:
        _known[key] = result
        while len(_known) > MAX_SHARED:
            del _known[next(iter(_known))]


def sweepable() -> list[str]:
    """Mechanisms that have an epsilon at all and are meant to be used; the papers' comparators are not."""
    return [key for key, kind in MECHANISMS.items() if kind.status != "none" and not kind.comparator]


def sweep_seconds(config: SweepConfig, schema: Schema, n: int) -> float:
    """How long a sweep should take, from the mechanisms' own estimates."""
    total = 0.0
    for key in config.mechanisms:
        kind = MECHANISMS[key]
        for epsilon in config.epsilons:
            with suppress(DPSynthError):
                delta = str(config.delta) if kind.needs_delta else "0"
                plan = plan_for(kind.suggest(schema, n, epsilon), schema, n, epsilon, delta)
                total += (plan.seconds + MEASURING) * config.repetitions
            if config.discoveries:
                total += _analysing(key, schema, n, epsilon, config)
    return max(total, 1.0)


def _analysing(key: str, schema: Schema, n: int, epsilon: float, config: SweepConfig) -> float:
    budget = Budget.of(epsilon, config.delta if MECHANISMS[key].needs_delta else 0)
    try:
        mechanism = MECHANISMS[key].suggest(schema, n, epsilon)
        return AnalystPanel.of(mechanism, schema, n, budget, config.analysts).seconds
    except DPSynthError:
        return 0.0


def sizes_seconds(config: SizeSweepConfig, schema: Schema) -> float:
    """The same for a sweep over several numbers of rows."""
    return sum(sweep_seconds(config.sweep, schema, rows) for rows in config.rows)


def first_sweep(config: SweepConfig, schema: Schema, n: int, own: str) -> SweepConfig:
    """A sweep that may begin by itself: the mechanism at hand, the recommended one, and the config's own.

    Where that would take too long, with fewer simulated analysts, then with fewer mechanisms, the last ones first.
    """

    def quick(tried: SweepConfig) -> bool:
        return sweep_seconds(tried, schema, n) < PATIENCE

    bare = replace(config, analysts=0)
    wanted = dict.fromkeys((own, recommended(schema), *config.mechanisms))
    keys = [key for key in wanted if key in sweepable() and quick(replace(bare, mechanisms=(key,)))]
    for kept in range(len(keys), 0, -1):
        for analysts in dict.fromkeys((config.analysts, *(a for a in FEWER_ANALYSTS if a < config.analysts))):
            tried = replace(config, mechanisms=tuple(keys[:kept]), analysts=analysts)
            if quick(tried):
                return tried
    return replace(bare, mechanisms=(recommended(schema),))
