"""The original table of a command: read by its declared layout, and the account that pays for looking at it."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

import pandas as pd

from dpsynth_core.cli.terminal import hint, read_schema
from dpsynth_core.errors import DPSynthError, IntakeError, LedgerError, ParameterError
from dpsynth_core.ledger.accounts import VERSION, Account, Details
from dpsynth_core.ledger.declarations import DeclarationStore, NearAccountError
from dpsynth_core.ledger.file_fingerprint import file_fingerprints, file_sketch
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.ledger.people import at_the_shell
from dpsynth_core.ledger.row_sketch import RowSketch
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.streamed_fingerprint import streamed_fingerprints, streamed_sketch
from dpsynth_core.privacy.budget import Budget, format_amount
from dpsynth_core.table.engines.open import Engine, open_table
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.readers.read import file_content, guess_layout, read_cells
from dpsynth_core.table.schema import Schema

SHORT_NAME = 12
"""Characters of an account's name that are printed."""
NOTHING_CHARGED = "No account was charged: --teaching is for public or simulated data only."


def add_account_arguments(command: argparse.ArgumentParser) -> None:
    """How the data set's account is opened, or that there is none."""
    command.add_argument(
        "--budget",
        help="open the data set's account with this total epsilon, which cannot be changed later; without it, the "
        "account of a new data set covers this run and nothing more",
    )
    command.add_argument("--budget-delta", help="the account's total delta; default: what this run needs")
    command.add_argument(
        "--share-account",
        metavar="ACCOUNT",
        help="the table is another version of one that has an account: charge that one, from now on; its name, or how "
        "it begins, is printed where most rows of a new table have an account",
    )
    command.add_argument(
        "--separate-account",
        action="store_true",
        help="open an account although most rows are in a table that has one: these are other people",
    )
    command.add_argument("--teaching", action="store_true", help="the data are public or simulated: charge nothing")


def add_engine_arguments(command: argparse.ArgumentParser) -> None:
    """Where the rows are, if they are not to be read into memory."""
    command.add_argument(
        "--engine",
        choices=get_args(Engine),
        help="leave the rows where they are, however many: files and databases of this machine (duckdb), or Parquet "
        "files that Spark reads here or on a cluster (spark); default: read the file into memory",
    )
    command.add_argument("--table", help="of a DuckDB database")
    command.add_argument(
        "--spark-url",
        help="local[CORES] starts Spark on this machine, which is the default; sc://HOST:PORT is a cluster's "
        "Spark Connect address",
    )


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
        if chosen.spark_url is not None:
            raise ParameterError("engine", None, allowed="spark with --spark-url", remedy="Add --engine.")
        return None
    schema = read_schema(chosen.schema)
    if schema.file is None and not chosen.teaching and chosen.table is None:
        error = DPSynthError("The schema does not declare how the file is laid out. Nothing was charged.")
        error.add_note(_to_paste(FileLayout(format="parquet")))
        raise error
    return open_table(chosen.location, schema, engine=chosen.engine, table=chosen.table, spark_url=chosen.spark_url)


def original_rows(
    chosen: argparse.Namespace,
) -> tuple[pd.DataFrame | StreamedTable, Schema, int, Callable[[], Payer]]:
    """The rows, in memory or where they are, what is public about them, how many there are, and who pays."""
    streamed = opened_table(chosen)
    if streamed is not None:
        return streamed, streamed.schema, streamed.n, lambda: Payer.of_table(chosen, streamed)
    original = OriginalFile.read(chosen)
    return original.table, original.schema, len(original.table), lambda: Payer.of(chosen, original.content)


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
    """Of the account."""
    table: str
    """The table's own; another one where it shares the account of another version."""
    sketch: Callable[[], RowSketch]
    """Of the table's rows, by which its versions are recognised."""

    @classmethod
    def of(cls, chosen: argparse.Namespace, content: bytes) -> Payer:
        """Where the file's account is, or will be."""
        return cls._of(chosen, lambda key: file_fingerprints(content, key), lambda key: file_sketch(content, key))

    @classmethod
    def of_table(cls, chosen: argparse.Namespace, table: StreamedTable) -> Payer:
        """The same for a table that stays where it is."""
        return cls._of(chosen, lambda key: streamed_fingerprints(table, key), lambda key: streamed_sketch(table, key))

    @classmethod
    def _of(
        cls,
        chosen: argparse.Namespace,
        names: Callable[[bytes], tuple[str, ...]],
        sketch: Callable[[bytes], RowSketch],
    ) -> Payer:
        settings = Settings.from_environment()
        key = settings.installation_key()
        ledger = installed_ledger(settings, by=at_the_shell())
        account, own = ledger.locate(names(key))
        if chosen.share_account is not None:
            named = _named_account(ledger, chosen.share_account)
            if ledger.account(account) is not None and account != named:
                raise LedgerError(
                    "This table is charged to another account already, which cannot be changed. Nothing was charged. "
                    "Leave out --share-account."
                )
            account = named
        return cls(ledger=ledger, fingerprint=account, table=own, sketch=lambda: sketch(key))

    @property
    def account(self) -> Account | None:
        """The account as it is now; None before it is opened."""
        return self.ledger.account(self.fingerprint)

    def estimates(self) -> tuple[PaidEstimate, ...]:
        """The private estimates that the account has paid for."""
        return self.ledger.estimates(self.fingerprint)

    def open_account(self, chosen: argparse.Namespace, schema: Schema, needed: Budget, *, label: str) -> str:
        """See that there is an account for this table and this unit of protection; what to know about it."""
        account, unit = self.account, schema.rows_per_person
        if account is not None and account.rows_per_person != unit:
            raise ParameterError(
                "rows_per_person",
                unit,
                allowed=f"{account.rows_per_person}, as in the account",
                remedy="Correct it in the schema.",
            )
        store = DeclarationStore(self.ledger)
        if chosen.share_account is not None and self.table != self.fingerprint:
            store.attach(self.fingerprint, self.table)
        if account is not None and chosen.budget is None:
            store.remember_rows(self.fingerprint, self.table, self.sketch)
            return ""
        # Without a stated total the account gets the strictest one: what this run costs, and no second look.
        delta = needed.delta if chosen.budget_delta is None else chosen.budget_delta
        total = needed if chosen.budget is None else Budget.of(chosen.budget, delta)
        try:
            store.open_account(
                self.fingerprint,
                self.sketch,
                total=total,
                label=label[:200],
                rows_per_person=unit,
                apart=chosen.separate_account,
            )
        except NearAccountError as error:
            error.add_note(_near_accounts(error))
            raise
        if chosen.budget is not None:
            return ""
        return "No --budget was given, so the account was opened for this run alone: nothing more can be spent."

    def charge(
        self, budget: Budget, *, purpose: str, details: Details | None = None
    ) -> contextlib.AbstractContextManager[LedgerCharge]:
        """Charge the account for a block."""
        version = {} if self.table == self.fingerprint else {VERSION: self.table}
        return self.ledger.charge(self.fingerprint, budget, purpose=purpose, details={**(details or {}), **version})

    def balance(self) -> str:
        """What is left, in words."""
        account = self.account
        assert account is not None  # noqa: S101  it was charged
        left, total = account.left, account.total
        epsilon = f"epsilon {format_amount(left.epsilon, up=False)} of {format_amount(total.epsilon)}"
        delta = f"delta {format_amount(left.delta, up=False)} of {format_amount(total.delta)}"
        return f"Left in the account: {epsilon}, {delta}."


def _named_account(ledger: Ledger, begin: str) -> str:
    """The one account whose name begins like this."""
    found = [each for each in DeclarationStore(ledger).accounts() if each.fingerprint.startswith(begin)]
    if len(found) != 1 or len(begin) < SHORT_NAME:
        raise ParameterError(
            "--share-account",
            begin,
            allowed=f"the first {SHORT_NAME} or more characters of one account's name",
            remedy="Run the command without it: the names of accounts that share rows with this table are printed.",
        )
    return found[0].fingerprint


def _near_accounts(error: NearAccountError) -> str:
    lines = [
        f"{near.account.fingerprint[:SHORT_NAME]}  {near.account.label or 'a table'}, opened "
        f"{near.account.created:%Y-%m-%d}: about {near.share:.0%} of the smaller table's rows are in both; epsilon "
        f"{format_amount(near.account.left.epsilon, up=False)} of {format_amount(near.account.total.epsilon)} left"
        for near in error.near
    ]
    return "\n".join(
        [
            *lines,
            "If this is a corrected or extended version of that table, add --share-account with the account's name. "
            "This cannot be undone. If these are other people, add --separate-account.",
        ]
    )
