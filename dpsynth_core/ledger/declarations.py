"""What people have stated about a data set: its public facts, where people sign in, and which tables share an account.

A guarantee rests on facts that somebody declares to be public. Where people sign in that is a steward, and it is on
record who and when; an analyst can use those facts or fewer columns, but no others.

A corrected or extended table is about the same people, so it belongs to the account of the earlier one: losses on all
versions add up there. A person says so. Sketches of rows tell when that is likely.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from dpsynth_core.errors import LedgerError, RoleError
from dpsynth_core.ledger.accounts import Account, find_account, readable, require_account
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.ledger_transaction import LedgerTransaction, attached_to
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.row_sketch import RowSketch, shared_share
from dpsynth_core.ledger.tables import ACCOUNTS, DECLARATIONS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DeclaredFacts:
    """Public facts on record."""

    schema: Schema
    by: Person
    declared: datetime
    """In UTC."""


@dataclass(frozen=True, kw_only=True)
class RowOverlap:
    """An account of a table that shares rows with another one. Private."""

    account: Account
    share: float
    """About which share of the smaller table's rows; from a sketch, so give or take a tenth."""


class NearAccountError(LedgerError):
    """Most rows of a table are in one that has an account: a fresh budget would be a second one for its people."""

    def __init__(self, near: tuple[RowOverlap, ...]) -> None:
        super().__init__(
            "Most rows of this table are in another one that has an account, so no account was opened and nothing was "
            "charged: with a second one, the people in both would lose more privacy than either total says."
        )
        self.near = near


class DeclarationStore:
    """Declarations in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def facts(self, fingerprint: str) -> DeclaredFacts | None:
        """The facts that were declared last; None if nobody has."""
        mine = (DECLARATIONS.c.fingerprint == fingerprint) & (DECLARATIONS.c.kind == "facts")
        newest = sa.select(DECLARATIONS).where(mine).order_by(DECLARATIONS.c.id.desc()).limit(1)
        with self._ledger.reading(fingerprint) as connection, readable("declaration"):
            row = connection.execute(newest).one_or_none()
            if row is None:
                return None
            return DeclaredFacts(
                schema=Schema.from_dict(read_json(row.details)["schema"]),
                by=Person(subject=row.subject, name=row.name),
                declared=datetime.fromisoformat(row.declared),
            )

    def declare_facts(self, fingerprint: str, schema: Schema) -> None:
        """Put public facts on record, under the name of whoever is signed in; the same facts are recorded once.

        Raises:
            RoleError: They are no steward.
        """
        known = self.facts(fingerprint)
        if known is not None and known.schema == schema.unsigned():
            return
        with self._ledger.writing(fingerprint) as entry:
            entry.admit(fingerprint, "steward", action="declare public facts")
            entry.declare(fingerprint, "facts", details={"schema": json.loads(schema.unsigned().to_json())})

    def check_facts(self, fingerprint: str, schema: Schema) -> None:
        """See that somebody answers for these facts, before anything is spent on them. Without sign-in, nobody can.

        A steward who spends on new facts thereby declares them.

        Raises:
            RoleError: No steward has declared them.
        """
        by = self._ledger.by
        if not by.signed_in:
            return
        if by.may("steward"):
            self.declare_facts(fingerprint, schema)
            return
        known = self.facts(fingerprint)
        if known is None:
            raise RoleError(
                "No steward has declared the public facts of this table yet, so nothing can be made from it. Nothing "
                "was charged. Ask a steward to open it and declare them."
            )
        names = [name for name in known.schema.names if name in schema.names]
        if set(names) != set(schema.names) or known.schema.select(schema.names) != schema.unsigned():
            raise RoleError(
                "These public facts are not the ones that a steward has declared for this table. Nothing was charged. "
                "Use the declared facts, all columns or some of them, or ask a steward to declare others."
            )

    def attach(self, fingerprint: str, table: str) -> None:
        """Let another version of the table share this account; from then on, the account is found by either.

        Args:
            fingerprint: Of the account.
            table: The other version's own.

        Raises:
            RoleError: Whoever does it is no steward.
            LedgerError: The other version has an account of its own: what was spent there cannot be moved.
        """
        with self._ledger.writing(fingerprint) as entry:
            entry.admit(fingerprint, "steward", action="attach a table to an account")
            if table == fingerprint or find_account(entry.connection, table) is not None:
                raise LedgerError("This table has an account of its own, which stays the one that it is charged to.")
            if attached_to(entry.connection, table) is None:
                entry.declare(fingerprint, "table", table)

    def open_account(
        self,
        fingerprint: str,
        sketch: Callable[[], RowSketch],
        *,
        total: Budget,
        label: str = "",
        rows_per_person: int = 1,
        apart: bool = False,
    ) -> Account:
        """The account of a table, opened if there is none yet, with the sketch by which its versions are recognised.

        Args:
            fingerprint: Of the table.
            sketch: Makes that of its rows, where it is wanted.
            total: What may be spent in all.
            label: What people call it.
            rows_per_person: The unit of protection.
            apart: Whether somebody states that it is about other people than the tables that share rows with it.

        Raises:
            NearAccountError: Most of its rows have an account already, and nobody states that.
        """
        make = functools.cache(sketch)
        if self._ledger.account(fingerprint) is None:
            make()  # before anybody has to wait for it

        def opened(entry: LedgerTransaction) -> None:
            # In the transaction that opens the account: of two versions that come at once, the second is noticed.
            entry.chain.check(entry.connection)
            near = _overlaps(entry.connection, make(), apart_from=fingerprint)
            if near and not apart:
                raise NearAccountError(near)
            if near:
                entry.declare(fingerprint, "apart", details={"from": [overlap.account.fingerprint for overlap in near]})
            entry.declare(fingerprint, "rows", fingerprint, make().to_dict())

        account = self._ledger.open_account(
            fingerprint, total=total, label=label, rows_per_person=rows_per_person, opened=opened
        )
        self.remember_rows(fingerprint, fingerprint, make)
        return account

    def remember_rows(self, fingerprint: str, table: str, sketch: Callable[[], RowSketch]) -> None:
        """Keep the sketch of a table with its account, once; one whose account has none was opened by an older version.

        Args:
            fingerprint: Of the account.
            table: The table's own.
            sketch: Makes it, where it is wanted.
        """
        with self._ledger.reading(fingerprint) as connection:
            if _is_sketched(connection, table):
                return
        made = sketch()
        with self._ledger.writing(fingerprint) as entry:
            if not _is_sketched(entry.connection, table):
                entry.admit(fingerprint, "steward", "analyst", action="add to the records of a table")
                entry.declare(fingerprint, "rows", table, made.to_dict())

    def overlaps(self, sketch: RowSketch, *, apart_from: str = "") -> tuple[RowOverlap, ...]:
        """Accounts whose tables share at least half of the smaller one's rows with this one, the nearest first.

        Args:
            sketch: Of the table at hand.
            apart_from: An account that is not asked.
        """
        with self._ledger.reading_all() as connection:
            return _overlaps(connection, sketch, apart_from=apart_from)

    def accounts(self) -> tuple[Account, ...]:
        """Every account, the newest first: what a version of a table can be attached to.

        Raises:
            RoleError: Whoever asks is no steward.
        """
        self._ledger.by.require("steward", action="see the accounts of all tables")
        with self._ledger.reading_all() as connection:
            names = connection.scalars(sa.select(ACCOUNTS.c.fingerprint).order_by(ACCOUNTS.c.created.desc())).all()
            return tuple(require_account(connection, name) for name in names)


def _is_sketched(connection: sa.Connection, table: str) -> bool:
    known = (DECLARATIONS.c.kind == "rows") & (DECLARATIONS.c.about == table)
    with readable("declaration"):
        stored = connection.scalars(sa.select(DECLARATIONS.c.details).where(known))
        return any(RowSketch.from_dict(read_json(text)) is not None for text in stored)


def _overlaps(connection: sa.Connection, sketch: RowSketch, *, apart_from: str) -> tuple[RowOverlap, ...]:
    rows = sa.select(DECLARATIONS).where(DECLARATIONS.c.kind == "rows", DECLARATIONS.c.fingerprint != apart_from)
    best: dict[str, float] = {}
    with readable("declaration"):
        for row in connection.execute(rows):
            known = RowSketch.from_dict(read_json(row.details))
            share = 0.0 if known is None else shared_share(sketch, known)
            if share > 0:
                best[row.fingerprint] = max(share, best.get(row.fingerprint, 0.0))
    return tuple(
        RowOverlap(account=require_account(connection, name), share=share)
        for name, share in sorted(best.items(), key=lambda item: -item[1])
    )
