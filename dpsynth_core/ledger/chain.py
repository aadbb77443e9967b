"""A chain over everything that the ledger has recorded, which shows when a record was changed, removed or added.

Each record (an account, a charge, its settlement, a reviewer's decision, a first look at private diagnostics, a
submission, a declaration) has a link: its position, the link before it and the record's values, under a keyed digest
(HMAC-SHA-256). Whoever does not have the installation key can neither change a record nor take one out. What is missing
at the end of the chain is noticed by the head (``dpsynth_core/ledger/head.py``).

Decisions and looks were not chained at first. A link of kind "format" says that they are, so that a record without a
link cannot pass as one from before. Submissions and declarations always were.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import sqlalchemy as sa

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.tables import (
    ACCOUNTS,
    CHAIN,
    CHARGES,
    DECISIONS,
    DECLARATIONS,
    LOOKS,
    RESULTS,
    SETTLEMENTS,
    SUBMISSIONS,
)

FirstKind: TypeAlias = Literal["account", "charge", "settlement"]
RecordKind: TypeAlias = FirstKind | Literal["decision", "look", "format", "submission", "declaration"]
FIRST_KINDS: tuple[FirstKind, ...] = get_args(FirstKind)
"""What was chained from the beginning."""
KINDS: tuple[RecordKind, ...] = (*FIRST_KINDS, "decision", "look", "format", "submission", "declaration")
FORMAT = "decisions and looks are chained"
_SIMPLE: dict[RecordKind, tuple[sa.Table, sa.Column[Any]]] = {
    "account": (ACCOUNTS, ACCOUNTS.c.fingerprint),
    "charge": (CHARGES, CHARGES.c.id),
    "decision": (DECISIONS, DECISIONS.c.id),
    "look": (LOOKS, LOOKS.c.fingerprint),
    "submission": (SUBMISSIONS, SUBMISSIONS.c.id),
    "declaration": (DECLARATIONS, DECLARATIONS.c.id),
}
"""Records that are one row, and by what each is named."""
RESTORE = (
    "Nothing can be released until it is restored: stop the app, put the newest backup of the ledger in its place and "
    "run 'python -m dpsynth_core ledger check'. README.md says more under 'If the ledger is refused'."
)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A place in the chain."""

    position: int
    """1 for the first record; 0 stands for the empty chain."""
    digest: str


START = Link(position=0, digest="")


def key_digest(key: bytes) -> str:
    """By which a ledger recognises its key.

    >>> key_digest(b"one key") == key_digest(b"another")
    False
    """
    return hmac.new(key, b"dpsynth ledger key", hashlib.sha256).hexdigest()


class Chain:
    """The links of one ledger, under its key."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, b"dpsynth ledger chain", "sha256")

    def lock(self, connection: sa.Connection) -> None:
        """Let nobody else append until the transaction ends. A SQLite writer has the whole database anyway."""
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text(f"LOCK TABLE {CHAIN.name} IN EXCLUSIVE MODE"))
        elif connection.dialect.name != "sqlite":
            connection.execute(sa.select(CHAIN.c.position).order_by(CHAIN.c.position.desc()).limit(1).with_for_update())

    def append(self, connection: sa.Connection, kind: RecordKind, item: str | int) -> Link:
        """Add the link of a record that this transaction, which holds the lock, has just inserted."""
        last = last_link(connection)
        if last == START and kind != "format":
            last = self.append(connection, "format", FORMAT)
        ((fingerprint, _, values),) = _records(connection, kind, item)
        position = last.position + 1
        digest = self._digest(position, last.digest, kind, fingerprint, str(item), *values)
        row = {"position": position, "fingerprint": fingerprint, "kind": kind, "item": str(item)}
        connection.execute(CHAIN.insert().values(**row, previous=last.digest, digest=digest))
        return Link(position=position, digest=digest)

    def is_complete(self, connection: sa.Connection) -> bool:
        """Whether decisions and looks are chained too, as they are in every ledger that is not older."""
        if last_link(connection) == START:
            return True
        marks = connection.execute(sa.select(CHAIN).where(CHAIN.c.kind == "format")).all()
        return any(self._holds(row, []) for row in marks)

    def complete(self, connection: sa.Connection) -> Link:
        """Chain the decisions and looks of an older ledger, in a transaction that holds the lock; the last link."""
        if not self.is_complete(connection):
            self.check(connection, kinds=FIRST_KINDS)
            for kind, item in list(unlinked(connection, ("decision", "look"))):
                self.append(connection, kind, item)
            self.append(connection, "format", FORMAT)
        return last_link(connection)

    def check(
        self, connection: sa.Connection, fingerprint: str | None = None, *, kinds: tuple[RecordKind, ...] = KINDS
    ) -> Link:
        """See that records and links agree, of one account or of all; the last link.

        Args:
            connection: A transaction.
            fingerprint: Of the account; None for all.
            kinds: Which records must have their links.

        Raises:
            LedgerError: A record was changed, removed or added by something other than this program.
        """
        last = last_link(connection)
        if connection.scalar(sa.select(sa.func.count()).select_from(CHAIN)) != last.position:
            raise LedgerError(f"Records of the ledger are missing or double. {RESTORE}")
        if kinds == KINDS and not self.is_complete(connection):
            raise LedgerError(f"The ledger's chain was changed. {RESTORE}")
        links = sa.select(CHAIN).order_by(CHAIN.c.position)
        links = links if fingerprint is None else links.where(CHAIN.c.fingerprint == fingerprint)
        records = {
            (kind, item): (owner, values)
            for kind in kinds
            if not (kind == "format" and last == START)
            for owner, item, values in _records(connection, kind, fingerprint=fingerprint)
        }
        before = ""
        for row in connection.execute(links):
            owner, values = records.pop((row.kind, row.item), (None, []))
            if owner is None:
                raise LedgerError(f"Record {row.position} of the ledger, of kind {row.kind!r}, is missing. {RESTORE}")
            unbroken = owner == row.fingerprint and (fingerprint is not None or row.previous == before)
            if not unbroken or not self._holds(row, values):
                raise LedgerError(f"Record {row.position} of the ledger, of kind {row.kind!r}, was changed. {RESTORE}")
            before = row.digest
        if records:
            raise LedgerError(f"The ledger has {len(records)} record(s) that nobody has entered here. {RESTORE}")
        return last

    def _holds(self, row: sa.Row[Any], values: list[Any]) -> bool:
        """Whether a link is the one that was made for a record with these values."""
        digest = self._digest(row.position, row.previous, row.kind, row.fingerprint, row.item, *values)
        return hmac.compare_digest(digest.encode(), str(row.digest).encode())

    def _digest(self, *values: Any) -> str:
        text = json.dumps(values, ensure_ascii=True, default=str)
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def last_link(connection: sa.Connection) -> Link:
    """The end of the chain."""
    newest = sa.select(CHAIN.c.position, CHAIN.c.digest).order_by(CHAIN.c.position.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return START if row is None else Link(position=row.position, digest=row.digest)


def digest_at(connection: sa.Connection, position: int) -> str | None:
    """The digest at a position of the chain; None where it does not reach so far."""
    if position == 0:
        return START.digest
    digest: str | None = connection.scalar(sa.select(CHAIN.c.digest).where(CHAIN.c.position == position))
    return digest


def has_records(connection: sa.Connection) -> bool:
    """Whether anything was ever entered, linked or not."""
    return connection.scalar(sa.select(ACCOUNTS.c.fingerprint).limit(1)) is not None


def unlinked(
    connection: sa.Connection, kinds: tuple[RecordKind, ...] = KINDS
) -> Iterator[tuple[RecordKind, str | int]]:
    """Every record of these kinds in an order in which it can be linked: a ledger from before it was chained."""
    for kind in kinds:
        if kind != "format":
            _, _, key = _query(kind)
            for (item,) in connection.execute(sa.select(key).order_by(key)):
                yield kind, item


def _records(
    connection: sa.Connection, kind: RecordKind, item: str | int | None = None, *, fingerprint: str | None = None
) -> Iterator[tuple[str, str, list[Any]]]:
    """The records of a kind: the account that each belongs to, its name and its values."""
    if kind == "format":
        if fingerprint is None:
            yield "", FORMAT, []
        return
    query, owner, key = _query(kind)
    query = query.add_columns(owner.label("owner"), key.label("name"))
    if item is not None:
        query = query.where(key == item)
    if fingerprint is not None:
        query = query.where(owner == fingerprint)
    for row in connection.execute(query):
        *values, mine, name = row
        yield str(mine), str(name), list(values)


def _query(kind: RecordKind) -> tuple[sa.Select[Any], sa.Column[Any], sa.Column[Any]]:
    """How to read the records of a kind: the query, whose they are, and by what each is named."""
    if kind in _SIMPLE:
        table, key = _SIMPLE[kind]
        return sa.select(table), table.c.fingerprint, key
    joined = SETTLEMENTS.join(CHARGES, CHARGES.c.id == SETTLEMENTS.c.charge).outerjoin(
        RESULTS, RESULTS.c.charge == SETTLEMENTS.c.charge
    )
    return sa.select(SETTLEMENTS, RESULTS.c.result).select_from(joined), CHARGES.c.fingerprint, SETTLEMENTS.c.charge
