"""What the ledger holds about a table."""

from __future__ import annotations

from pathlib import Path

from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.settings import Settings


def account(folder: Path) -> Account | None:
    """The account of the table ``data.csv`` in a folder, if there is one."""
    settings = Settings.from_environment()
    key = settings.installation_key()
    name, _ = file_fingerprints((folder / "data.csv").read_bytes(), key)
    return Ledger(settings.ledger_url, key=key).account(name)
