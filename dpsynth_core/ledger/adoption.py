"""Taking over a ledger that has no head here: from an earlier version, or beside a key that came from elsewhere.

A person must say how many accounts it holds: an emptied ledger must not become the one that is remembered.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import sqlalchemy as sa

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.chain import START, Chain, key_digest, last_link, unlinked
from dpsynth_core.ledger.database import create_tables, database, transaction
from dpsynth_core.ledger.head import Head
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.tables import ACCOUNTS, CHARGES, KEYS, TABLES


@dataclass(frozen=True, kw_only=True)
class LedgerSize:
    """What a ledger holds."""

    accounts: int
    charges: int

    def __str__(self) -> str:
        return f"{self.accounts:,} account(s) and {self.charges:,} charge(s)"


def adopt(settings: Settings, *, accounts: int | None) -> LedgerSize:
    """Chain what the ledger holds and remember it in a head, if a person expects this many accounts.

    Raises:
        LedgerError: There is nothing to take over, the number is another one, or the ledger was changed.
    """
    if not os.path.lexists(settings.key_file):
        raise LedgerError(
            "There is no installation key yet, so there is nothing to adopt. The app makes key and ledger."
        )
    key = settings.installation_key()
    head = Head(file=settings.head_file, key=key)
    if head.read() is not None:
        raise LedgerError("This ledger has its head, so there is nothing to adopt. Run 'ledger check' to examine it.")
    engine, chain = database(settings.ledger_url), Chain(key)
    create_tables(engine, TABLES)
    with transaction(engine, writes=True) as connection:
        _check_owner(connection, key_digest(key))
        size = _size(connection)
        if accounts != size.accounts:
            raise LedgerError(
                f"The ledger holds {size}. Nothing was changed. If that is what you expect, repeat the command with "
                f"'--accounts {size.accounts}'; otherwise restore a backup of the ledger first."
            )
        chain.lock(connection)
        if last_link(connection) == START:
            for kind, item in list(unlinked(connection)):
                chain.append(connection, kind, item)
        chain.complete(connection)
        end = chain.check(connection)
    head.advance(end)
    return size


def _size(connection: sa.Connection) -> LedgerSize:
    accounts, charges = (
        int(connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0) for table in (ACCOUNTS, CHARGES)
    )
    return LedgerSize(accounts=accounts, charges=charges)


def _check_owner(connection: sa.Connection, digest: str) -> None:
    known = connection.scalar(sa.select(KEYS.c.digest))
    if known is None:
        connection.execute(KEYS.insert().values(id=1, digest=digest))
    elif known != digest:
        raise LedgerError(
            "This ledger was started with another installation key. Set DPSYNTH_KEY_FILE to the key file that it was "
            "started with."
        )
