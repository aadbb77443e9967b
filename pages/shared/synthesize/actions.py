"""What the Synthesize page does: charge the data set and start a run."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.ledger import LedgerCharge
from dpsynth_core.runs.configuration import RunConfig, execute
from pages.shared.accounts import open_ledger, paid_estimates
from pages.shared.formatting import format_loss
from pages.shared.mechanism.actions import FORECAST
from pages.shared.mechanism.settings import seconds_for
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
    seconds = seconds_for(config, work.schema, work.n)
    runner()
    work.tasks.drop(FORECAST)  # the run needs the worker more
    charge = None if work.data.fingerprint is None else _charge(work.data.fingerprint, config)
    return work.tasks.start(
        RUN,
        "The run",
        execute,
        work.data.table,
        work.schema,
        config,
        paid_estimates(work),
        about=config,
        store=lambda result: work.add_run(result, None if charge is None else charge.id),
        charge=charge,
        cost=format_loss(config.total.epsilon, config.total.delta),
        expected=max(seconds, 1.0),
    )


def _charge(fingerprint: str, config: RunConfig) -> LedgerCharge:
    keys, purpose = config.mechanism.key, "Synthesize with"
    if config.selection is not None:
        keys = ", ".join(candidate.key for candidate in config.selection.candidates)
        purpose = f"Choose privately the best of up to {config.selection.max_runs} runs of"
    return open_ledger().reserve(
        fingerprint,
        config.total,
        purpose=f"{purpose} {keys}",
        details={"mechanism": keys, "tables": config.copies},
    )
