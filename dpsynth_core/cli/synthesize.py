"""Make a synthetic table and pack it as a release bundle.

In release mode, which is the default, the ledger is charged before anything is drawn, as in the app.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth_core.cli.terminal import Bar, hint, new_file, read_schema, say
from dpsynth_core.errors import DPSynthError, IntakeError, ParameterError
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.ledger import Ledger, LedgerCharge
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import Parameter, parameters
from dpsynth_core.mechanisms.recommend import WHY_RECOMMENDED, recommended
from dpsynth_core.privacy.budget import Budget, Guarantee, format_amount
from dpsynth_core.review import Publication, release_bundle
from dpsynth_core.review.gate import check_publishable
from dpsynth_core.review.wording import claim, costs, meaning
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.readers.read import file_content, guess_layout, read_cells
from dpsynth_core.table.schema import Schema

NOTHING_CHARGED = "No account was charged: --teaching is for public or simulated data only."
DEFAULT_DELTA = "1e-6"
"""Used if the mechanism needs one and none is given."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of ``synthesize``."""
    command.add_argument("--mechanism", help=f"one of {', '.join(MECHANISMS)}; default: the one that suits the table")
    command.add_argument("--epsilon", required=True, help="privacy loss of each synthetic table")
    command.add_argument("--delta", help=f"delta of each synthetic table; default: {DEFAULT_DELTA} if needed, else 0")
    command.add_argument("--copies", type=int, default=1, help="number of synthetic tables; their losses add up")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PARAMETER=VALUE",
        dest="changes",
        help="set a parameter of the mechanism instead of using the suggested value; may be repeated",
    )
    command.add_argument("--out", type=Path, required=True, help="the bundle to write, a zip file; must not exist yet")
    command.add_argument(
        "--budget",
        help="open the data set's account with this total epsilon, which cannot be changed later; without it, the "
        "account of a new data set covers this run and nothing more",
    )
    command.add_argument("--budget-delta", default="0", help="the account's total delta; default: 0")
    command.add_argument("--teaching", action="store_true", help="the data are public or simulated: charge nothing")
    command.add_argument("--title", default=Publication().title, help="the table's title in the bundle")
    command.add_argument("--description", default="", help="what the rows describe")
    command.add_argument("--publisher", default="", help="who publishes the table")
    command.add_argument("--license", default="", help="the licence, by name or address")


def run(chosen: argparse.Namespace) -> None:
    """Check everything that can be checked for free, charge the account, run, write the bundle, print the claim."""
    content, schema = file_content(chosen.data), read_schema(chosen.schema)
    table = _read(content, schema)
    schema = _with_layout(schema, table, teaching=chosen.teaching)
    config = _config(chosen, schema, len(table))
    payer = None if chosen.teaching else _Payer.of(content)
    estimates = () if payer is None else payer.estimates()
    _check(config, schema, len(table), estimates)
    publication = Publication(
        title=chosen.title,
        description=chosen.description,
        publisher=chosen.publisher,
        license=chosen.license,
        original_rows=len(table),
        published=datetime.now(UTC).date(),
    )
    with new_file(chosen.out) as file:
        note = "" if payer is None else payer.open_account(chosen, schema, config)
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(contextlib.closing(Bar()))
            if payer is not None:
                bar.on_drawn = stack.enter_context(payer.charge(config)).drawn
            result = execute(table, schema, config, estimates, progress=bar)
            archive = release_bundle(result, publication).archive
        file.write(archive)
    _print(chosen, result, len(table))
    say(NOTHING_CHARGED if payer is None else f"{payer.balance()} {note}".rstrip())


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
class _Payer:
    """The account that pays for a run."""

    ledger: Ledger
    fingerprint: str

    @classmethod
    def of(cls, content: bytes) -> _Payer:
        """Where the file's account is, or will be."""
        settings = Settings.from_environment()
        key = settings.installation_key()
        ledger = Ledger(settings.ledger_url, key=key)
        return cls(ledger=ledger, fingerprint=ledger.known_name(file_fingerprints(content, key)))

    def estimates(self) -> tuple[PaidEstimate, ...]:
        """The private estimates that the account has paid for."""
        return self.ledger.estimates(self.fingerprint)

    def open_account(self, chosen: argparse.Namespace, schema: Schema, config: RunConfig) -> str:
        """See that there is an account; what to know about it."""
        return _open_account(self.ledger, self.fingerprint, chosen, schema, config)

    def charge(self, config: RunConfig) -> contextlib.AbstractContextManager[LedgerCharge]:
        return self.ledger.charge(
            self.fingerprint,
            config.total,
            purpose=f"Synthesize with {config.mechanism.key}",
            details={"mechanism": config.mechanism.key, "tables": config.copies},
        )

    def balance(self) -> str:
        """What is left, in words."""
        account = self.ledger.account(self.fingerprint)
        assert account is not None  # noqa: S101  it was charged
        left, total = account.left, account.total
        epsilon = f"epsilon {format_amount(left.epsilon, up=False)} of {format_amount(total.epsilon)}"
        delta = f"delta {format_amount(left.delta, up=False)} of {format_amount(total.delta)}"
        return f"Left in the account: {epsilon}, {delta}."


def _open_account(ledger: Ledger, name: str, chosen: argparse.Namespace, schema: Schema, config: RunConfig) -> str:
    """Make sure that there is an account for this table and this unit of protection; what to know about it."""
    account = ledger.account(name)
    if chosen.budget is not None or account is None:
        # Without a stated total the account gets the strictest one: what this run costs, and no second look.
        total = config.total if chosen.budget is None else Budget.of(chosen.budget, chosen.budget_delta)
        label = chosen.title if chosen.title != Publication().title else chosen.data.name
        ledger.open_account(name, total=total, label=label[:200], rows_per_person=schema.rows_per_person)
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


def _config(chosen: argparse.Namespace, schema: Schema, n: int) -> RunConfig:
    key = chosen.mechanism or recommended(schema)
    if key not in MECHANISMS:
        raise ParameterError("mechanism", key, allowed=", ".join(MECHANISMS))
    if chosen.mechanism is None:
        say(f"No --mechanism was given, so {key} is used. {WHY_RECOMMENDED}")
    kind = MECHANISMS[key]
    delta = chosen.delta or (DEFAULT_DELTA if kind.needs_delta else "0")
    Budget.of(chosen.epsilon, delta)
    mechanism = _changed(kind.suggest(schema, n, chosen.epsilon), chosen.changes)
    return RunConfig(mechanism=mechanism, epsilon=chosen.epsilon, delta=delta, copies=chosen.copies)


def _changed(mechanism: Mechanism, changes: list[str]) -> Mechanism:
    """The suggested mechanism with the parameters set by hand."""
    known = {parameter.name: parameter for parameter in parameters(type(mechanism))}
    values = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise ParameterError("--set", change, allowed="PARAMETER=VALUE", remedy="Write, for instance, rows=1000.")
        if name not in known:
            raise ParameterError("parameter", name, allowed=", ".join(sorted(known)))
        values[name] = _value(known[name], text)
    return replace(mechanism, **values)


def _value(parameter: Parameter, text: str) -> Any:
    """A parameter's value from text; its type is checked here, its range by the mechanism."""
    if parameter.optional and text.lower() in ("", "none"):
        return None
    try:
        if parameter.kind == "int":
            return int(text)
        if parameter.kind == "float":
            return float(text)
        if parameter.kind == "bool":
            return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]
    except (ValueError, KeyError):
        allowed = {"int": "a whole number", "float": "a number", "bool": "true or false"}[parameter.kind]
        raise ParameterError(parameter.name, text, allowed=allowed) from None
    return text


def _check(config: RunConfig, schema: Schema, n: int, estimates: Iterable[PaidEstimate]) -> None:
    """Refuse now, while it is free, what would be refused after the charge."""
    mechanism, unit = config.mechanism, schema.rows_per_person
    best = Guarantee(status=mechanism.status, parts=(config.cost,), rows_per_person=unit)
    check_publishable(schema, mechanism.judge(best), estimates)
    mechanism.plan(schema, n, config.each.per_row(unit))


def _print(chosen: argparse.Namespace, result: RunResult, n: int) -> None:
    rows = ", ".join(f"{len(table):,}" for table in result.tables)
    say(f"{rows} synthetic rows from {n:,} original ones, by {result.config.mechanism.title}: {chosen.out}")
    guarantee = result.guarantee
    for line in (claim(guarantee), *costs(guarantee), meaning(guarantee), *guarantee.caveats):
        if line:
            say(line)
