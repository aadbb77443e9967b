"""The ledger: one account of privacy loss for each data set.

A charge is reserved before anything is drawn and counts as spent from then on, so a crash can lose budget but never
gain any. A charge is one row; what became of it (committed or refunded) is a second one::

    with ledger.charge(fingerprint, budget, purpose="Synthesize") as charge:
        noise.watch = lambda _: charge.drawn()      # before the first draw
        result = run(noise)
    publish(result)                                 # the block has committed the charge

A job outlives any block: ``ledger.reserve(...)`` returns the same charge, and the job runner settles it.

Losses are added up. That is a valid limit also when every charge is chosen after seeing earlier results
(Rogers, Roth, Ullman & Vadhan 2016, "Privacy Odometers and Filters").
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import BudgetError, LedgerError, ParameterError
from dpsynth_core.ledger.accounts import Account, Balance, ChargeState, Details, Entry, find_account, require_account
from dpsynth_core.ledger.database import create_tables, database, transaction
from dpsynth_core.ledger.tables import ACCOUNTS, CHARGES, KEYS, RESULTS, SETTLEMENTS, TABLES
from dpsynth_core.privacy.budget import Budget, format_amount
from dpsynth_core.table.paid_estimate import PaidEstimate


class LedgerCharge:
    """A charge that is on record and counts as spent, until it is refunded."""

    def __init__(self, ledger: Ledger, entry: Entry, *, fresh: bool) -> None:
        """Wrap a charge; ``fresh`` is False if it was on record before, so that its run must not draw again."""
        self.entry, self.fresh, self.has_drawn = entry, fresh, False
        self.state: ChargeState = entry.state
        self._ledger = ledger

    @property
    def id(self) -> int:
        """Its number in the ledger."""
        return self.entry.id

    def drawn(self) -> None:
        """Say that noise is about to be drawn, so that the charge cannot be refunded by a failure from now on.

        Call it before private rows can influence anything that can be seen, a failure included.
        """
        if self.state == "refunded":
            raise LedgerError(f"Charge {self.id} was refunded, so nothing may be drawn for it. Make a new charge.")
        self.has_drawn = True

    def commit(self, *, result: Details | None = None) -> None:
        """Record that it was used, and what for if ``result`` says more; repeating it changes nothing."""
        self._ledger.commit(self.id, result=result)
        self.state = "committed"

    def refund(self, reason: str) -> None:
        """Give it back because nothing was drawn; it stays on record. Repeating it changes nothing."""
        if self.has_drawn:
            raise LedgerError(f"Noise was drawn for charge {self.id}, so it cannot be refunded. Commit it.")
        self._ledger.refund(self.id, reason)
        self.state = "refunded"


class Ledger:
    """Accounts of privacy loss in a database that threads, processes and people share.

    A total can be fixed but not raised, and a charge goes through only if it fits, whoever charges meanwhile.
    The ledger counts what it is told: anyone who can write to the database can rewrite the past.
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
        # If another process opens the account at this very moment, its terms apply and are compared below.
        with contextlib.suppress(IntegrityError), self._transaction(writes=True) as connection:
            if find_account(connection, fingerprint) is None:
                connection.execute(ACCOUNTS.insert().values(fingerprint=fingerprint, **terms))
        with self._transaction() as connection:
            account = require_account(connection, fingerprint)
        if (account.total, account.rows_per_person) == (total, rows_per_person):
            return account
        raise LedgerError(
            f"This data set has an account with a total of {_shown(account.total)} for at most "
            f"{account.rows_per_person} row(s) per person; asked for: {_shown(total)} for {rows_per_person}. "
            "Neither can be changed once an account is open. Use the terms it was opened with."
        )

    def account(self, fingerprint: str) -> Account | None:
        """The account of a data set, or None if it was never opened."""
        with self._transaction() as connection:
            return find_account(connection, fingerprint)

    def estimates(self, fingerprint: str) -> tuple[PaidEstimate, ...]:
        """The private estimates that were charged to a data set, with what they have found."""
        account = self.account(fingerprint)
        return () if account is None else account.estimates

    def known_name(self, fingerprints: Sequence[str]) -> str:
        """Of the names that a data set has or had, the first with an account; the first of all if none has one."""
        return next((name for name in fingerprints if self.account(name) is not None), fingerprints[0])

    @contextlib.contextmanager
    def charge(
        self,
        fingerprint: str,
        budget: Budget,
        *,
        purpose: str,
        run_id: str | None = None,
        details: Details | None = None,
    ) -> Iterator[LedgerCharge]:
        """Charge an account for the block, in which ``drawn()`` must be called before anything is drawn.

        Leaving the block after ``drawn()`` commits the charge, also on an error; leaving it without refunds the
        charge. What follows the block runs only once the charge is committed. A ``run_id`` enters it once.
        """
        charge = self.reserve(fingerprint, budget, purpose=purpose, run_id=run_id, details=details)
        if not charge.fresh:
            raise LedgerError(
                f"Run {charge.entry.run_id!r} was charged before; drawing again would release more than was paid for. "
                "Use the result of that run, or start a new run under a new run_id."
            )
        try:
            yield charge
            _check_drawn(charge)
        except BaseException as error:
            error.add_note(_after_failure(charge, error))
            raise
        if charge.state == "reserved":
            charge.commit()

    def reserve(
        self,
        fingerprint: str,
        budget: Budget,
        *,
        purpose: str,
        run_id: str | None = None,
        details: Details | None = None,
    ) -> LedgerCharge:
        """Charge an account if enough is left; on return the charge is durable and counts as spent.

        A ``run_id`` is charged once: repeating the call returns the same charge, not ``fresh``.
        """
        run_id = uuid.uuid4().hex if run_id is None else run_id
        _check_text(run_id=run_id, purpose=purpose)
        values = {"run_id": run_id, "purpose": purpose, "details": _json(details)}
        try:
            with self._transaction(writes=True) as connection:
                account = require_account(connection, fingerprint, lock=True)
                for entry in account.entries:
                    if entry.run_id == run_id:
                        _check_repeated(entry, budget)
                        return LedgerCharge(self, entry, fresh=False)
                _check_left(account, budget)
                values |= {"fingerprint": fingerprint, **_recorded(budget)}
                connection.execute(CHARGES.insert().values(values))
                newest = require_account(connection, fingerprint).entries[-1]
        except IntegrityError:
            raise _run_conflict(run_id, "another data set") from None
        return LedgerCharge(self, newest, fresh=True)

    def commit(self, charge_id: int, *, result: Details | None = None) -> None:
        """Record that a charge was used, and what for if ``result`` says more; repeating it changes nothing."""
        self._settle(charge_id, "committed", "", result)

    def refund(self, charge_id: int, reason: str) -> None:
        """Give a charge back because nothing was drawn; it stays on record. Repeating it changes nothing."""
        _check_text(reason=reason)
        self._settle(charge_id, "refunded", reason)

    def _settle(self, charge_id: int, state: ChargeState, reason: str, result: Details | None = None) -> None:
        with self._transaction(writes=True) as connection:
            fingerprint = connection.scalar(sa.select(CHARGES.c.fingerprint).where(CHARGES.c.id == charge_id))
            if fingerprint is None:
                raise LedgerError(f"There is no charge {charge_id}. Use the id that reserve returned.")
            account = require_account(connection, fingerprint, lock=True)
            present = next(entry.state for entry in account.entries if entry.id == charge_id)
            if present == "reserved":
                values = {"state": state, "reason": reason, "settled": datetime.now(UTC).isoformat()}
                connection.execute(SETTLEMENTS.insert().values(charge=charge_id, **values))
                if result is not None:
                    connection.execute(RESULTS.insert().values(charge=charge_id, result=_json(result)))
            elif present != state:
                final = f"Charge {charge_id} is {present}, which is final, and cannot be {state}."
                raise LedgerError(f"{final} Make a new charge for a new run.")

    def _transaction(self, *, writes: bool = False) -> contextlib.AbstractContextManager[sa.Connection]:
        return transaction(self._engine, writes=writes)

    def _check_key(self, digest: str) -> None:
        stored = sa.select(KEYS.c.digest)
        with contextlib.suppress(IntegrityError), self._transaction(writes=True) as connection:
            if connection.scalar(stored) is None:
                connection.execute(KEYS.insert().values(id=1, digest=digest))
        with self._transaction() as connection:
            if connection.scalar(stored) != digest:
                raise LedgerError(
                    "This ledger was started with another installation key, so its accounts would not be "
                    "found. Set DPSYNTH_KEY_FILE to the key file that it was started with."
                )


def _check_drawn(charge: LedgerCharge) -> None:
    """A block that has forgotten ``drawn()`` must not hand out a result whose charge is refunded."""
    if charge.state == "reserved" and not charge.has_drawn:
        raise LedgerError("This run ended without drawing any noise, so its result is not handed out.")


def _after_failure(charge: LedgerCharge, error: BaseException) -> str:
    """Settle the charge of a block that failed; what became of it, in a sentence."""
    try:
        if charge.has_drawn:
            charge.commit()
        elif charge.state == "reserved":
            charge.refund(f"{type(error).__name__} before anything was drawn")
    except LedgerError as failure:
        return f"Charge {charge.id} could not be settled and stays spent: {failure}"
    if charge.state == "refunded":
        return "Nothing was charged."
    return "Noise had been drawn, so the budget was charged."


def _recorded(budget: Budget) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta), "created": now}


def _check_repeated(entry: Entry, budget: Budget) -> None:
    if entry.budget != budget:
        raise _run_conflict(entry.run_id, f"another amount, {_shown(entry.budget)}")
    if entry.state == "refunded":
        raise _run_conflict(entry.run_id, "a charge that was refunded")


def _run_conflict(run_id: str, what: str) -> LedgerError:
    return LedgerError(f"Run {run_id!r} is on record with {what}. Start a new run under a new run_id.")


def _check_left(account: Account, budget: Budget) -> None:
    left = account.left
    if budget.epsilon > left.epsilon or budget.delta > left.delta:
        raise BudgetError(
            f"This asks for {_shown(budget)}; left: {_shown(left, up=False)}, of a total of {_shown(account.total)}. "
            "Nothing was drawn. Ask for no more than what is left, or reuse a release that is already paid for."
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
