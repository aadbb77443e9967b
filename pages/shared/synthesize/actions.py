"""What the Synthesize page does: charge the data set and start a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import VERSION
from dpsynth_core.ledger.declarations import DeclarationStore
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.runs.stored_run import PaidRun, StoreOrder, execute_and_store
from pages.shared.accounts import open_ledger, paid_estimates
from pages.shared.formatting import format_loss
from pages.shared.mechanism.actions import FORECAST
from pages.shared.room import ROOM
from pages.shared.session import Session
from pages.shared.tasks import RUN, Task, runner


def start(session: Session, config: RunConfig) -> Task:
    """Charge the data set (in release mode), then hand the run to a worker."""
    with session.work.tasks.starting:
        return _start(session, config)


def _start(session: Session, config: RunConfig) -> Task:
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
    config.check_length(work.n)
    if work.data.server is not None:
        if config.selection is not None:
            raise DPSynthError(
                "The best of several runs can be chosen only where all rows are in memory, not for a table on this "
                "server. Choose one mechanism."
            )
        replace(work.data.server, by=session.person).check()
    ROOM.check(config.copies * work.data.nbytes)
    # What does not fit is refused before anything is charged, and so is a run that no worker could do.
    seconds = config.seconds(work.schema, work.n)
    runner()
    work.tasks.drop(FORECAST)  # the run needs the worker more
    asked = (work.data.original(session.person), work.schema, config, paid_estimates(work))
    more: dict[str, Any] = {"about": config, "expected": max(seconds, 1.0)}
    if work.data.fingerprint is None:
        return work.tasks.start(RUN, "The run", execute, *asked, store=work.add_run, **more)
    DeclarationStore(open_ledger()).check_facts(work.data.fingerprint, work.schema)
    charge = _charge(work.data.fingerprint, config, work.data.version)
    order = StoreOrder(settings=Settings.from_environment(), charge=charge.id)

    def store(made: PaidRun) -> None:
        work.add_run(made.result, charge.id, store_problem=made.problem)

    cost = format_loss(config.total.epsilon, config.total.delta)
    return work.tasks.start(
        RUN, "The run", execute_and_store, *asked, order, store=store, charge=charge, cost=cost, **more
    )


def _charge(fingerprint: str, config: RunConfig, version: str | None) -> LedgerCharge:
    keys, purpose = config.mechanism.key, "Synthesize with"
    if config.selection is not None:
        keys = ", ".join(candidate.key for candidate in config.selection.candidates)
        purpose = f"Choose privately the best of up to {config.selection.max_runs} runs of"
    return open_ledger().reserve(
        fingerprint,
        config.total,
        purpose=f"{purpose} {keys}",
        details={"mechanism": keys, "tables": config.copies, **({VERSION: version} if version else {})},
    )
