"""Test privately whether two groups differ: one p-value from the original rows, paid for.

If your question is one comparison, this is a better use of epsilon than a synthetic table. In release mode, which is
the default, the ledger is charged before the p-value is visible, and keeps the result.
"""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from dpsynth_core.cli.original_file import (
    NOTHING_CHARGED,
    Payer,
    add_account_arguments,
    add_engine_arguments,
    original_rows,
)
from dpsynth_core.cli.terminal import say
from dpsynth_core.errors import DPSynthError, SchemaError
from dpsynth_core.inference.group_comparison import group_labels
from dpsynth_core.inference.private_comparison import PURPOSE, ComparisonRequest, compare_privately
from dpsynth_core.ledger.accounts import COMPARISON
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.gate import check_publishable
from dpsynth_core.review.wording import claim, costs, meaning
from dpsynth_core.table.column import label_text
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of ``compare``."""
    command.add_argument("--value", required=True, help="the column whose values are compared")
    command.add_argument("--group", required=True, help="the column of the groups")
    command.add_argument(
        "--levels", nargs=2, metavar=("FIRST", "SECOND"), help="the two groups, if the group column has more than two"
    )
    command.add_argument("--epsilon", required=True, help="privacy loss of the test")
    command.add_argument("--delta", default="1e-6", help="delta of the test, which needs one; default: 1e-6")
    command.add_argument("--again", action="store_true", help="pay for a fresh result although there is one already")
    add_account_arguments(command)
    add_engine_arguments(command)


def run(chosen: argparse.Namespace) -> None:
    """Check everything that can be checked for free, charge the account, test, print the p-value and the claim."""
    rows, schema, n, pay = original_rows(chosen)
    levels = None if chosen.levels is None else _levels(schema, chosen.group, chosen.levels)
    request = ComparisonRequest(
        value=chosen.value, group=chosen.group, levels=levels, epsilon=chosen.epsilon, delta=chosen.delta
    )
    question = request.comparison(schema, n)
    private = _private(rows, schema.select((chosen.value, chosen.group)))
    if chosen.teaching:
        _print(compare_privately(private, request))
        say(NOTHING_CHARGED)
        return
    payer = pay()
    check_publishable(private.schema, request.claim(schema), payer.estimates())
    if not chosen.again:
        _check_new(payer, (chosen.value, chosen.group, question.levels))
    note = payer.open_account(chosen, schema, request.budget, label=chosen.data.name)
    with payer.charge(request.budget, purpose=PURPOSE) as charge:
        found = compare_privately(private, request, estimates=payer.estimates(), watch=lambda _: charge.drawn())
        charge.commit(result={COMPARISON: found.to_dict()})
    _print(found)
    say(f"{payer.balance()} {note}".rstrip())


def _private(rows: pd.DataFrame | StreamedTable, schema: Schema) -> PrivateRows:
    return PrivateTable(rows, schema) if isinstance(rows, pd.DataFrame) else rows.select(schema.names)


def _levels(schema: Schema, group: str, texts: list[str]) -> tuple[Any, Any]:
    """Declared labels from text."""
    labels = {label_text(label): label for label in group_labels(schema[group])}
    for text in texts:
        if text not in labels:
            raise SchemaError(group, "levels", text, allowed=", ".join(labels))
    return labels[texts[0]], labels[texts[1]]


def _check_new(payer: Payer, question: tuple[str, str, tuple[Any, Any]]) -> None:
    """A result that is paid for is free to read again; fresh noise is not."""
    account = payer.account
    known = [found for found in (account.comparisons if account else ()) if found.about == question]
    if known:
        results = "\n".join(
            f"At epsilon {format_amount(found.cost.budget.epsilon)}: {found.finding}" for found in known
        )
        raise DPSynthError(
            f"The account has paid for this test before.\n{results}\nNothing was charged. Use that result, or add "
            "--again to pay for another one with fresh noise."
        )


def _print(found: PaidComparison) -> None:
    first, second = found.levels
    say(f"p-value: {found.pvalue:.4g}")
    say(
        f"Private Mann-Whitney test of {found.value!r}, {found.group!r} {first!r} against {second!r}, on {found.basis}."
    )
    say(f"Noisy min(U1, U2): {found.statistic:,.1f}, with Laplace noise of scale {found.scale:,.1f}.")
    say(
        "A low p-value is evidence of a difference. A high one does not show that the groups are alike: the noise can "
        "hide a difference."
    )
    guarantee = found.guarantee
    for line in (claim(guarantee), *costs(guarantee), meaning(guarantee), *guarantee.caveats):
        if line:
            say(line)
