"""A paid run that is stored before anybody sees it, so that neither a closed page nor a stopped server can lose it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import RELEASE, StoredRelease
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.progress import RunProgress
from dpsynth_core.runs.configuration import NO_PROGRESS, RunConfig, RunResult, execute
from dpsynth_core.runs.originals import OriginalRows
from dpsynth_core.runs.saved_run import load_run, save_run
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class StoreOrder:
    """Where a release is to be stored, and for which charge."""

    settings: Settings
    charge: int
    """The ledger's number of a charge that is reserved."""


@dataclass(frozen=True, kw_only=True)
class PaidRun:
    """What a run has made, and whether it is stored."""

    result: RunResult
    problem: str = ""
    """Why it could not be stored; empty where it was."""


def execute_and_store(
    table: OriginalRows,
    schema: Schema,
    config: RunConfig,
    estimates: Iterable[PaidEstimate],
    order: StoreOrder,
    *,
    progress: RunProgress = NO_PROGRESS,
) -> PaidRun:
    """Make the synthetic tables, store them and settle the charge with their name; only then is there a result.

    Args:
        table: The private rows, in memory or where they are.
        schema: The public facts.
        config: What to run.
        estimates: Private estimates that were paid for on this table.
        order: Where to store them, and the charge to settle.
        progress: Receives the stages; raises to cancel.
    """
    result = execute(table, schema, config, estimates, progress=progress)
    progress("Storing the release", 0.99)
    try:
        store_release(result, order)
    except DPSynthError as problem:
        # It is paid for, so it must be handed over all the same.
        return PaidRun(result=result, problem=str(problem))
    return PaidRun(result=result)


def store_release(result: RunResult, order: StoreOrder) -> None:
    """Write a release to disk, then settle its charge with the file's name: what is on record was on disk before."""
    content = save_run(result)
    budget = result.guarantee.budget or result.config.total
    index = {
        "sha256": order.settings.release_store.put(content),
        "bytes": len(content),
        "configuration": read_json(result.config.to_json()),
        "status": result.guarantee.status,
        "epsilon": format_amount(budget.epsilon),
        "delta": format_amount(budget.delta),
    }
    installed_ledger(order.settings).commit(order.charge, result={RELEASE: index})


def load_release(stored: StoredRelease, settings: Settings) -> RunResult:
    """A release from the store.

    Raises:
        DPSynthError: Its file is missing or damaged, or cannot be understood.
    """
    return load_run(settings.release_store.get(stored.sha256))
