"""Work on specimens in the background, without a widget in sight. Nothing here reads a private row or spends anything.

What was found on an example is kept for every visitor: it is seeded, so all of them would find the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep import AnalystPanel, SizeSweepConfig, SweepConfig
from pages.shared.mechanism.settings import plan_for
from pages.shared.session import Session, Trial
from pages.shared.synthesize.actions import cancel, runner
from pages.shared.tradeoffs.tables import Specimen

MOST_KEPT = 60
MEASURING = 0.05
"""Seconds, roughly, that comparing one table takes."""
PATIENCE = 20
"""Seconds up to which work begins by itself."""
_lock = threading.Lock()
_known: dict[tuple[str, object, object], Any] = {}


def current_trial(session: Session, kind: str, specimen: Specimen) -> Trial | None:
    """The trial of this kind on this table, with its result if it has one; one of another table is ended."""
    trial = session.trials.get(kind)
    if trial is None:
        return None
    if trial.mark != specimen.mark:
        drop(session, kind)
        return None
    if trial.job is not None and trial.job.state == "finished" and trial.job.result is not None:
        trial.result, trial.job.result = trial.job.result, None
        if specimen.shared:
            _keep((kind, trial.mark, trial.order), trial.result)
    return trial


def begin_trial(session: Session, kind: str, specimen: Specimen, order: Any, task: Callable[..., Any]) -> Trial:
    """Take what is known already, or hand the work to a worker."""
    drop(session, kind)
    with _lock:
        found = _known.get((kind, specimen.mark, order)) if specimen.shared else None
    job = None if found is not None else runner().submit(kind, task, specimen.table, specimen.schema, order)
    session.trials[kind] = Trial(mark=specimen.mark, order=order, job=job, result=found)
    return session.trials[kind]


def drop(session: Session, kind: str) -> None:
    """End a trial and forget it."""
    trial = session.trials.pop(kind, None)
    if trial is not None and trial.job is not None and trial.job.active:
        cancel(trial.job)


def _keep(name: tuple[str, object, object], result: Any) -> None:
    with _lock:
        _known[name] = result
        while len(_known) > MOST_KEPT:
            del _known[next(iter(_known))]


def sweepable() -> list[str]:
    """Mechanisms that have an epsilon at all."""
    return [key for key, kind in MECHANISMS.items() if kind.status != "none"]


def sweep_seconds(order: SweepConfig, schema: Schema, n: int) -> float:
    """How long a sweep should take, from the mechanisms' own estimates."""
    total = 0.0
    for key in order.mechanisms:
        kind = MECHANISMS[key]
        for epsilon in order.epsilons:
            with suppress(DPSynthError):
                delta = str(order.delta) if kind.needs_delta else "0"
                plan = plan_for(kind.suggest(schema, n, epsilon), schema, n, epsilon, delta)
                total += (plan.seconds + MEASURING) * order.repetitions
            if order.discoveries:
                total += _analysing(key, n, epsilon, order)
    return max(total, 1.0)


def _analysing(key: str, n: int, epsilon: float, order: SweepConfig) -> float:
    budget = Budget.of(epsilon, order.delta if MECHANISMS[key].needs_delta else 0)
    try:
        return AnalystPanel.of(key, n, budget, order.analysts).seconds
    except DPSynthError:
        return 0.0


def sizes_seconds(order: SizeSweepConfig, schema: Schema) -> float:
    """The same for a sweep over several numbers of rows."""
    return sum(sweep_seconds(order.sweep, schema, rows) for rows in order.rows)


def with_mechanisms(order: SweepConfig, schema: Schema, n: int) -> SweepConfig:
    """The order without mechanisms that would take too long to begin by themselves; the first one always stays."""
    quick = [key for key in order.mechanisms
             if sweep_seconds(replace(order, mechanisms=(key,)), schema, n) < PATIENCE]  # fmt: skip
    return replace(order, mechanisms=tuple(quick) or order.mechanisms[:1])
