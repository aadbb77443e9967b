"""Starting and stopping runs, without a widget in sight."""

from __future__ import annotations

import threading
from dataclasses import replace

from dpsynth_core.errors import DPSynthError
from dpsynth_core.runs.configuration import LedgerSettlement, RunConfig, RunResult, execute
from dpsynth_core.runs.jobs import Job, JobRunner
from dpsynth_core.table.simulate import simulate_table
from pages.shared.data.actions import open_ledger
from pages.shared.formatting import format_loss
from pages.shared.mechanism.settings import plan_for
from pages.shared.session import Preview, Session

PREVIEW_ROWS = 20_000
PREVIEW_SEED = 1
_lock = threading.Lock()
_runners: list[JobRunner] = []


def runner() -> JobRunner:
    """The server's worker processes, started when first needed."""
    with _lock:
        if not _runners:
            _runners.append(JobRunner(compile_ahead=True))
        return _runners[0]


def start(session: Session, order: RunConfig) -> None:
    """Charge the data set (in release mode), then hand the order to a worker."""
    if session.data is None or session.schema is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    if session.job is not None and session.job.active:
        raise DPSynthError("A run is at work already. Wait for it or cancel it.")
    if session.mode == "release" and order.seed is not None:
        raise DPSynthError("A seeded run cannot be a release. Remove the seed.")
    # What does not fit is refused before anything is charged.
    plan = plan_for(order.mechanism, session.schema, len(session.data.table), order.epsilon, order.delta)
    workers = runner()
    settlement = None
    if session.data.fingerprint is not None:
        ledger = open_ledger()
        reservation = ledger.reserve(
            session.data.fingerprint, order.total, purpose=f"Synthesize with {order.mechanism.key}",
            details={"mechanism": order.mechanism.key, "tables": order.copies},
        )  # fmt: skip
        settlement = LedgerSettlement(ledger=ledger, reservation=reservation.id)
    session.reservation = None if settlement is None else settlement.reservation
    session.job_data = session.data
    session.cost = format_loss(order.total.epsilon, order.total.delta)
    session.expected = max(plan.seconds * order.copies, 1.0)
    session.job = workers.submit(
        order.mechanism.title, execute, session.data.table, session.schema, order, charge=settlement
    )


def queue_words(job: Job) -> str:
    """How long the queue before a run is; empty once it has begun."""
    ahead = runner().ahead(job)
    if not ahead:
        return ""
    return "1 run is ahead of yours." if ahead == 1 else f"{ahead} runs are ahead of yours."


def charge_words(session: Session) -> str:
    """What the run that has ended cost."""
    if session.job is None or session.job.charged is None:
        return "Nothing is charged in teaching mode."
    if session.job.charged:
        return f"Noise had been drawn, so the budget was charged: {session.cost}."
    return "No noise had been drawn, so nothing was charged."


def cancel(job: Job) -> None:
    """End a run, wherever it stands."""
    runner().cancel(job)


def start_preview(session: Session, order: RunConfig) -> None:
    """Run the order on simulated rows with the same schema: free, because no row of the table is looked at."""
    if session.data is None or session.schema is None or session.mode != "teaching":
        raise DPSynthError("Previews are for teaching mode, with a table. Choose one on the Data page.")
    if session.preview is not None and session.preview.job.active:
        cancel(session.preview.job)
    simulated = simulate_table(session.schema, min(len(session.data.table), PREVIEW_ROWS), seed=PREVIEW_SEED)
    seeded = replace(order, copies=1, seed=PREVIEW_SEED)
    job = runner().submit("Preview", execute, simulated, session.schema, seeded)
    session.preview = Preview(order=order, simulated=simulated, job=job)


def collect(session: Session) -> None:
    """Move a finished run's outcome into the session's history, once; a run on another table is none of it."""
    if session.job is not None and session.job_data is not session.data:
        cancel(session.job)
        session.job = session.job_data = None
    job = session.job
    if job is not None and job.state == "finished" and isinstance(job.result, RunResult):
        if session.reservation is not None:
            session.paid[len(session.outcomes)] = session.reservation
        session.outcomes.append(job.result)
        job.result = None
