"""Decisions on releases, kept in the ledger's database beside the accounts they are about.

Rows are only ever inserted: a later decision stands, the earlier ones stay on record.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import LedgerError, ParameterError
from dpsynth_core.ledger.accounts import ACCOUNTS, TABLES
from dpsynth_core.ledger.database import create_tables, database, transaction
from dpsynth_core.review.decision import Decision

_decisions = sa.Table(
    "dpsynth_decisions",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), nullable=False, index=True),
    sa.Column("ticket", sa.String(200), nullable=False, unique=True),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("release", "choice", "reviewer", "note", "decided")),
    sa.Column("details", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)


class Docket:
    """Decisions in the ledger's database."""

    def __init__(self, url: str) -> None:
        """Connect, creating the table on first use."""
        self._engine = database(url)
        create_tables(self._engine, TABLES)

    def record(self, fingerprint: str, decision: Decision, *, ticket: str) -> None:
        """Keep a decision on a release of this data set. A ``ticket`` is recorded once."""
        if not ticket.strip() or len(ticket) > 200:
            raise ParameterError("ticket", ticket[:200], allowed="text of 1 to 200 characters")
        row = {
            "fingerprint": fingerprint, "ticket": ticket, "release": decision.release, "choice": decision.choice,
            "reviewer": decision.reviewer, "note": decision.note, "decided": decision.decided.isoformat(),
            "details": json.dumps(decision.details(), allow_nan=False, sort_keys=True),
        }  # fmt: skip
        try:
            with transaction(self._engine, writes=True) as connection:
                known = sa.select(_decisions.c.id).where(_decisions.c.ticket == ticket)
                if connection.scalar(known) is None:
                    connection.execute(_decisions.insert().values(row))
        except IntegrityError:
            raise LedgerError(
                "This decision cannot be kept: the data set has no account. Open one with its total budget first."
            ) from None

    def history(self, fingerprint: str) -> tuple[Decision, ...]:
        """Every decision on releases of a data set, oldest first."""
        mine = sa.select(_decisions).where(_decisions.c.fingerprint == fingerprint).order_by(_decisions.c.id)
        with transaction(self._engine) as connection:
            return tuple(_decision(row) for row in connection.execute(mine))


def _decision(row: sa.Row[Any]) -> Decision:
    facts = {
        "choice": row.choice, "reviewer": row.reviewer, "note": row.note, "release": row.release,
        "decided": datetime.fromisoformat(row.decided),
    }  # fmt: skip
    return Decision.restored(facts, json.loads(row.details))
