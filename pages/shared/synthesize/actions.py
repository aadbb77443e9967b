"""What the Synthesize page does: charge the data set and start a run."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.ledger import LedgerCharge
from dpsynth_core.runs.configuration import RunConfig, execute
from pages.shared.accounts import open_ledger
from pages.shared.formatting import format_loss
from pages.shared.mechanism.settings import plan_for
from pages.shared.session import Session
from pages.shared.tasks import Task, runner

RUN = "run"


def start(session: Session, config: RunConfig) -> Task:
    """Charge the data set (in release mode), then hand the run to a worker."""
    work = session.work
    before = work.tasks.get(RUN)
    if work.schema is None:
        raise DPSynthError("The public facts are not complete. Correct them on the Data page.")
    if before is not None and before.active:
        raise DPSynthError("A run is under way already. Wait for it or cancel it.")
    if before is not None:
        before.collect()
    if session.mode == "release" and config.seed is not None:
        raise DPSynthError("A seeded run cannot be a release. Remove the seed.")
    # What does not fit is refused before anything is charged, and so is a run that no worker could do.
    plan = plan_for(config.mechanism, work.schema, work.n, config.epsilon, config.delta)
    runner()
    charge = None if work.data.fingerprint is None else _charge(work.data.fingerprint, config)
    return work.tasks.start(
        RUN,
        "The run",
        execute,
        work.data.table,
        work.schema,
        config,
        about=config,
        store=lambda result: work.add_run(result, None if charge is None else charge.id),
        charge=charge,
        cost=format_loss(config.total.epsilon, config.total.delta),
        expected=max(plan.seconds * config.copies, 1.0),
    )


def _charge(fingerprint: str, config: RunConfig) -> LedgerCharge:
    return open_ledger().reserve(
        fingerprint,
        config.total,
        purpose=f"Synthesize with {config.mechanism.key}",
        details={"mechanism": config.mechanism.key, "tables": config.copies},
    )
