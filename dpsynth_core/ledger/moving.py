"""Moving a ledger to another database, for instance from a file to PostgreSQL when a team grows.

Every row is copied as it is, links included, and the copy is checked under the installation key before it counts. The
head stays where it is: whichever of the two ledgers is used next moves it on, and the other is then refused, so nobody
can spend from both.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.chain import Chain, Link, key_digest
from dpsynth_core.ledger.database import create_tables, database, transaction
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.tables import KEYS, TABLES

BATCH = 1_000
"""Rows that are copied at a time."""


def move_ledger(settings: Settings, target: str) -> Link:
    """Copy the ledger of this installation into an empty database; the last link of both.

    Args:
        settings: Of the installation, whose ledger is where it was.
        target: SQLAlchemy URL of the new database.

    Raises:
        LedgerError: The ledger was changed, or the new database is not empty or cannot be written to.
    """
    installed_ledger(settings).check()  # which also completes the chain of an older ledger
    source, copy = database(settings.ledger_url), database(target)
    if source.url == copy.url:
        raise LedgerError("The ledger is in this database already. Give the address of another one.")
    create_tables(copy, TABLES)
    chain = Chain(settings.installation_key())
    try:
        # As a writer, so that nobody charges meanwhile.
        with transaction(source, writes=True) as old, transaction(copy, writes=True) as new:
            chain.lock(old)
            _check_empty(new)
            for table in TABLES.sorted_tables:
                _copy(old, new, table)
            last = chain.check(new)
            if last != chain.check(old) or new.scalar(sa.select(KEYS.c.digest)) != key_digest(
                settings.installation_key()
            ):
                raise LedgerError("The copy is not the same as the ledger. Nothing was moved.")
    except IntegrityError as error:
        raise LedgerError("The new database does not take these records. Nothing was moved.") from error
    return last


def _check_empty(connection: sa.Connection) -> None:
    for table in TABLES.sorted_tables:
        if connection.scalar(sa.select(sa.func.count()).select_from(table)):
            raise LedgerError(
                "The new database holds a ledger already. Give an empty database, so that no two ledgers are mixed."
            )


def _copy(old: sa.Connection, new: sa.Connection, table: sa.Table) -> None:
    rows = old.execute(sa.select(table)).mappings()
    while batch := rows.fetchmany(BATCH):
        new.execute(table.insert(), [dict(row) for row in batch])
    if new.dialect.name == "postgresql" and "id" in table.c and table.c.id.autoincrement:
        # The next record must not get a number that was copied.
        sequence = sa.func.pg_get_serial_sequence(table.name, "id")
        highest = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0) + 1).scalar_subquery()
        new.execute(sa.select(sa.func.setval(sequence, highest, False)))
