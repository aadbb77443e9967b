"""How the ledger's database is reached."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from dpsynth_core.errors import LedgerError

SQLITE_WAIT_SECONDS = 60
"""How long a SQLite writer queues behind others before it gives up."""

WRITES = "dpsynth_writes"
"""Execution option of a connection that is about to write."""


def database(url: str) -> sa.Engine:
    """An engine for a ledger, safe to use from several threads and after a fork.

    It keeps no pool: charges are few, and a connection that is idle could be carried into a forked child.
    """
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "sqlite":
            _prepare_file(parsed)
        return _engine(parsed)
    except (ArgumentError, ImportError) as error:
        raise LedgerError(
            f"The ledger's address cannot be used ({type(error).__name__}). Give a SQLAlchemy URL such as "
            "'sqlite:////srv/dpsynth/ledger.db' and install the driver that it names."
        ) from None


@contextlib.contextmanager
def transaction(engine: sa.Engine, *, writes: bool = False) -> Iterator[sa.Connection]:
    """All or nothing. A broken constraint is the caller's to explain; whatever else goes wrong is told in words."""
    try:
        with engine.connect() as connection:
            connection.execution_options(**{WRITES: writes})
            if not writes and engine.dialect.name != "sqlite":
                # All that is read belongs to one moment, as it does in SQLite anyway.
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        raise LedgerError(
            f"The ledger cannot be used: {getattr(error, 'orig', None) or error}. See that its database "
            "can be written to, and look whether the charge is on record before you run again."
        ) from error


def create_tables(engine: sa.Engine, tables: sa.MetaData) -> None:
    """Create what is not there yet."""
    # Pages open the ledger at every turn: most of the time all is there, and nobody has to queue as a writer to see it.
    with transaction(engine) as connection:
        if set(tables.tables) <= set(sa.inspect(connection).get_table_names()):
            return
    # If two processes start at once, the later one may fail; at its second look the tables are there.
    with contextlib.suppress(LedgerError, IntegrityError), transaction(engine, writes=True) as connection:
        tables.create_all(connection)
    with transaction(engine, writes=True) as connection:
        tables.create_all(connection)


def _prepare_file(url: sa.URL) -> None:
    file = url.database or ":memory:"
    if ":memory:" in file or url.query.get("mode") == "memory":
        raise LedgerError("A ledger in memory forgets what was spent. Give the absolute path of a file.")
    with contextlib.suppress(OSError):  # What cannot be made cannot be opened either, and is reported then.
        _make_private(Path(file.removeprefix("file:")))


@lru_cache(maxsize=8)
def _engine(url: sa.URL) -> sa.Engine:
    """The same one each time: it remembers how queries are written, which would otherwise take most of every look."""
    if url.get_backend_name() != "sqlite":
        # A charge that waited must see what was committed meanwhile, whatever the server's default is.
        return sa.create_engine(url, poolclass=sa.NullPool, isolation_level="READ COMMITTED")
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args={"timeout": SQLITE_WAIT_SECONDS})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(file: Path) -> None:
    """Create the file, if need be, for this account alone, and take it away from others who may read it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    # SQLite gives the files that it puts beside this one the same rights.
    restrict(file)


def restrict(path: Path) -> None:
    """Take a file or a folder away from other accounts."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        path.chmod(mode & 0o700)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # The driver must not begin transactions; _begin_sqlite does.
    for pragma in ("synchronous=FULL", "fullfsync=ON", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()
    # Only on a new file can this fail, while others use it; the file is as safe without, and the next one tries.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A writer that began as a reader could find at its first write that what it has read is out of date.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
