"""Sweeping epsilon, without a widget in sight. Teaching only: every point looks at the rows and pays nothing."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.schema import Schema
from dpsynth_core.sweep import Sweep, SweepOrder, run_sweep
from pages.shared.choices import plan_for
from pages.shared.runs import cancel, runner
from pages.shared.session import Session

CLOSED = (
    "Trying several values of epsilon on private rows and comparing the results with the original tells about the "
    "rows, again and again, and none of it would be paid for."
)
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MOST_REPETITIONS = 20
MOST_LINES = 5
"""Mechanisms in one picture."""
MEASURING = 0.1
"""Seconds, roughly, that comparing one table takes."""


def offered() -> list[str]:
    """Mechanisms that have an epsilon at all."""
    return [key for key, kind in MECHANISMS.items() if kind.status != "none"]


def expected_seconds(order: SweepOrder, schema: Schema, n: int) -> float:
    """How long it should take, from the mechanisms' own estimates."""
    total = 0.0
    for key in order.mechanisms:
        kind = MECHANISMS[key]
        for epsilon in order.epsilons:
            try:
                plan = plan_for(
                    kind.suggest(schema, n, epsilon), schema, n, epsilon, str(order.delta) if kind.needs_delta else "0"
                )
            except DPSynthError:
                continue
            total += 0.0 if isinstance(plan, str) else (plan.seconds + MEASURING) * order.repetitions
    return max(total, 1.0)


def start_sweep(session: Session, order: SweepOrder) -> None:
    """Hand a sweep to a worker; refused for private data."""
    if session.mode != "teaching":
        raise DPSynthError(f"A sweep is for public or simulated data. {CLOSED}")
    if session.data is None or session.schema is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    if session.sweep_job is not None and session.sweep_job.active:
        cancel(session.sweep_job)
    session.sweep_order, session.sweep_data = order, session.data
    session.sweep_job = runner().submit("Sweep", run_sweep, session.data.table, session.schema, order)


def collect_sweep(session: Session) -> None:
    """Keep what a sweep has found; one of another table is none of it."""
    job = session.sweep_job
    if job is None:
        return
    if session.sweep_data is not session.data or session.mode != "teaching":
        cancel(job)
        session.sweep_job = session.sweep_data = session.sweep = None
    elif isinstance(job.result, Sweep):
        session.sweep, job.result = job.result, None
