"""Make a synthetic table and pack it as a release bundle.

In release mode, which is the default, the ledger is charged before anything is drawn, as in the app.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpsynth_core.cli.original_file import (
    NOTHING_CHARGED,
    Payer,
    add_account_arguments,
    add_engine_arguments,
    original_rows,
)
from dpsynth_core.cli.terminal import Bar, new_file, say
from dpsynth_core.errors import ParameterError
from dpsynth_core.ledger.accounts import Details
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import Parameter, parameters
from dpsynth_core.mechanisms.recommend import WHY_RECOMMENDED, recommended
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.review import Publication, release_bundle
from dpsynth_core.review.bundle import write_long_bundle
from dpsynth_core.review.gate import check_publishable
from dpsynth_core.review.wording import claim, costs, error_lines, meaning
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.runs.expected_error import NOT_COVERED
from dpsynth_core.runs.long_run import execute_long
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.schema import Schema

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
    add_account_arguments(command)
    add_engine_arguments(command)
    command.add_argument("--title", default=Publication().title, help="the table's title in the bundle")
    command.add_argument("--description", default="", help="what the rows describe")
    command.add_argument("--publisher", default="", help="who publishes the table")
    command.add_argument("--license", default="", help="the licence, by name or address")


def run(chosen: argparse.Namespace) -> None:
    """Check everything that can be checked for free, charge the account, run, write the bundle, print the claim."""
    table, schema, n, pay = original_rows(chosen)
    config = _config(chosen, schema, n)
    long = config.is_long(n)
    if long and config.copies > 1:
        config.check_length(n)
    payer = None if chosen.teaching else pay()
    estimates = () if payer is None else payer.estimates()
    _check(config, schema, n, estimates)
    publication = Publication(
        title=chosen.title,
        description=chosen.description,
        publisher=chosen.publisher,
        license=chosen.license,
        original_rows=n,
        published=datetime.now(UTC).date(),
    )
    with new_file(chosen.out) as file:
        note = "" if payer is None else payer.open_account(chosen, schema, config.total, label=_label(chosen))
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(contextlib.closing(Bar()))
            if payer is not None:
                bar.on_drawn = stack.enter_context(_charge(payer, config)).drawn
            if long:
                run = execute_long(table, schema, config, estimates, progress=bar)
                write_long_bundle(run, publication, file)
                result, rows = run.result, [run.rows]
            else:
                result = execute(table, schema, config, estimates, progress=bar)
                file.write(release_bundle(result, publication).archive)
                rows = [len(made) for made in result.tables]
    _print(chosen, result, rows, n)
    say(NOTHING_CHARGED if payer is None else f"{payer.balance()} {note}".rstrip())


def _label(chosen: argparse.Namespace) -> str:
    """What a new account is called."""
    return str(chosen.title if chosen.title != Publication().title else chosen.data.name)


def _charge(payer: Payer, config: RunConfig) -> contextlib.AbstractContextManager[LedgerCharge]:
    details: Details = {"mechanism": config.mechanism.key, "tables": config.copies}
    return payer.charge(config.total, purpose=f"Synthesize with {config.mechanism.key}", details=details)


def _config(chosen: argparse.Namespace, schema: Schema, n: int) -> RunConfig:
    key = chosen.mechanism or recommended(schema)
    if key not in MECHANISMS:
        raise ParameterError("mechanism", key, allowed=", ".join(MECHANISMS))
    if chosen.mechanism is None:
        say(f"No --mechanism was given, so {key} is used. {WHY_RECOMMENDED}")
    kind = MECHANISMS[key]
    delta = chosen.delta or (DEFAULT_DELTA if kind.needs_delta else "0")
    Budget.of(chosen.epsilon, delta)
    mechanism = _changed(kind.suggest(schema, n, chosen.epsilon, delta), chosen.changes)
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


def _print(chosen: argparse.Namespace, result: RunResult, rows: list[int], n: int) -> None:
    made = ", ".join(f"{length:,}" for length in rows)
    say(f"{made} synthetic rows from {n:,} original ones, by {result.config.mechanism.title}: {chosen.out}")
    guarantee = result.guarantee
    for line in (claim(guarantee), *costs(guarantee), meaning(guarantee), *guarantee.caveats):
        if line:
            say(line)
    if result.expected_error is not None:
        say("Estimated error, from the synthetic rows and public facts alone:")
        for line in (*error_lines(result.expected_error), NOT_COVERED):
            say(line)
