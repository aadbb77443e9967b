"""Releases that were handed in for review: a row in the ledger's chain, and files beside it that the row names.

The release and its bundle are in the store of releases; the private evidence is in a store of its own. All of them are
named by their SHA-256, so nobody can change what was submitted without being noticed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from dpsynth_core.errors import LedgerError, ParameterError
from dpsynth_core.ledger.accounts import readable, require_account
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.tables import SUBMISSIONS
from dpsynth_core.table.json_text import read_json


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A release that somebody has handed in."""

    fingerprint: str
    """Of the data set."""
    charge: int
    """The ledger's number of the charge that paid for it."""
    release: str
    """SHA-256 of what a decision is about: rows, public facts, configuration, guarantee."""
    bundle: str
    """SHA-256 of the archive that would leave, and its name in the store of releases."""
    evidence: str
    """SHA-256 of the private evidence, and its name in the store of evidence."""
    details: dict[str, Any] = field(default_factory=dict)
    """What a list of submissions shows of it; nothing that was computed from private rows."""
    number: int = 0
    """Its place in the ledger; 0 before it is recorded."""
    by: Person = Person()  # noqa: RUF009  immutable
    submitted: datetime = datetime.min.replace(tzinfo=UTC)  # noqa: RUF009  immutable


_GIVEN = ("fingerprint", "charge", "release", "bundle", "evidence")


class SubmissionStore:
    """Submissions in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def record(self, made: Submission, *, ticket: str) -> Submission:
        """Hand in a release whose files are stored. A ``ticket`` is recorded once.

        Raises:
            RoleError: Whoever does it is no analyst.
            LedgerError: The ledger has no settled charge of this data set with a stored release.
        """
        if not ticket.strip() or len(ticket) > 200:
            raise ParameterError("ticket", ticket[:200], allowed="text of 1 to 200 characters")
        known = sa.select(SUBMISSIONS).where(SUBMISSIONS.c.ticket == ticket)
        with self._ledger.writing(made.fingerprint) as entry:
            row = entry.connection.execute(known).one_or_none()
            if row is None:
                entry.admit(made.fingerprint, "analyst", action="submit a release")
                account = require_account(entry.connection, made.fingerprint)
                if made.charge not in {stored.charge for stored in account.releases}:
                    raise LedgerError(
                        "This release is not in the store beside the ledger, so it cannot be submitted. Make it "
                        "again in release mode."
                    )
                values = {
                    name: getattr(made, name) for name in ("fingerprint", "charge", "release", "bundle", "evidence")
                }
                values |= {**entry.by.to_record(), "submitted": datetime.now(UTC).isoformat(), "ticket": ticket}
                details = json.dumps(made.details, allow_nan=False, sort_keys=True)
                entry.connection.execute(SUBMISSIONS.insert().values(**values, details=details))
                row = entry.connection.execute(known).one()
                entry.link("submission", int(row.id))
            return _submission(row)

    def all(self) -> tuple[Submission, ...]:
        """Every submission, newest first."""
        with self._ledger.reading_all() as connection, readable("submission"):
            rows = connection.execute(sa.select(SUBMISSIONS).order_by(SUBMISSIONS.c.id.desc()))
            return tuple(_submission(row) for row in rows)


def _submission(row: sa.Row[Any]) -> Submission:
    return Submission(
        fingerprint=row.fingerprint,
        charge=int(row.charge),
        release=row.release,
        bundle=row.bundle,
        evidence=row.evidence,
        details=dict(read_json(row.details)),
        number=int(row.id),
        by=Person(subject=row.subject, name=row.name),
        submitted=datetime.fromisoformat(row.submitted),
    )
