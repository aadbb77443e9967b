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
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dpsynth_core.errors import BudgetError, LedgerError, ParameterError
from dpsynth_core.ledger.accounts import Account, Balance, ChargeState, Details, Entry, find_account, require_account
from dpsynth_core.ledger.chain import (
    RESTORE,
    START,
    Chain,
    Link,
    digest_at,
    has_records,
    key_digest,
    last_link,
)
from dpsynth_core.ledger.database import WRITES, create_tables, database, transaction
from dpsynth_core.ledger.head import Head
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.ledger.ledger_transaction import LedgerTransaction, attached_to
from dpsynth_core.ledger.people import ONE_PERSON, Person
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.tables import ACCOUNTS, CHARGES, KEYS, RESULTS, SETTLEMENTS, TABLES
from dpsynth_core.privacy.budget import Budget, format_amount
from dpsynth_core.table.paid_estimate import PaidEstimate


class Ledger:
    """Accounts of privacy loss in a database that threads, processes and people share.

    A total can be fixed but not raised, and a charge goes through only if it fits, whoever charges meanwhile.
    Everything recorded is chained under the key (``dpsynth_core/ledger/chain.py``): a record that was changed, removed
    or added by anything else is noticed when its account is next read. With a head, so is a ledger that lost its end.
    """

    def __init__(
        self, url: str, *, key: bytes | None = None, head: Path | None = None, by: Person = ONE_PERSON
    ) -> None:
        """Connect, creating the tables on first use.

        With ``key`` (the installation key) the ledger remembers which key its fingerprints were made with and
        refuses any other: under another key every table would look new and get a new budget.

        Args:
            url: Of the database.
            key: The installation key.
            head: The file that remembers how far the ledger had come; None where nobody does.
            by: Whoever enters what is recorded through this object.
        """
        self.by = by
        self._engine = database(url)
        create_tables(self._engine, TABLES)
        digest = None if key is None else key_digest(key)
        self._check_key(digest)
        self._chain = Chain(key or b"")
        self._head = None if head is None else Head(file=head, key=key or b"")
        if (url, digest) in _checked:
            with self.reading():
                return  # it is the same ledger, and has not lost its end
        self._complete_chain()
        self.check()
        _checked.add((url, digest))

    def check(self) -> Link:
        """See that no record was changed and none is missing; the newest one.

        Raises:
            LedgerError: The ledger was changed by something other than this program, or lost its end.
        """
        with self.reading() as connection:
            last = self._chain.check(connection)
        if self._head is not None:
            self._head.advance(last)  # a crash may have left it behind
        return last

    def open_account(
        self,
        fingerprint: str,
        *,
        total: Budget,
        label: str = "",
        rows_per_person: int = 1,
        opened: Callable[[LedgerTransaction], None] | None = None,
    ) -> Account:
        """The account of a data set, opened with ``total`` if there is none yet.

        Args:
            fingerprint: Of the data set.
            total: What may be spent in all.
            label: What people call it.
            rows_per_person: The unit of protection.
            opened: Called in the transaction that opens it; if it raises, no account is opened.
        """
        _check_text(fingerprint=fingerprint)
        if rows_per_person < 1:
            raise ParameterError("rows_per_person", rows_per_person, allowed="a whole number, at least 1")
        terms = {"label": label, "rows_per_person": rows_per_person, **_recorded(total)}
        # If another process opens the account at this very moment, its terms apply and are compared below.
        with contextlib.suppress(IntegrityError), self.writing() as entry:
            if self._find(entry.connection, fingerprint) is None:
                entry.connection.execute(ACCOUNTS.insert().values(fingerprint=fingerprint, **terms))
                entry.link("account", fingerprint)
                entry.admit(fingerprint, "steward", action="open an account")
                if self.by.known:
                    entry.declare(
                        fingerprint, "account", details={"epsilon": terms["epsilon"], "delta": terms["delta"]}
                    )
                if opened is not None:
                    opened(entry)
        with self.reading() as connection:
            account = self._require(connection, fingerprint)
        if (account.total, account.rows_per_person) == (total, rows_per_person):
            return account
        raise LedgerError(
            f"This data set has an account with a total of {_shown(account.total)} for at most "
            f"{account.rows_per_person} row(s) per person; asked for: {_shown(total)} for {rows_per_person}. "
            "Neither can be changed once an account is open. Use the terms it was opened with."
        )

    def account(self, fingerprint: str) -> Account | None:
        """The account of a data set, or None if it was never opened."""
        with self.reading() as connection:
            return self._find(connection, fingerprint)

    def estimates(self, fingerprint: str) -> tuple[PaidEstimate, ...]:
        """The private estimates that were charged to a data set, with what they have found."""
        account = self.account(fingerprint)
        return () if account is None else account.estimates

    def known_name(self, fingerprints: Sequence[str]) -> str:
        """Of the names that a data set has or had, the first with an account; the first of all if none has one."""
        return self.locate(fingerprints)[0]

    def locate(self, fingerprints: Sequence[str]) -> tuple[str, str]:
        """The account of a data set, by the names that it has or had, and which of them it is known by there.

        The two differ for a table that shares the account of another one. Without an account, both are the first name.
        """
        for name in fingerprints:
            if self.account(name) is not None:
                return name, name
        with self.reading_all() as connection:
            shared = ((attached_to(connection, name), name) for name in fingerprints)
            found = next(((account, name) for account, name in shared if account is not None), None)
        return found or (fingerprints[0], fingerprints[0])

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
        who = {"by": self.by.to_record()} if self.by.known else {}
        values = {"run_id": run_id, "purpose": purpose, "details": _json({**(details or {}), **who})}
        entered: Entry | None = None
        try:
            with self.writing() as entry:
                account = self._require(entry.connection, fingerprint)
                for known in account.entries:
                    if known.run_id == run_id:
                        _check_repeated(known, budget)
                        return LedgerCharge(self, known, fresh=False)
                entry.admit(fingerprint, "analyst", "steward", action="spend from a budget")
                _check_left(account, budget)
                values |= {"fingerprint": fingerprint, **_recorded(budget)}
                entry.connection.execute(CHARGES.insert().values(values))
                entered = require_account(entry.connection, fingerprint).entries[-1]
                entry.link("charge", entered.id)
        except IntegrityError:
            raise _run_conflict(run_id, "another data set") from None
        except _HeadBehindError:
            # On record, but the head does not know it: a ledger without it would not be noticed, so nothing is drawn.
            assert entered is not None  # noqa: S101  the head moves after the record
            with contextlib.suppress(LedgerError):
                self._settle(entered.id, "refunded", "the ledger's head could not be written, so nothing was drawn")
            raise
        return LedgerCharge(self, entered, fresh=True)

    def commit(self, charge_id: int, *, result: Details | None = None) -> None:
        """Record that a charge was used, and what for if ``result`` says more; repeating it changes nothing."""
        self._settle(charge_id, "committed", "", result)

    def refund(self, charge_id: int, reason: str) -> None:
        """Give a charge back because nothing was drawn; it stays on record. Repeating it changes nothing."""
        _check_text(reason=reason)
        self._settle(charge_id, "refunded", reason)

    def _settle(self, charge_id: int, state: ChargeState, reason: str, result: Details | None = None) -> None:
        with self.writing() as entry:
            fingerprint = entry.connection.scalar(sa.select(CHARGES.c.fingerprint).where(CHARGES.c.id == charge_id))
            if fingerprint is None:
                raise LedgerError(f"There is no charge {charge_id}. Use the id that reserve returned.")
            account = self._require(entry.connection, fingerprint)
            present = next(known.state for known in account.entries if known.id == charge_id)
            if present == "reserved":
                values = {"state": state, "reason": reason, "settled": datetime.now(UTC).isoformat()}
                entry.connection.execute(SETTLEMENTS.insert().values(charge=charge_id, **values))
                if result is not None:
                    entry.connection.execute(RESULTS.insert().values(charge=charge_id, result=_json(result)))
                entry.link("settlement", charge_id)
            elif present != state:
                final = f"Charge {charge_id} is {present}, which is final, and cannot be {state}."
                raise LedgerError(f"{final} Make a new charge for a new run.")

    @contextlib.contextmanager
    def reading(self, fingerprint: str | None = None) -> Iterator[sa.Connection]:
        """A transaction in a ledger that has not lost its end; all records of an account, if named, are checked."""
        # Before the database: it is the head that follows, so what is remembered now must be there a moment later.
        remembered = self._remembered()
        with transaction(self._engine) as connection:
            _check_end(connection, remembered)
            if fingerprint is not None:
                self._chain.check(connection, fingerprint)
            yield connection

    @contextlib.contextmanager
    def reading_all(self) -> Iterator[sa.Connection]:
        """The same for what lists the records of many accounts: all of them are checked."""
        with self.reading() as connection:
            self._chain.check(connection)
            yield connection

    @contextlib.contextmanager
    def writing(self, fingerprint: str | None = None) -> Iterator[LedgerTransaction]:
        """A transaction that nobody else writes in; the head follows once it is committed.

        All records of an account, if named, are checked first.
        """
        remembered = self._remembered()
        with transaction(self._engine, writes=True) as connection:
            self._chain.lock(connection)
            _check_end(connection, remembered)
            if fingerprint is not None:
                self._chain.check(connection, fingerprint)
            entry = LedgerTransaction(connection=connection, chain=self._chain, by=self.by)
            yield entry
        if self._head is not None and entry.last is not None:
            try:
                self._head.advance(entry.last)
            except LedgerError as error:
                raise _HeadBehindError(str(error)) from error

    def _complete_chain(self) -> None:
        """Chain what an earlier version has left out."""
        with self.reading() as connection:
            if self._chain.is_complete(connection):
                return
        with self.writing() as entry:
            entry.last = self._chain.complete(entry.connection)

    def _remembered(self) -> Link:
        """What the head knows; the empty chain where there is no head."""
        if self._head is None:
            return START
        link = self._head.read()
        if link is None:
            raise LedgerError(
                f"There is an installation key, but the ledger's head at {str(self._head.file)!r} is missing: it was "
                "removed, or key and ledger come from another machine or an earlier version. See that the ledger is "
                "the one you expect, then run 'python -m dpsynth_core ledger adopt'."
            )
        return link

    def _find(self, connection: sa.Connection, fingerprint: str) -> Account | None:
        """An account whose records are the ones that were entered."""
        self._chain.check(connection, fingerprint)
        return find_account(connection, fingerprint)

    def _require(self, connection: sa.Connection, fingerprint: str) -> Account:
        self._chain.check(connection, fingerprint)
        return require_account(connection, fingerprint, lock=connection.get_execution_options().get(WRITES, False))

    def _check_key(self, digest: str | None) -> None:
        stored = sa.select(KEYS.c.digest)
        with transaction(self._engine) as connection:
            known = connection.scalar(stored)
        if known is None and digest is not None:
            with contextlib.suppress(IntegrityError), transaction(self._engine, writes=True) as connection:
                if connection.scalar(stored) is None and last_link(connection) == START:
                    connection.execute(KEYS.insert().values(id=1, digest=digest))
            with transaction(self._engine) as connection:
                known = connection.scalar(stored)
        if known == digest:
            return
        if digest is None:
            raise LedgerError("This ledger belongs to an installation key. Open it with that key.")
        raise LedgerError(
            "This ledger was started with another installation key, so its accounts would not be "
            "found. Set DPSYNTH_KEY_FILE to the key file that it was started with."
        )


def installed_ledger(settings: Settings | None = None, *, by: Person = ONE_PERSON) -> Ledger:
    """The ledger of this installation, under its key and with its head, for whoever uses it."""
    settings = settings or Settings.from_environment()
    return Ledger(settings.ledger_url, key=settings.installation_key(), head=settings.head_file, by=by)


_checked: set[tuple[str, str | None]] = set()
"""Ledgers that this process has checked from their first record on. Accounts are checked whenever they are read."""


class _HeadBehindError(LedgerError):
    """A record is in the ledger, but the head could not be written."""


def _check_end(connection: sa.Connection, remembered: Link) -> None:
    """Refuse a ledger that is not the one remembered, or has lost its end."""
    last = last_link(connection)
    if last.position < remembered.position:
        raise LedgerError(
            f"The ledger has {last.position} records, but had {remembered.position} when it was last used here: it was "
            f"removed, emptied or replaced by an older copy. {RESTORE}"
        )
    if digest_at(connection, remembered.position) != remembered.digest:
        raise LedgerError(f"This is not the ledger that was last used here. {RESTORE}")
    if last == START and has_records(connection):
        raise LedgerError(
            "This ledger comes from an earlier version, which did not protect its records against changes. See that "
            "it is the one you expect, then run 'python -m dpsynth_core ledger adopt'."
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
    if short := left.short_of(budget):
        raise BudgetError(
            f"There is not enough {' and '.join(short)}. This asks for {_shown(budget)}; left: "
            f"{_shown(left, up=False)}, of a total of {_shown(account.total)}. Nothing was drawn. "
            "Ask for no more than what is left, or reuse a release that is already paid for."
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
