"""What the Data page does about tables that share their people: find them, and let them share an account."""

from __future__ import annotations

from dataclasses import replace

from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.declarations import DeclarationStore, RowOverlap
from dpsynth_core.ledger.row_sketch import sketch_rows
from dpsynth_core.ledger.settings import Settings
from pages.shared.accounts import open_ledger, paid_estimates
from pages.shared.data.actions import adopt_account_terms, suit_account
from pages.shared.session import Session


def near_accounts(session: Session) -> tuple[RowOverlap, ...]:
    """Accounts of other tables that share most of their rows with this one: a fresh budget would be a second one."""
    work = session.work
    if work.sketch is None:
        work.sketch = sketch_rows(work.data.table, Settings.from_environment().installation_key())
    return DeclarationStore(open_ledger()).overlaps(work.sketch, apart_from=work.data.fingerprint or "")


def share_account(session: Session, account: Account) -> None:
    """Let the table in use share the account of another version of it."""
    work = session.work
    assert work.data.fingerprint is not None  # noqa: S101  only offered in release mode
    store, own = DeclarationStore(open_ledger()), work.data.fingerprint
    store.attach(account.fingerprint, own)
    if work.sketch is not None:
        store.remember_rows(account.fingerprint, own, work.sketch)
    work.data = replace(work.data, fingerprint=account.fingerprint, version=own)
    paid_estimates(work)
    adopt_account_terms(session)
    suit_account(session)
