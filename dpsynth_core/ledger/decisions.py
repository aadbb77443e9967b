"""Reviewers' decisions on releases, stored beside the accounts they are about.

Rows are only ever inserted: the latest decision applies, the earlier ones stay on record. All of them are in the
ledger's chain, so that one which was changed, removed or added by anything else is noticed.

Two people: where people sign in, a release is approved from a submission, by a reviewer who neither made nor submitted
it. That is checked here, in the transaction that records the decision, so no page and no race can get around it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import LedgerError, ParameterError, RoleError
from dpsynth_core.ledger.accounts import readable
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.ledger_transaction import LedgerTransaction
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.tables import CHARGES, DECISIONS, LOOKS, SUBMISSIONS
from dpsynth_core.table.json_text import read_json

APPROVE = "approve"
TWO_PEOPLE = "two_people"
"""Under which the details of a decision say whether the two-person rule was in force."""


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
    number: int = field(default=0, compare=False)
    """Its place in the ledger; 0 before it is recorded."""
    fingerprint: str = field(default="", compare=False)
    """The data set's; empty before it is recorded."""


class DecisionStore:
    """Decisions in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def record(self, fingerprint: str, row: DecisionRow, *, ticket: str, after: int | None = None) -> None:
        """Store a decision on a release of this data set.

        Args:
            fingerprint: Of the data set.
            row: The decision. Whoever is signed in is its reviewer, whatever it says.
            ticket: It is recorded once.
            after: Number of the latest decision on this release that the reviewer has seen, 0 for none; None: not
                checked.

        Raises:
            RoleError: The reviewer made or submitted the release, or is no reviewer.
            LedgerError: Somebody else has decided meanwhile, or there is no such account or submission.
        """
        if not ticket.strip() or len(ticket) > 200:
            raise ParameterError("ticket", ticket[:200], allowed="text of 1 to 200 characters")
        by = self._ledger.by
        try:
            with self._ledger.writing(fingerprint) as entry:
                number = sa.select(DECISIONS.c.id).where(DECISIONS.c.ticket == ticket)
                if entry.connection.scalar(number) is not None:
                    return
                entry.admit(fingerprint, "reviewer", action="decide on a release")
                _check_latest(entry.connection, fingerprint, row.release, after)
                details = row.details | {TWO_PEOPLE: _check_people(entry, fingerprint, row)}
                details |= {"by": by.to_record()} if by.known else {}
                values = {
                    "fingerprint": fingerprint,
                    "ticket": ticket,
                    "release": row.release,
                    "choice": row.choice,
                    "reviewer": (str(by) if by.signed_in else row.reviewer)[:200],
                    "note": row.note,
                    "decided": row.decided.isoformat(),
                    "details": json.dumps(details, allow_nan=False, sort_keys=True),
                }
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

    def latest(self) -> dict[tuple[str, str], DecisionRow]:
        """The decision that applies to each release that was decided on, by data set and release."""
        with self._ledger.reading_all() as connection, readable("decision"):
            rows = connection.execute(sa.select(DECISIONS).order_by(DECISIONS.c.id))
            return {(row.fingerprint, row.release): _row(row) for row in rows}

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


def _check_latest(connection: sa.Connection, fingerprint: str, release: str, after: int | None) -> None:
    """Two reviewers may look at the same time; the second must see what the first has decided."""
    if after is None:
        return
    mine = (DECISIONS.c.fingerprint == fingerprint) & (DECISIONS.c.release == release)
    if (connection.scalar(sa.select(sa.func.max(DECISIONS.c.id)).where(mine)) or 0) != after:
        raise LedgerError(
            "Somebody else has decided on this release meanwhile. Nothing was recorded: look at that decision, then "
            "decide again if you still want to."
        )


def _check_people(entry: LedgerTransaction, fingerprint: str, row: DecisionRow) -> bool:
    """Refuse to let people approve their own work; whether it is known that nobody did."""
    by = entry.by
    if not by.signed_in or row.choice != APPROVE:
        return False
    mine = sa.select(SUBMISSIONS).where(SUBMISSIONS.c.fingerprint == fingerprint)
    submitted = entry.connection.execute(mine).all()
    approved = [each for each in submitted if (each.release, each.bundle) == (row.release, row.details.get("bundle"))]
    if not approved:
        raise LedgerError(
            "Nobody has submitted this very bundle, so it cannot be approved. Ask for it to be submitted for review."
        )
    charges = {each.charge for each in approved}
    paid = sa.select(CHARGES.c.details).where(CHARGES.c.id.in_(charges))
    makers = {Person.from_record(read_json(text).get("by")).subject for text in entry.connection.scalars(paid)}
    # Whoever handed in the same rows with other words has submitted them, too.
    same = [each for each in submitted if each.charge in charges or each.release == row.release]
    if by.subject in makers | {each.subject for each in same}:
        raise RoleError("You made or submitted this release, so somebody else must approve it. Nothing was recorded.")
    return all(makers | {each.subject for each in approved})


def _row(row: sa.Row[Any]) -> DecisionRow:
    return DecisionRow(
        release=row.release,
        choice=row.choice,
        reviewer=row.reviewer,
        note=row.note,
        decided=datetime.fromisoformat(row.decided),
        details=dict(read_json(row.details)),
        number=int(row.id),
        fingerprint=row.fingerprint,
    )
