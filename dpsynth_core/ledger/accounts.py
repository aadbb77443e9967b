"""Accounts and charges as the ledger reads them from its database."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import sqlalchemy as sa

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.chain import RESTORE
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.tables import ACCOUNTS, CHARGES, RESULTS, SETTLEMENTS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.paid_estimate import PaidEstimate

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Details: TypeAlias = Mapping[str, JSON]
ChargeState: TypeAlias = Literal["reserved", "committed", "refunded"]
MAX_AMOUNT = 2_000
"""Characters of an amount as it is stored."""
_AMOUNT = re.compile(r"[0-9]+(/[0-9]+)?")
ESTIMATE = "estimate"
"""Under which the details of a charge hold what a private estimate has found."""
COMPARISON = "comparison"
"""Under which they hold what a private test of two groups has found."""
RELEASE = "release"
"""Under which they hold where the synthetic tables are stored."""

VERSION = "version"
"""Under which they hold the table's own fingerprint, where it shares the account of another one."""


@dataclass(frozen=True, kw_only=True)
class Balance:
    """An amount of privacy loss that, unlike a budget, may be zero."""

    epsilon: Fraction
    delta: Fraction

    def short_of(self, needed: Budget) -> tuple[Literal["epsilon", "delta"], ...]:
        """Which of the two is not enough; neither where the budget can be granted."""
        found: tuple[Literal["epsilon", "delta"], ...] = ("epsilon",) if needed.epsilon > self.epsilon else ()
        return (*found, "delta") if needed.delta > self.delta else found


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One charge and what became of it. Times are in UTC."""

    id: int
    """A later charge has a higher number."""
    run_id: str
    """The run that it is for; no two charges share one."""
    purpose: str
    budget: Budget
    state: ChargeState
    """It counts as spent unless it is refunded."""
    created: datetime
    settled: datetime | None
    reason: str
    """Why it was refunded; empty otherwise."""
    details: Details
    """What the caller recorded with it, when it was reserved and when it was committed."""

    @property
    def by(self) -> Person:
        """Whoever made the charge; unknown where nobody was signed in."""
        return Person.from_record(self.details.get("by"))


@dataclass(frozen=True, kw_only=True)
class StoredRelease:
    """A release in the store beside the ledger, as its account lists it."""

    charge: int
    """The ledger's number of the charge that paid for it."""
    stored: datetime
    """In UTC."""
    mechanism: str
    """By its key."""
    configuration: Details
    status: str
    """Of its guarantee."""
    epsilon: str
    delta: str
    sha256: str
    """Of its file, and its name."""
    nbytes: int
    version: str
    """The table that it was made from, by its own fingerprint: several versions of a table can share an account."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """What may be spent on a data set, and what has been."""

    fingerprint: str
    label: str
    total: Budget
    """What may be spent in all, fixed when the account was opened."""
    rows_per_person: int
    """The unit of protection that the total and every charge are stated for."""
    created: datetime
    entries: tuple[Entry, ...]
    """Every charge in order, refunded ones included."""

    @property
    def spent(self) -> Balance:
        """Everything reserved or committed."""
        counted = [entry.budget for entry in self.entries if entry.state != "refunded"]
        epsilon = sum((b.epsilon for b in counted), Fraction(0))
        return Balance(epsilon=epsilon, delta=sum((b.delta for b in counted), Fraction(0)))

    @property
    def left(self) -> Balance:
        """What can still be reserved."""
        spent = self.spent
        return Balance(epsilon=self.total.epsilon - spent.epsilon, delta=self.total.delta - spent.delta)

    @property
    def estimates(self) -> tuple[PaidEstimate, ...]:
        """What private estimates have found and cost, in order. What was never committed was never handed over."""
        return tuple(
            PaidEstimate.from_dict(found, entry.budget, self.rows_per_person)
            for entry in self.entries
            if entry.state == "committed" and isinstance(found := entry.details.get(ESTIMATE), Mapping)
        )

    @property
    def comparisons(self) -> tuple[PaidComparison, ...]:
        """What private tests of two groups have found and cost, in order: paid for, so free to look at again."""
        return tuple(
            PaidComparison.from_dict(found)
            for entry in self.entries
            if entry.state == "committed" and isinstance(found := entry.details.get(COMPARISON), Mapping)
        )

    @property
    def releases(self) -> tuple[StoredRelease, ...]:
        """Releases that were paid for and stored, oldest first."""
        with readable("release"):
            return tuple(
                _stored(entry, found, self.fingerprint)
                for entry in self.entries
                if entry.state == "committed" and isinstance(found := entry.details.get(RELEASE), Mapping)
            )


def _stored(entry: Entry, found: Mapping[str, Any], account: str) -> StoredRelease:
    return StoredRelease(
        charge=entry.id,
        stored=entry.settled or entry.created,
        mechanism=str(found["configuration"]["mechanism"]),
        configuration=found["configuration"],
        status=str(found["status"]),
        epsilon=str(found["epsilon"]),
        delta=str(found["delta"]),
        sha256=str(found["sha256"]),
        nbytes=int(found["bytes"]),
        version=str(entry.details.get(VERSION, account)),
    )


def find_account(connection: sa.Connection, fingerprint: str, *, lock: bool = False) -> Account | None:
    """The account of a data set with all its charges, or None; locked until the transaction ends if asked for."""
    query = sa.select(ACCOUNTS).where(ACCOUNTS.c.fingerprint == fingerprint)
    # SQLite ignores the lock and needs none: a writer has the whole database.
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None
    settled = sa.select(CHARGES, SETTLEMENTS, RESULTS.c.result).join_from(CHARGES, SETTLEMENTS, isouter=True)
    charges = settled.outerjoin(RESULTS, RESULTS.c.charge == CHARGES.c.id)
    mine = charges.where(CHARGES.c.fingerprint == fingerprint).order_by(CHARGES.c.id)
    with readable("account"):
        return Account(
            fingerprint=fingerprint,
            label=row.label,
            total=_budget(row),
            rows_per_person=int(row.rows_per_person),
            created=datetime.fromisoformat(row.created),
            entries=tuple(_entry(charge) for charge in connection.execute(mine)),
        )


@contextlib.contextmanager
def readable(what: str) -> Iterator[None]:
    """What was recorded here can be read; what cannot was changed by something else."""
    try:
        yield
    except (ValueError, TypeError, KeyError, ZeroDivisionError, RecursionError) as error:
        raise LedgerError(f"A record of the ledger ({what}) cannot be read: it was changed. {RESTORE}") from error


def require_account(connection: sa.Connection, fingerprint: str, *, lock: bool = False) -> Account:
    """The account of a data set; an error if there is none."""
    account = find_account(connection, fingerprint, lock=lock)
    if account is None:
        raise LedgerError("This data set has no account. Open one with its total budget first.")
    return account


def _entry(row: sa.Row[Any]) -> Entry:
    if row.state not in (None, *get_args(ChargeState)[1:]):
        raise ValueError("state")
    return Entry(
        id=int(row.id),
        run_id=row.run_id,
        purpose=row.purpose,
        budget=_budget(row),
        state=row.state or "reserved",
        created=datetime.fromisoformat(row.created),
        settled=datetime.fromisoformat(row.settled) if row.settled else None,
        reason=row.reason or "",
        details={**_object(row.details), **_object(row.result or "{}")},
    )


def _object(text: str) -> dict[str, Any]:
    return dict(read_json(text))


def _budget(row: sa.Row[Any]) -> Budget:
    return Budget(epsilon=_amount(row.epsilon), delta=_amount(row.delta))


def _amount(text: str) -> Fraction:
    if len(text) > MAX_AMOUNT or not _AMOUNT.fullmatch(text):
        raise ValueError("amount")
    return Fraction(text)
