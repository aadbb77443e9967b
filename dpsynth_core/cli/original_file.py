"""The original table of a command: read by its declared layout, and the account that pays for looking at it."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

from dpsynth_core.cli.terminal import hint, read_schema
from dpsynth_core.errors import DPSynthError, IntakeError, ParameterError
from dpsynth_core.ledger.accounts import Account, Details
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.ledger.people import at_the_shell
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.streamed_fingerprint import streamed_fingerprints
from dpsynth_core.privacy.budget import Budget, format_amount
from dpsynth_core.table.engines.open import open_table
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.readers.read import file_content, guess_layout, read_cells
from dpsynth_core.table.schema import Schema

NOTHING_CHARGED = "No account was charged: --teaching is for public or simulated data only."


def add_account_arguments(command: argparse.ArgumentParser) -> None:
    """How the data set's account is opened, or that there is none."""
    command.add_argument(
        "--budget",
        help="open the data set's account with this total epsilon, which cannot be changed later; without it, the "
        "account of a new data set covers this run and nothing more",
    )
    command.add_argument("--budget-delta", help="the account's total delta; default: what this run needs")
    command.add_argument("--teaching", action="store_true", help="the data are public or simulated: charge nothing")


def add_engine_arguments(command: argparse.ArgumentParser) -> None:
    """Where the rows are, if they are not to be read into memory."""
    command.add_argument(
        "--engine",
        choices=("duckdb",),
        help="leave the rows where they are, however many: files and databases of this machine; default: read the file "
        "into memory",
    )
    command.add_argument("--table", help="of a DuckDB database")


@dataclass(frozen=True, kw_only=True)
class OriginalFile:
    """A table as a command reads it."""

    content: bytes
    table: pd.DataFrame
    schema: Schema

    @classmethod
    def read(cls, chosen: argparse.Namespace) -> OriginalFile:
        """By the schema's layout; in release mode one that nobody has declared is refused, while it is free."""
        content, schema = file_content(chosen.data), read_schema(chosen.schema)
        table = _read(content, schema)
        return cls(content=content, table=table, schema=_with_layout(schema, table, teaching=chosen.teaching))


def opened_table(chosen: argparse.Namespace) -> StreamedTable | None:
    """The original where it is, if an engine was named."""
    if chosen.engine is None:
        if chosen.table is not None:
            raise ParameterError("engine", None, allowed="duckdb for a table of a database", remedy="Add --engine.")
        return None
    schema = read_schema(chosen.schema)
    if schema.file is None and not chosen.teaching and chosen.table is None:
        error = DPSynthError("The schema does not declare how the file is laid out. Nothing was charged.")
        error.add_note(_to_paste(FileLayout(format="parquet")))
        raise error
    return open_table(chosen.location, schema, engine=chosen.engine, table=chosen.table)


def _read(content: bytes, schema: Schema) -> pd.DataFrame:
    try:
        return read_cells(content, schema.file)
    except IntakeError as error:
        guess = None if schema.file is not None else guess_layout(content)
        if guess is not None:
            error.add_note(_to_paste(guess))
        raise


def _with_layout(schema: Schema, table: pd.DataFrame, *, teaching: bool) -> Schema:
    """Refuse a layout that nobody has declared, while it is free; that of a public file is public."""
    layout = layout_of(table.attrs)
    if schema.file is not None or layout is None:
        return schema
    if teaching:
        hint(f"The schema does not declare the layout of the file, so it was guessed: {layout.sentence()}.")
        return replace(schema, file=layout)
    error = DPSynthError(
        "The schema does not declare how the file is laid out, so a release would not be private: what a row means may "
        "depend on the others. Nothing was charged. Declare the layout in the schema."
    )
    error.add_note(_to_paste(layout))
    raise error


def _to_paste(layout: FileLayout) -> str:
    facts = json.dumps(layout.to_dict())
    return f'It seems to be this. If anyone could know that without the data, add it to the schema:\n"file": {facts},'


@dataclass(frozen=True, kw_only=True)
class Payer:
    """The account that pays for a command."""

    ledger: Ledger
    fingerprint: str

    @classmethod
    def of(cls, content: bytes) -> Payer:
        """Where the file's account is, or will be."""
        return cls._of(lambda key: file_fingerprints(content, key))

    @classmethod
    def of_table(cls, table: StreamedTable) -> Payer:
        """The same for a table that stays where it is."""
        return cls._of(lambda key: streamed_fingerprints(table, key))

    @classmethod
    def _of(cls, names: Callable[[bytes], tuple[str, ...]]) -> Payer:
        settings = Settings.from_environment()
        key = settings.installation_key()
        ledger = installed_ledger(settings, by=at_the_shell())
        return cls(ledger=ledger, fingerprint=ledger.known_name(names(key)))

    @property
    def account(self) -> Account | None:
        """The account as it is now; None before it is opened."""
        return self.ledger.account(self.fingerprint)

    def estimates(self) -> tuple[PaidEstimate, ...]:
        """The private estimates that the account has paid for."""
        return self.ledger.estimates(self.fingerprint)

    def open_account(self, chosen: argparse.Namespace, schema: Schema, needed: Budget, *, label: str) -> str:
        """See that there is an account for this table and this unit of protection; what to know about it."""
        account = self.account
        if chosen.budget is not None or account is None:
            # Without a stated total the account gets the strictest one: what this run costs, and no second look.
            delta = needed.delta if chosen.budget_delta is None else chosen.budget_delta
            total = needed if chosen.budget is None else Budget.of(chosen.budget, delta)
            unit = schema.rows_per_person
            self.ledger.open_account(self.fingerprint, total=total, label=label[:200], rows_per_person=unit)
            if chosen.budget is not None:
                return ""
            return "No --budget was given, so the account was opened for this run alone: nothing more can be spent."
        if account.rows_per_person != schema.rows_per_person:
            raise ParameterError(
                "rows_per_person",
                schema.rows_per_person,
                allowed=f"{account.rows_per_person}, as in the account",
                remedy="Correct it in the schema.",
            )
        return ""

    def charge(
        self, budget: Budget, *, purpose: str, details: Details | None = None
    ) -> contextlib.AbstractContextManager[LedgerCharge]:
        """Charge the account for a block."""
        return self.ledger.charge(self.fingerprint, budget, purpose=purpose, details=details)

    def balance(self) -> str:
        """What is left, in words."""
        account = self.account
        assert account is not None  # noqa: S101  it was charged
        left, total = account.left, account.total
        epsilon = f"epsilon {format_amount(left.epsilon, up=False)} of {format_amount(total.epsilon)}"
        delta = f"delta {format_amount(left.delta, up=False)} of {format_amount(total.delta)}"
        return f"Left in the account: {epsilon}, {delta}."
