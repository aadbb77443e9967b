"""Starting and stopping runs, without a widget in sight."""

from __future__ import annotations

import threading

from dpsynth_core.errors import DPSynthError
from dpsynth_core.jobs import JobRunner
from dpsynth_core.orders import LedgerSettlement, Order, Outcome, run_order
from pages.shared.actions import open_ledger
from pages.shared.choices import plan_for
from pages.shared.session import Session

_lock = threading.Lock()
_runners: list[JobRunner] = []


def runner() -> JobRunner:
    """The server's worker processes, started when first needed."""
    with _lock:
        if not _runners:
            _runners.append(JobRunner())
        return _runners[0]


def start(session: Session, order: Order) -> None:
    """Charge the data set (in release mode), then hand the order to a worker."""
    if session.data is None or session.schema is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    if session.job is not None and session.job.active:
        raise DPSynthError("A run is at work already. Wait for it or cancel it.")
    if session.mode == "release" and order.seed is not None:
        raise DPSynthError("A seeded run cannot be a release. Remove the seed.")
    workers = runner()
    settlement = None
    if session.data.fingerprint is not None:
        ledger = open_ledger()
        reservation = ledger.reserve(
            session.data.fingerprint, order.total, purpose=f"Synthesize with {order.mechanism.key}",
            details={"mechanism": order.mechanism.key, "tables": order.copies},
        )  # fmt: skip
        settlement = LedgerSettlement(ledger=ledger, reservation=reservation.id)
    plan = plan_for(order.mechanism, session.schema, len(session.data.table), order.epsilon)
    session.expected = None if isinstance(plan, str) else max(plan.seconds * order.copies, 1.0)
    session.job = workers.submit(
        order.mechanism.title, run_order, session.data.table, session.schema, order, settlement=settlement
    )


def stop(session: Session) -> None:
    """Cancel the run at work."""
    if session.job is not None:
        runner().cancel(session.job)


def collect(session: Session) -> None:
    """Move a finished run's outcome into the session's history, once."""
    job = session.job
    if job is not None and job.state == "finished" and isinstance(job.result, Outcome):
        session.outcomes.append(job.result)
        job.result = None
