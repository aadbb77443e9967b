"""Make a synthetic table and pack it as a release bundle.

In release mode, which is the default, the ledger is charged before anything is drawn, as in the app.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth_core.cli.terminal import Bar, new_file, read_schema, say
from dpsynth_core.errors import ParameterError
from dpsynth_core.ledger.accounts import Ledger, spend
from dpsynth_core.ledger.fingerprint import fingerprint
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import Parameter, parameters
from dpsynth_core.mechanisms.recommend import WHY_RECOMMENDED, recommended
from dpsynth_core.privacy.budget import Budget, Guarantee, format_amount
from dpsynth_core.review import Publication, release_bundle
from dpsynth_core.review.gate import check_publishable
from dpsynth_core.review.wording import claim, meaning
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.readers.read import read_table
from dpsynth_core.table.schema import Schema

DEFAULT_DELTA = "1e-6"
"""Where the mechanism needs one and none is given."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What ``synthesize`` understands."""
    command.add_argument("--mechanism", help=f"one of {', '.join(MECHANISMS)}; by default the one that suits the table")
    command.add_argument("--epsilon", required=True, help="privacy loss of each synthetic table")
    command.add_argument("--delta", help=f"where the mechanism needs one (then {DEFAULT_DELTA} unless given)")
    command.add_argument("--copies", type=int, default=1, help="how many synthetic tables; their losses add up")
    command.add_argument(
        "--set", action="append", default=[], metavar="PARAMETER=VALUE", dest="changes",
        help="a parameter of the mechanism, instead of the suggested value; may be repeated",
    )  # fmt: skip
    command.add_argument("--out", type=Path, required=True, help="the bundle, a zip file that is not there yet")
    command.add_argument(
        "--budget",
        help="open the data set's account with this total epsilon, once and for all; without it the account of a new "
        "data set covers this run and nothing more",
    )
    command.add_argument("--budget-delta", default="0", help="the account's total delta")
    command.add_argument("--teaching", action="store_true", help="public or simulated data: no ledger, no account")
    command.add_argument("--title", default=Publication().title, help="what the table is called in the bundle")
    command.add_argument("--description", default="", help="what its rows are about")
    command.add_argument("--publisher", default="", help="who publishes it")
    command.add_argument("--license", default="", help="the address or name of a licence")


def run(chosen: argparse.Namespace) -> None:
    """Read, check everything that can be checked for free, charge, run, pack, state what may be claimed."""
    schema, table = read_schema(chosen.schema), read_table(chosen.data)
    order = _order(chosen, schema, len(table))
    _check(order, schema, len(table))
    said = Publication(
        title=chosen.title, description=chosen.description, publisher=chosen.publisher, license=chosen.license,
        original_rows=len(table), published=datetime.now(UTC).date(),
    )  # fmt: skip
    with new_file(chosen.out) as file:
        if chosen.teaching:
            made = _made(table, schema, order, said, bar := Bar())
            bar.close()
        else:
            made = _paid(chosen, table, schema, order, said)
        file.write(made.archive)
    _state(chosen, made, len(table))


@dataclass(frozen=True, kw_only=True)
class Made:
    """A run and its bundle."""

    outcome: RunResult
    """What the run has made."""
    archive: bytes
    """The bundle."""
    left: str = "No account was kept: --teaching is for public or simulated data only."
    """What remains of the account, in a sentence."""


def _made(table: pd.DataFrame, schema: Schema, order: RunConfig, said: Publication, bar: Bar) -> Made:
    outcome = execute(table, schema, order, progress=bar)
    return Made(outcome=outcome, archive=release_bundle(outcome, said).to_zip())


def _paid(chosen: argparse.Namespace, table: pd.DataFrame, schema: Schema, order: RunConfig, said: Publication) -> Made:
    settings = Settings.from_environment()
    key = settings.installation_key()
    ledger, name = Ledger(settings.ledger_url, key=key), fingerprint(table, key)
    note = _open(ledger, name, chosen, schema, order)
    bar = Bar()
    try:
        made = spend(
            ledger, name, order.total, purpose=f"Synthesize with {order.mechanism.key}",
            run=lambda: _made(table, schema, order, said, bar), drawn=lambda: bar.has_drawn,
            details={"mechanism": order.mechanism.key, "tables": order.copies},
        )  # fmt: skip
    except KeyboardInterrupt as stop:
        charged = "Noise had been drawn, so the budget was charged." if bar.has_drawn else "Nothing was charged."
        stop.add_note(charged)
        raise
    finally:
        bar.close()
    account = ledger.account(name)
    assert account is not None  # noqa: S101  it was charged above
    epsilon, delta = (format_amount(amount, up=False) for amount in (account.left.epsilon, account.left.delta))
    words = f"Left of the account: epsilon {epsilon}, delta {delta}"
    words += f", of {format_amount(account.total.epsilon)} and {format_amount(account.total.delta)}."
    return replace(made, left=f"{words} {note}".rstrip())


def _open(ledger: Ledger, name: str, chosen: argparse.Namespace, schema: Schema, order: RunConfig) -> str:
    """See that there is an account for this table and this unit of protection; what to know about it, in words."""
    account = ledger.account(name)
    if chosen.budget is not None or account is None:
        # Whoever states no total gets the strictest: what this run costs, and no second look.
        total = order.total if chosen.budget is None else Budget.of(chosen.budget, chosen.budget_delta)
        label = chosen.title if chosen.title != Publication().title else chosen.data.name
        ledger.open_account(name, total=total, label=label[:200], rows_per_person=schema.rows_per_person)
        if chosen.budget is not None:
            return ""
        return "No --budget was given, so the account was opened for this run alone: nothing more can be spent."
    if account.rows_per_person != schema.rows_per_person:
        raise ParameterError(
            "rows_per_person", schema.rows_per_person, allowed=f"{account.rows_per_person}, as in the account",
            remedy="Correct it in the schema.",
        )  # fmt: skip
    return ""


def _order(chosen: argparse.Namespace, schema: Schema, n: int) -> RunConfig:
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
    """The suggestion with what was set by hand."""
    known = {parameter.name: parameter for parameter in parameters(type(mechanism))}
    values = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise ParameterError("--set", change, allowed="PARAMETER=VALUE", remedy="Write for instance rows=1000.")
        if name not in known:
            raise ParameterError("parameter", name, allowed=", ".join(sorted(known)))
        values[name] = _value(known[name], text)
    return replace(mechanism, **values)


def _value(parameter: Parameter, text: str) -> Any:
    """A parameter's value as typed; what its type does not allow is refused here, its range by the mechanism."""
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


def _check(order: RunConfig, schema: Schema, n: int) -> None:
    """Refuse before anything is charged what would be refused afterwards."""
    mechanism, unit = order.mechanism, schema.rows_per_person
    best = Guarantee(status=mechanism.status, budget=order.total, rows_per_person=unit)
    check_publishable(schema, mechanism.judge(best))
    mechanism.plan(schema, n, order.each.per_row(unit))


def _state(chosen: argparse.Namespace, made: Made, n: int) -> None:
    outcome = made.outcome
    rows = ", ".join(f"{len(table):,}" for table in outcome.tables)
    say(f"{rows} synthetic rows from {n:,}, by {outcome.config.mechanism.title}: {chosen.out}")
    for line in (claim(outcome.guarantee), meaning(outcome.guarantee), *outcome.guarantee.caveats, made.left):
        if line:
            say(line)
