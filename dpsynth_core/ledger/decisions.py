"""Reviewers' decisions on releases, stored beside the accounts they are about.

Rows are only ever inserted: the latest decision applies, the earlier ones stay on record. All of them are in the
ledger's chain, so that one which was changed, removed or added by anything else is noticed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import LedgerError, ParameterError
from dpsynth_core.ledger.accounts import readable
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.tables import DECISIONS, LOOKS
from dpsynth_core.table.json_text import read_json


@dataclass(frozen=True, kw_only=True)
class DecisionRow:
    """A decision as plain values; what they mean is the review's business."""

    release: str
    """The release it is about, by its digest."""
    choice: str
    reviewer: str
    note: str
    decided: datetime
    details: dict[str, Any]
    """What else is on record, as JSON values."""


class DecisionStore:
    """Decisions in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def record(self, fingerprint: str, row: DecisionRow, *, ticket: str) -> None:
        """Store a decision on a release of this data set. A ``ticket`` is recorded once."""
        if not ticket.strip() or len(ticket) > 200:
            raise ParameterError("ticket", ticket[:200], allowed="text of 1 to 200 characters")
        values = asdict(row) | {
            "fingerprint": fingerprint,
            "ticket": ticket,
            "decided": row.decided.isoformat(),
            "details": json.dumps(row.details, allow_nan=False, sort_keys=True),
        }
        try:
            with self._ledger.writing(fingerprint) as entry:
                number = sa.select(DECISIONS.c.id).where(DECISIONS.c.ticket == ticket)
                if entry.connection.scalar(number) is None:
                    entry.connection.execute(DECISIONS.insert().values(values))
                    entry.link("decision", entry.connection.scalars(number).one())
        except IntegrityError:
            raise LedgerError(
                "This decision cannot be stored: the data set has no account. Open one with its total budget first."
            ) from None

    def history(self, fingerprint: str) -> tuple[DecisionRow, ...]:
        """Every decision on releases of a data set, oldest first."""
        mine = sa.select(DECISIONS).where(DECISIONS.c.fingerprint == fingerprint).order_by(DECISIONS.c.id)
        with self._ledger.reading(fingerprint) as connection, readable("decision"):
            return tuple(_row(row) for row in connection.execute(mine))

    def record_look(self, fingerprint: str) -> None:
        """Remember that private diagnostics of this data set were seen; without an account there are none to see."""
        row = {"fingerprint": fingerprint, "first": datetime.now(UTC).isoformat()}
        with suppress(IntegrityError), self._ledger.writing(fingerprint) as entry:
            if entry.connection.scalar(sa.select(LOOKS.c.first).where(LOOKS.c.fingerprint == fingerprint)) is None:
                entry.connection.execute(LOOKS.insert().values(row))
                entry.link("look", fingerprint)

    def looked(self, fingerprint: str) -> bool:
        """Whether private diagnostics of this data set were ever seen."""
        mine = sa.select(LOOKS.c.first).where(LOOKS.c.fingerprint == fingerprint)
        with self._ledger.reading(fingerprint) as connection:
            return connection.scalar(mine) is not None


def _row(row: sa.Row[Any]) -> DecisionRow:
    return DecisionRow(
        release=row.release,
        choice=row.choice,
        reviewer=row.reviewer,
        note=row.note,
        decided=datetime.fromisoformat(row.decided),
        details=dict(read_json(row.details)),
    )
