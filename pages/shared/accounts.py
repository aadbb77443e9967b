"""The ledger of this installation, and the account of the table in use."""

from __future__ import annotations

from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.settings import Settings
from pages.shared.session import Session


def open_ledger() -> Ledger:
    """This installation's ledger."""
    settings = Settings.from_environment()
    return Ledger(settings.ledger_url, key=settings.installation_key())


def account_of(session: Session) -> Account | None:
    """The data set's account; None in teaching mode or before one is opened."""
    if session.current is None or session.current.data.fingerprint is None:
        return None
    return open_ledger().account(session.current.data.fingerprint)
