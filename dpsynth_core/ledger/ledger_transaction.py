"""A transaction that may add records: each gets its link in the chain, and each is entered by somebody who may."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import sqlalchemy as sa

from dpsynth_core.errors import RoleError
from dpsynth_core.ledger.accounts import Details
from dpsynth_core.ledger.chain import Chain, Link, RecordKind
from dpsynth_core.ledger.people import Person, Role
from dpsynth_core.ledger.tables import DECLARATIONS

DeclarationKind: TypeAlias = Literal["sign-in", "account", "facts", "table", "rows", "apart"]
"""That sign-in is in force; an account with its total; public facts; a table that shares an account; a sketch of the
rows of a table; that a table which shares rows with others is about other people."""


@dataclass(kw_only=True)
class LedgerTransaction:
    """A transaction that nobody else writes in."""

    connection: sa.Connection
    chain: Chain
    by: Person
    """Whoever enters its records."""
    last: Link | None = None

    def link(self, kind: RecordKind, item: str | int) -> None:
        """Chain a record that was just inserted."""
        self.last = self.chain.append(self.connection, kind, item)

    def admit(self, fingerprint: str, *roles: Role, action: str) -> None:
        """Refuse whoever may not do this; the first who is signed in makes sign-in a condition for good.

        Args:
            fingerprint: Of an account.
            roles: Each of them is enough.
            action: As the end of "You may not ...".

        Raises:
            RoleError: They have none of these roles, or nobody has signed in although this ledger is used with it.
        """
        in_force = signs_in(self.connection)
        if in_force and not self.by.known:
            raise RoleError(
                "This ledger is used with sign-in, and nobody has signed in here. Whoever runs this server must set up "
                "sign-in again: docs/server.md says how."
            )
        self.by.require(*roles, action=action)
        if self.by.signed_in and not in_force:
            self.declare(fingerprint, "sign-in")

    def declare(self, fingerprint: str, kind: DeclarationKind, about: str = "", details: Details | None = None) -> None:
        """Record what somebody states about a data set."""
        text = json.dumps(dict(details or {}), allow_nan=False, sort_keys=True)
        values = {"fingerprint": fingerprint, "kind": kind, "about": about, "details": text, **self.by.to_record()}
        entered = DECLARATIONS.insert().values(**values, declared=datetime.now(UTC).isoformat())
        self.connection.execute(entered)
        newest = sa.select(sa.func.max(DECLARATIONS.c.id))  # nobody else writes in this transaction
        self.link("declaration", self.connection.scalars(newest).one())


def signs_in(connection: sa.Connection) -> bool:
    """Whether anybody who was signed in has ever entered a record here."""
    signed = sa.select(DECLARATIONS.c.id).where(DECLARATIONS.c.subject != "").limit(1)
    return connection.scalar(signed) is not None


def attached_to(connection: sa.Connection, table: str) -> str | None:
    """The account that a table was attached to; None where it was to none."""
    mine = (DECLARATIONS.c.kind == "table") & (DECLARATIONS.c.about == table)
    found: str | None = connection.scalar(sa.select(DECLARATIONS.c.fingerprint).where(mine).limit(1))
    return found
