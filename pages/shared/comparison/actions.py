"""One comparison, tested privately: which can be asked for, paying for it, and simulating what it would find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.comparison_power import PowerQuestion, comparison_power
from dpsynth_core.inference.dp_mann_whitney import GroupCounts
from dpsynth_core.inference.group_comparison import group_labels, ordered
from dpsynth_core.inference.private_comparison import (
    MAX_TEST_ROWS,
    PURPOSE,
    ComparisonRequest,
    compare_privately,
    release_comparison,
)
from dpsynth_core.inference.source_groups import count_source_groups
from dpsynth_core.ledger.accounts import COMPARISON
from dpsynth_core.ledger.declarations import DeclarationStore
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_table
from pages.shared.accounts import account_of, open_ledger, paid_estimates
from pages.shared.session import Session
from pages.shared.table_work import DataSet, RunRecord, TableWork
from pages.shared.tasks import Task

POWER = "power"
GROUPS = "groups"
"""The kind of task that counts the groups of a table on the server."""
SEED = 20_250
MAX_GROUPS = 100
"""Levels of a group column that can be chosen from."""


def group_columns(schema: Schema) -> list[str]:
    """Columns whose levels can be compared."""
    return [column.name for column in schema if not column.is_numeric and 2 <= column.levels <= MAX_GROUPS]


def value_columns(schema: Schema, group: str) -> list[str]:
    """Columns whose values can be compared between groups."""
    return [column.name for column in schema if column.name != group and ordered(column)]


def labels_of(schema: Schema, group: str) -> tuple[Any, ...]:
    """The groups that a column tells apart."""
    return group_labels(schema[group])


def results(session: Session) -> tuple[PaidComparison, ...]:
    """Every private test on this table: in release mode those that its account has paid for, whoever asked."""
    if session.work.data.fingerprint is None:
        return session.work.comparisons
    account = account_of(session)
    return () if account is None else account.comparisons


def rows_tested(data: DataSet) -> int:
    """Rows that a test is made on: all, or a random sample of a longer table."""
    return min(data.n, MAX_TEST_ROWS)


def run_private_test(session: Session, schema: Schema, request: ComparisonRequest, *, run_id: str) -> None:
    """Test two groups; in release mode the account is charged before the result is visible, once for each ``run_id``.

    What public facts forbid is refused before anything is charged. Where the app does not hold all rows, a worker
    counts the groups first, and what comes of it is kept by the work on the table.
    """
    work = session.work
    request.comparison(schema, work.n)
    _check_account(session, schema)
    if work.data.complete:
        _pay(work, schema, request, run_id=run_id)
        return

    def pay(counted: GroupCounts) -> None:
        try:
            _pay(work, schema, request, run_id=run_id, counted=counted)
        except DPSynthError as problem:
            work.comparison_problem = problem

    original = work.data.original(session.person)
    title = "The private test"
    work.tasks.start(GROUPS, title, count_source_groups, original, schema, request, about=request, store=pay)


def _check_account(session: Session, schema: Schema) -> None:
    """Refuse what cannot be charged, before anything is read."""
    fingerprint = session.work.data.fingerprint
    if fingerprint is None:
        return
    account = account_of(session)
    if account is None:
        raise DPSynthError("Open the data set's account on the Data page first. Nothing was charged.")
    if account.rows_per_person != schema.rows_per_person:
        raise DPSynthError(
            f"The account protects a person with at most {account.rows_per_person} row(s), and these facts say "
            f"{schema.rows_per_person}. Nothing was charged. Correct it on the Data page."
        )
    DeclarationStore(open_ledger()).check_facts(fingerprint, schema)


def _pay(
    work: TableWork,
    schema: Schema,
    request: ComparisonRequest,
    *,
    run_id: str,
    counted: GroupCounts | None = None,
) -> None:
    """Charge, draw the noise and keep the result."""
    fingerprint = work.data.fingerprint
    private, estimates = _private(work, schema), paid_estimates(work)

    def test(watch: Callable[[Charge], None] | None) -> PaidComparison:
        if counted is None:
            return compare_privately(private, request, estimates=estimates, watch=watch)
        noise = SecureNoise(request.budget.per_row(schema.rows_per_person))
        noise.watch = watch
        return release_comparison(private, request, counted, noise, estimates=estimates)

    if fingerprint is None:
        work.comparisons = (*work.comparisons, test(None))
        return
    account = open_ledger().account(fingerprint)
    if account is not None and any(
        entry.run_id == run_id and entry.state == "committed" and COMPARISON in entry.details
        for entry in account.entries
    ):
        return  # paid for already
    with open_ledger().charge(fingerprint, request.budget, purpose=PURPOSE, run_id=run_id) as charge:
        charge.commit(result={COMPARISON: test(lambda _: charge.drawn()).to_dict()})


def _private(work: TableWork, schema: Schema) -> PrivateTable:
    """The table by these facts: those of the Data page, or those that a release was made with."""
    private = work.private
    return work.data.encoded(schema) if private is None or private.schema != schema else private


@dataclass(frozen=True, kw_only=True)
class PowerAsked:
    """What the app simulates the power for; equal questions have equal answers."""

    request: ComparisonRequest
    effect: float
    share: float | None
    run: int | None
    """The run whose released rows and mechanism are used; None: simulated rows and the chosen mechanism."""
    mechanism: str


def power_asked(
    session: Session, request: ComparisonRequest, *, effect: float, share: float | None, run: RunRecord | None
) -> PowerAsked:
    """The question that the form asks."""
    key = session.settings.key if run is None else run.config.mechanism.key
    number = None if run is None else run.number
    return PowerAsked(request=request, effect=effect, share=share, run=number, mechanism=key)


def ask_power(session: Session, schema: Schema, asked: PowerAsked) -> Task:
    """Simulate in a worker, from public facts or released rows; it costs nothing."""
    work = session.work
    if asked.run is None:
        mechanism = session.settings.mechanism(schema, work.n)
        delta, rows = session.settings.delta_of(), simulate_table(schema, min(work.n, 100_000), SEED)
    else:
        result = work.run(asked.run).result
        mechanism, delta, rows = result.config.mechanism, result.config.delta, result.tables[0]
    question = PowerQuestion(
        request=asked.request,
        schema=schema,
        rows=rows,
        n=work.n if work.data.complete else len(work.data.table),
        mechanism=mechanism,
        budget=Budget.of(asked.request.epsilon, delta),
        effect=asked.effect,
        share=asked.share,
        seed=SEED,
    )
    return work.tasks.start(
        POWER,
        "The simulation",
        comparison_power,
        question,
        about=asked,
        store=lambda power: work.powers.update({asked: power}),
    )
