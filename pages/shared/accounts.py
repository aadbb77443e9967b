"""The ledger of this installation, and the account of the table in use."""

from __future__ import annotations

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.runs.stored_run import load_release
from dpsynth_core.table.paid_estimate import PaidEstimate
from pages.shared.session import Session
from pages.shared.sign_in import visitor
from pages.shared.table_work import TableWork

MAX_OPENED_BYTES = 256 * 2**20
"""Files of stored releases that are read without being asked for."""
TOO_LARGE = "It is large, so the app has not opened it yet."


def open_ledger() -> Ledger:
    """This installation's ledger, in which whoever looks at the page enters what they do."""
    return installed_ledger(by=visitor())


def decision_store() -> DecisionStore:
    """Where decisions are recorded: in the ledger."""
    return DecisionStore(open_ledger())


def remember_look(work: TableWork | None) -> None:
    """Record with the data set, once, that somebody has seen private diagnostics of it."""
    if work is None or work.look_recorded or work.data.fingerprint is None or not work.examined:
        return
    decision_store().record_look(work.data.fingerprint)
    work.look_recorded = True


def paid_estimates(work: TableWork) -> tuple[PaidEstimate, ...]:
    """The private estimates that count for this table: in release mode, those that its account has paid for."""
    if work.data.fingerprint is not None:
        work.estimates = open_ledger().estimates(work.data.fingerprint)
    return work.estimates


def open_stored_releases(session: Session, *, every: bool = False) -> None:
    """Take in the stored releases of the data set that are not among its runs yet; what cannot be read is noted.

    They were made in another browser, before a restart, or by a run that went on after its table was left.

    Args:
        session: Whose table it is.
        every: Also the large ones, which otherwise wait until somebody asks for them.
    """
    account = account_of(session)
    if account is None:
        return
    work, settings = session.work, Settings.from_environment()
    if every:
        work.unopened.clear()
    known = {run.charge for run in work.runs} | set(work.unopened)
    opened = sum(each.nbytes for each in account.releases if each.charge in known - set(work.unopened))
    own = work.data.version or account.fingerprint
    for stored in account.releases:
        if stored.charge in known or stored.version != own:
            continue  # a release of another version must not be compared with these rows
        if not every and opened + stored.nbytes > MAX_OPENED_BYTES:
            work.unopened[stored.charge] = TOO_LARGE
            continue
        try:
            work.add_run(load_release(stored, settings), stored.charge, made=stored.stored)
        except DPSynthError as problem:
            work.unopened[stored.charge] = str(problem)
        opened += stored.nbytes


def account_of(session: Session) -> Account | None:
    """The data set's account; None in teaching mode or before one is opened."""
    if session.current is None or session.current.data.fingerprint is None:
        return None
    return open_ledger().account(session.current.data.fingerprint)
