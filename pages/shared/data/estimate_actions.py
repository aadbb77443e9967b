"""What the Data page does about a range or categories that nobody knows: estimate them privately, and declare them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from dpsynth_core.errors import DPSynthError, SchemaError
from dpsynth_core.ledger.accounts import ESTIMATE
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise
from dpsynth_core.runs.estimating import count_column
from dpsynth_core.table.cells import cell_text
from dpsynth_core.table.column import Column
from dpsynth_core.table.estimate import (
    ColumnCounts,
    EstimateProspect,
    check_worthwhile,
    discover_categories,
    estimate_bounds,
    estimate_prospect,
    label_rows,
)
from dpsynth_core.table.paid_estimate import PaidEstimate, check_others_public
from pages.shared.accounts import open_ledger, paid_estimates
from pages.shared.data.actions import adopt_account_terms, replace_draft
from pages.shared.data.schema_rows import has_numeric_labels, numbers, with_column
from pages.shared.session import Session
from pages.shared.table_work import DataSet, TableWork

COUNTING = "counting"


def can_estimate(column: Column) -> bool:
    """Whether a private estimate exists for this kind of column."""
    return column.kind not in ("date", "boolean")


def rows_looked_at(data: DataSet, *, labels: bool) -> int:
    """Rows that an estimate rests on: all, or a random sample where labels of a longer table are looked for."""
    return label_rows(data.n) if labels and not data.complete else data.n


def estimate(session: Session, name: str, budget: Budget, *, run_id: str, others_public: bool, other: str = "") -> None:
    """Estimate a column's range (pure epsilon) or its categories (with delta) privately, and declare the result.

    In release mode the account is charged before the result is visible; the same ``run_id`` is charged once. Nothing
    else about the column is paid for: without the statement that it is public, nothing is charged or drawn. An
    estimate that could not find what a tenth of the rows share is refused before that. Where the app does not hold all
    rows, a worker counts them first, and what comes of it is kept by the work on the table.

    Args:
        session: Whose table it is.
        name: The column.
        budget: What the estimate costs.
        run_id: Of the charge.
        others_public: Whether a person states everything else about the column.
        other: The label for values that are not named; empty: there is none.
    """
    adopt_account_terms(session)
    work = session.work
    _check(session, name, budget, others_public=others_public)
    assert work.schema is not None  # noqa: S101  only offered with a schema
    work.estimate_note = ()
    if work.data.complete:
        _pay(session, work, work.data.table[name], name, budget, run_id=run_id, other=other)
        return

    def pay(counted: ColumnCounts) -> None:
        mine = replace(counted, layout=work.data.layout)
        try:
            _pay(session, work, mine, name, budget, run_id=run_id, other=other)
        except DPSynthError as problem:
            work.estimate_problem = problem

    work.tasks.start(
        COUNTING,
        "The estimate",
        count_column,
        work.data.original(session.person),
        work.schema,
        name,
        budget,
        about=name,
        store=pay,
    )


def _check(session: Session, name: str, budget: Budget, *, others_public: bool) -> None:
    """Refuse, before anything is read or charged, what public facts or a role forbid."""
    work = session.work
    assert work.schema is not None  # noqa: S101  only offered with a schema
    column = work.schema[name]
    if not can_estimate(column):
        raise DPSynthError(f"There is no private estimate for a {column.kind} column. Declare its facts.")
    check_others_public(name, others_public=others_public)
    labels = not column.is_numeric
    rows = rows_looked_at(work.data, labels=labels)
    check_worthwhile(rows, budget, labels=labels, rows_per_person=work.rows_per_person)
    if work.mode == "release":
        open_ledger().by.require("steward", action="state facts about a column")


def _pay(
    session: Session,
    work: TableWork,
    values: pd.Series[Any] | ColumnCounts,
    name: str,
    budget: Budget,
    *,
    run_id: str,
    other: str,
) -> None:
    """Charge, draw the noise and declare what was found."""
    if work.schema is None or name not in work.schema.names:
        raise DPSynthError(f"The facts about column {name!r} are not complete any more. Nothing was charged.")
    column, data, unit, noise = work.schema[name], work.data, work.rows_per_person, SecureNoise(budget)
    labels = not column.is_numeric
    if isinstance(values, ColumnCounts) and labels != (values.labels is not None):
        raise DPSynthError(f"The kind of column {name!r} was changed while it was counted. Nothing was charged.")
    if data.fingerprint is None:
        found = _estimate(values, budget, noise, unit, labels=labels)
        work.estimates = (*work.estimates, found)
    else:
        purpose = "Discover a column's categories" if labels else "Estimate a column's range"
        with open_ledger().charge(data.fingerprint, budget, purpose=purpose, run_id=run_id) as charge:
            noise.watch = lambda _: charge.drawn()
            found = _estimate(values, budget, noise, unit, labels=labels)
            charge.commit(result={ESTIMATE: found.to_dict()})
        paid_estimates(work)
    if has_numeric_labels(work.draft, name):
        found = _with_numeric_labels(found)
    # Whoever asked has stated the rest; without that nothing would have been counted.
    declared = found.declare(column, others_public=True)
    if labels and other:
        declared = _with_other(declared, other)
    if session.current is not work:
        return  # the account has it, for when the table is used again
    replace_draft(session, with_column(work.draft, declared))
    prospect = estimate_prospect(rows_looked_at(data, labels=labels), budget, labels=labels, rows_per_person=unit)
    work.estimate_note = (*estimate_lines(declared, prospect), *sampled_line(data, labels=labels))


def sampled_line(data: DataSet, *, labels: bool) -> tuple[str, ...]:
    """That not every row was looked at, where that is so."""
    rows = rows_looked_at(data, labels=labels)
    return () if rows == data.n else (f"Labels are looked for among {rows:,} rows drawn at random.",)


def _with_other(column: Column, other: str) -> Column:
    """The column with a label for everything that is not named; as it is where its labels are numbers."""
    try:
        return replace(column, other=other)
    except SchemaError:
        return column


def estimate_lines(column: Column, prospect: EstimateProspect) -> tuple[str, ...]:
    """What was found and what was not, in terms of the public noise; nothing else about the rows."""
    needed = f"{prospect.rows_needed:,} rows ({prospect.share_needed:.1%})"
    if column.is_numeric:
        found = f"{column.name}: the range is estimated as {column.lower} to {column.upper}."
        missed = (
            f"At either end, parts of the range with fewer than about {needed} may have been missed. Values there "
            "count as the nearest end of the range."
        )
    else:
        found = f"{column.name}: {len(column.categories or ())} labels were found."
        missed = f"Labels that fewer than about {needed} share may have been missed. "
        if column.other is not None:
            missed += f"Values with such a label count as {column.other}."
        else:
            missed += "There is no label for them: fill in Other above, or they count as missing or as the first label."
    return (
        found,
        missed,
        "The app ticked Public for this column, because the estimate was paid for. Its origin is "
        '"estimated privately", and its cost is part of what every release states.',
    )


def _estimate(
    values: pd.Series[Any] | ColumnCounts, budget: Budget, noise: Noise, unit: int, *, labels: bool
) -> PaidEstimate:
    if not labels:
        return estimate_bounds(values, epsilon=budget.epsilon, noise=noise, rows_per_person=unit)
    return discover_categories(values, epsilon=budget.epsilon, delta=budget.delta, noise=noise, rows_per_person=unit)


def _with_numeric_labels(found: PaidEstimate) -> PaidEstimate:
    """Labels as numbers, where each of them stays the text that was found and paid for: 01 is a code, not 1."""
    texts = found.categories or ()
    labels = tuple(numbers(texts))
    return replace(found, categories=labels) if texts and tuple(map(cell_text, labels)) == texts else found
