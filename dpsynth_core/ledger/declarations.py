"""What people have stated about a data set: its public facts, where people sign in.

A guarantee rests on facts that somebody declares to be public. Where people sign in that is a steward, and it is on
record who and when; an analyst can use those facts or fewer columns, but no others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from dpsynth_core.errors import RoleError
from dpsynth_core.ledger.accounts import readable
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.tables import DECLARATIONS
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DeclaredFacts:
    """Public facts on record."""

    schema: Schema
    by: Person
    declared: datetime
    """In UTC."""


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
