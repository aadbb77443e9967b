"""The ledger: one account of privacy loss for each data set.

A charge is reserved before anything is drawn and counts as spent from then on, so a crash can lose budget but
never gain any. Amounts are exact fractions, kept as text because no database rounds text. Rows are only ever
inserted: a charge is one row, and what became of it (committed or refunded) is a second one.

Losses are added up. That is a valid limit also when every charge is chosen after seeing earlier results
(Rogers, Roth, Ullman & Vadhan 2016, "Privacy Odometers and Filters").
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import BudgetError, LedgerError, ParameterError
from dpsynth_core.ledger.database import create_tables, database, transaction
from dpsynth_core.privacy.budget import Budget, format_amount

T = TypeVar("T")
JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Details: TypeAlias = Mapping[str, JSON]
State: TypeAlias = Literal["reserved", "committed", "refunded"]


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


TABLES = sa.MetaData()
"""Of the ledger's database; what is kept beside the accounts joins them here."""
_keys = sa.Table("dpsynth_key", TABLES, sa.Column("id", sa.Integer, primary_key=True), *_text("digest"))
ACCOUNTS = sa.Table(
    "dpsynth_accounts",
    TABLES,
    sa.Column("fingerprint", sa.String(200), primary_key=True),
    sa.Column("rows_per_person", sa.Integer, nullable=False),
    *_text("label", "epsilon", "delta", "created"),
)
_charges = sa.Table(
    "dpsynth_charges",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.ForeignKey(ACCOUNTS.c.fingerprint), nullable=False, index=True),
    sa.Column("run_id", sa.String(200), nullable=False, unique=True),
    *_text("purpose", "epsilon", "delta", "details", "created"),
    sqlite_autoincrement=True,
)
_settlements = sa.Table(
    "dpsynth_settlements",
    TABLES,
    sa.Column("charge", sa.ForeignKey(_charges.c.id), primary_key=True, autoincrement=False),
    *_text("state", "reason", "settled"),
)


@dataclass(frozen=True, kw_only=True)
class Balance:
    """An amount of privacy loss that, unlike a budget, may be nothing."""

    epsilon: Fraction
    """At least zero."""
    delta: Fraction
    """At least zero."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One charge and what became of it."""

    id: int
    """Number of the charge; a later charge has a higher one."""
    run_id: str
    """The run that it is for; no two charges share one."""
    purpose: str
    """What it was for, in words."""
    budget: Budget
    """What was charged."""
    state: State
    """It counts as spent unless it is refunded."""
    created: datetime
    """When it was reserved (UTC)."""
    settled: datetime | None
    """When it was committed or refunded (UTC); None while reserved."""
    reason: str
    """Why it was refunded; empty otherwise."""
    details: Details
    """What the caller recorded with it."""


@dataclass(frozen=True, kw_only=True)
class Reservation(Entry):
    """A charge as ``reserve`` returns it; its ``id`` is what to commit or refund."""

    fresh: bool
    """False if it was on record before: its run may have drawn already and must not draw again."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """What may be spent on a data set, and what has been."""

    fingerprint: str
    """The data set."""
    label: str
    """A name for people, as given when the account was opened."""
    total: Budget
    """What may be spent in total, fixed when the account was opened."""
    rows_per_person: int
    """The unit of protection that the total and every charge are stated for."""
    created: datetime
    """When it was opened (UTC)."""
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


class Ledger:
    """Accounts of privacy loss in a database that threads, processes and people share.

    A total can be fixed but not raised, and a charge goes through only if it fits, whoever charges meanwhile.
    The ledger counts what it is told: whoever can write to the database can rewrite the past.
    """

    def __init__(self, url: str, *, key: bytes | None = None) -> None:
        """Connect, creating the tables on first use.

        With ``key`` (the installation key) the ledger remembers which key its fingerprints were made with and
        refuses any other: under another key every table would look new and get a new budget.
        """
        self._engine = database(url)
        create_tables(self._engine, TABLES)
        if key is not None:
            self._check_key(hmac.new(key, b"dpsynth ledger key", hashlib.sha256).hexdigest())

    def open_account(self, fingerprint: str, *, total: Budget, label: str = "", rows_per_person: int = 1) -> Account:
        """The account of a data set, opened with ``total`` if there is none yet."""
        _check_text(fingerprint=fingerprint)
        if rows_per_person < 1:
            raise ParameterError("rows_per_person", rows_per_person, allowed="a whole number, at least 1")
        terms = {"label": label, "rows_per_person": rows_per_person, **_recorded(total)}
        # If another process opens the account at this very moment, its terms stand and are compared below.
        with contextlib.suppress(IntegrityError), self._transaction(writes=True) as connection:
            if _find_account(connection, fingerprint) is None:
                connection.execute(ACCOUNTS.insert().values(fingerprint=fingerprint, **terms))
        with self._transaction() as connection:
            account = _require_account(connection, fingerprint)
        if (account.total, account.rows_per_person) == (total, rows_per_person):
            return account
        raise LedgerError(
            f"This data set has an account with a total of {_shown(account.total)} for at most "
            f"{account.rows_per_person} row(s) per person; asked for: {_shown(total)} for {rows_per_person}. "
            "Neither can be changed once an account is open. Open it with the terms that it has."
        )

    def account(self, fingerprint: str) -> Account | None:
        """The account of a data set, or None if it was never opened."""
        with self._transaction() as connection:
            return _find_account(connection, fingerprint)

    def entries(self, fingerprint: str) -> tuple[Entry, ...]:
        """Every charge to a data set in order, refunded ones included."""
        account = self.account(fingerprint)
        return () if account is None else account.entries

    def reserve(
        self,
        fingerprint: str,
        budget: Budget,
        *,
        purpose: str,
        run_id: str | None = None,
        details: Details | None = None,
    ) -> Reservation:
        """Charge an account if enough is left; on return the charge is durable and counts as spent.

        A ``run_id`` is charged once: repeating the call returns the same charge, not ``fresh``.
        """
        run_id = uuid.uuid4().hex if run_id is None else run_id
        _check_text(run_id=run_id, purpose=purpose)
        charge = {"run_id": run_id, "purpose": purpose, "details": _json(details)}
        try:
            with self._transaction(writes=True) as connection:
                account = _require_account(connection, fingerprint, lock=True)
                for entry in account.entries:
                    if entry.run_id == run_id:
                        return _repeated(entry, budget)
                _check_left(account, budget)
                charge |= {"fingerprint": fingerprint, **_recorded(budget)}
                connection.execute(_charges.insert().values(charge))
                newest = _require_account(connection, fingerprint).entries[-1]
        except IntegrityError:
            raise _run_conflict(run_id, "another data set") from None
        return Reservation(**vars(newest), fresh=True)

    def commit(self, reservation_id: int) -> None:
        """Record that a charge was used; repeating it changes nothing."""
        self._settle(reservation_id, "committed", "")

    def refund(self, reservation_id: int, reason: str) -> None:
        """Give a charge back because nothing was drawn; it stays on record. Repeating it changes nothing."""
        _check_text(reason=reason)
        self._settle(reservation_id, "refunded", reason)

    def _settle(self, charge: int, state: State, reason: str) -> None:
        with self._transaction(writes=True) as connection:
            fingerprint = connection.scalar(sa.select(_charges.c.fingerprint).where(_charges.c.id == charge))
            if fingerprint is None:
                raise LedgerError(f"There is no charge {charge}. Use the id that reserve returned.")
            account = _require_account(connection, fingerprint, lock=True)
            present = next(entry.state for entry in account.entries if entry.id == charge)
            if present == "reserved":
                values = {"state": state, "reason": reason, "settled": datetime.now(UTC).isoformat()}
                connection.execute(_settlements.insert().values(charge=charge, **values))
            elif present != state:
                final = f"Charge {charge} is {present}, which is final, and cannot be {state}."
                raise LedgerError(f"{final} Make a new charge for a new run.")

    def _transaction(self, *, writes: bool = False) -> contextlib.AbstractContextManager[sa.Connection]:
        return transaction(self._engine, writes=writes)

    def _check_key(self, digest: str) -> None:
        stored = sa.select(_keys.c.digest)
        with contextlib.suppress(IntegrityError), self._transaction(writes=True) as connection:
            if connection.scalar(stored) is None:
                connection.execute(_keys.insert().values(id=1, digest=digest))
        with self._transaction() as connection:
            if connection.scalar(stored) != digest:
                raise LedgerError(
                    "This ledger was begun with another installation key, so its accounts would not be "
                    "found. Set DPSYNTH_KEY_FILE to the key file that it was begun with."
                )


def spend(
    ledger: Ledger,
    fingerprint: str,
    budget: Budget,
    *,
    purpose: str,
    run: Callable[[], T],
    drawn: Callable[[], bool],
    run_id: str | None = None,
    details: Details | None = None,
) -> T:
    """Charge, run, and hand over the result only once the charge is committed. A ``run_id`` runs once.

    If ``run`` fails and ``drawn`` says that nothing was drawn, the charge is refunded; otherwise it is spent.
    ``drawn`` must be true from the moment at which private rows can influence anything that can be seen, the
    failure itself included. ``run`` must return its result, not publish it.
    """
    reservation = ledger.reserve(fingerprint, budget, purpose=purpose, run_id=run_id, details=details)
    if not reservation.fresh:
        raise LedgerError(
            f"Run {reservation.run_id!r} was charged before; to draw again would release more than was paid "
            "for. Use the result of that run, or start a new run under a new run_id."
        )
    try:
        result = run()
    except BaseException as error:
        if not drawn():
            try:
                ledger.refund(reservation.id, f"{type(error).__name__} before anything was drawn")
            except LedgerError as failure:
                error.add_note(f"Charge {reservation.id} could not be refunded and stays spent: {failure}")
        raise
    ledger.commit(reservation.id)
    return result


def _recorded(budget: Budget) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta), "created": now}


def _entry(row: sa.Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        run_id=row.run_id,
        purpose=row.purpose,
        budget=Budget(epsilon=Fraction(row.epsilon), delta=Fraction(row.delta)),
        state=row.state or "reserved",
        created=datetime.fromisoformat(row.created),
        settled=datetime.fromisoformat(row.settled) if row.settled else None,
        reason=row.reason or "",
        details=json.loads(row.details),
    )


def _find_account(connection: sa.Connection, fingerprint: str, *, lock: bool = False) -> Account | None:
    query = sa.select(ACCOUNTS).where(ACCOUNTS.c.fingerprint == fingerprint)
    # SQLite ignores the lock and needs none: a writer has the whole database.
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None
    charges = sa.select(_charges, _settlements).join_from(_charges, _settlements, isouter=True)
    mine = charges.where(_charges.c.fingerprint == fingerprint).order_by(_charges.c.id)
    return Account(
        fingerprint=fingerprint,
        label=row.label,
        total=Budget(epsilon=Fraction(row.epsilon), delta=Fraction(row.delta)),
        rows_per_person=row.rows_per_person,
        created=datetime.fromisoformat(row.created),
        entries=tuple(_entry(charge) for charge in connection.execute(mine)),
    )


def _require_account(connection: sa.Connection, fingerprint: str, *, lock: bool = False) -> Account:
    account = _find_account(connection, fingerprint, lock=lock)
    if account is None:
        raise LedgerError("This data set has no account. Open one with its total budget first.")
    return account


def _repeated(entry: Entry, budget: Budget) -> Reservation:
    if entry.budget != budget:
        raise _run_conflict(entry.run_id, f"another amount, {_shown(entry.budget)}")
    if entry.state == "refunded":
        raise _run_conflict(entry.run_id, "a charge that was refunded")
    return Reservation(**vars(entry), fresh=False)


def _run_conflict(run_id: str, what: str) -> LedgerError:
    return LedgerError(f"Run {run_id!r} is on record with {what}. Start a new run under a new run_id.")


def _check_left(account: Account, budget: Budget) -> None:
    left = account.left
    if budget.epsilon > left.epsilon or budget.delta > left.delta:
        raise BudgetError(
            f"This asks for {_shown(budget)}; left: {_shown(left, up=False)}, of a total of {_shown(account.total)}. "
            "Nothing was drawn. Ask for no more than what is left, or reuse a release that is paid for."
        )


def _check_text(**values: str) -> None:
    for parameter, value in values.items():
        if not value.strip() or len(value) > 200:
            raise ParameterError(parameter, value[:200], allowed="text of 1 to 200 characters")


def _json(details: Details | None) -> str:
    try:
        return json.dumps(dict(details or {}), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ParameterError("details", details, allowed="what JSON can hold", remedy=f"{error}.") from error


def _shown(amount: Budget | Balance, *, up: bool = True) -> str:
    return f"epsilon {format_amount(amount.epsilon, up=up)} and delta {format_amount(amount.delta, up=up)}"
