"""What the Data page does about tables that share their people: find them, and let them share an account."""

from __future__ import annotations

from dataclasses import replace

from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.declarations import DeclarationStore
from pages.shared.accounts import open_ledger, paid_estimates
from pages.shared.data.actions import adopt_account_terms, row_sketch, suit_account
from pages.shared.session import Session


def other_accounts() -> tuple[Account, ...]:
    """Accounts that a version of a table can be attached to, the newest first."""
    return DeclarationStore(open_ledger()).accounts()


def share_account(session: Session, account: Account) -> None:
    """Let the table in use share the account of another version of it."""
    work = session.work
    assert work.data.fingerprint is not None  # noqa: S101  only offered in release mode
    store, own = DeclarationStore(open_ledger()), work.data.fingerprint
    store.attach(account.fingerprint, own)
    store.remember_rows(account.fingerprint, own, lambda: row_sketch(work))
    work.data = replace(work.data, fingerprint=account.fingerprint, version=own)
    paid_estimates(work)
    adopt_account_terms(session)
    suit_account(session)
