"""The ledger of this installation, and the account of the table in use."""

from __future__ import annotations

from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.table.paid_estimate import PaidEstimate
from pages.shared.session import Session
from pages.shared.table_work import TableWork


def open_ledger() -> Ledger:
    """This installation's ledger."""
    return installed_ledger()


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


def account_of(session: Session) -> Account | None:
    """The data set's account; None in teaching mode or before one is opened."""
    if session.current is None or session.current.data.fingerprint is None:
        return None
    return open_ledger().account(session.current.data.fingerprint)
