"""The grid of plans without a widget in sight: forecasts by batch, quick ones first, and applying one of them."""

from __future__ import annotations

from fractions import Fraction

from dpsynth_core.privacy.budget import Budget, format_amount
from dpsynth_core.runs.forecast import Forecast, Scenario, forecast_in_parts
from dpsynth_core.runs.planning import PlanRow, plan_rows
from pages.shared.accounts import account_of
from pages.shared.session import Session
from pages.shared.table_work import TableWork
from pages.shared.tasks import Task

PLANS = "plans"
BATCH_SECONDS = 2.0
"""Expected time of the rows that one worker forecasts."""
UNASKED_SECONDS = 60.0
"""Expected time of a row beyond which it is forecast only if somebody asks for it."""
TABLES = 2
"""Synthetic tables that the proposed total of an account has room for: a second one must be possible."""


def planned_rows(session: Session) -> tuple[PlanRow, ...]:
    """The grid for the table in use; computed anew only when its public facts or the delta have changed."""
    work = session.work
    assert work.schema is not None  # noqa: S101  only shown with a schema
    about = work.schema, work.n, plan_delta(session)
    if work.plan_rows is None or work.plan_rows[0] != about:
        work.plan_rows = about, plan_rows(work.schema, work.n, delta=about[2])
    return work.plan_rows[1]


def plan_delta(session: Session) -> Fraction:
    """The delta of the grid: the one on the Mechanism page, or what is left of the account where that is less."""
    wanted = Budget.of(1, session.settings.delta).delta
    account = account_of(session)
    return wanted if account is None else min(wanted, account.left.delta)


def found_plans(session: Session) -> dict[Scenario, Forecast]:
    """What has been forecast of the grid."""
    known = session.work.forecasts
    return {each: known[each] for row in planned_rows(session) for each in row.scenarios if each in known}


def waiting_rows(session: Session) -> list[PlanRow]:
    """Rows that nobody has forecast yet and that need no asking, in the order of the grid's quickness."""
    rows = [row for row in planned_rows(session) if _missing(session.work, row) and row.seconds <= UNASKED_SECONDS]
    return sorted(rows, key=lambda row: row.seconds)


def next_batch(session: Session) -> list[Scenario]:
    """What to forecast next: the quickest row, and those after it as long as they are quick together."""
    batch: list[Scenario] = []
    seconds = 0.0
    for row in waiting_rows(session):
        seconds += row.seconds
        if batch and seconds > BATCH_SECONDS:
            break
        batch += _missing(session.work, row)
    return batch


def start_plans(session: Session, scenarios: list[Scenario]) -> Task:
    """Forecast some plans in a worker. Public facts only: nothing is charged."""
    work = session.work

    def store(found: dict[Scenario, Forecast]) -> None:
        work.forecasts |= found
        work.unforeseen |= set(scenarios) - set(found)

    seconds = sum(scenario.seconds for scenario in scenarios)
    return work.tasks.start(
        PLANS, "The comparison", forecast_in_parts, scenarios, about=tuple(scenarios), store=store, expected=seconds
    )


def advance(session: Session) -> Task | None:
    """Take in what has been forecast and begin with the next batch, until all is there or somebody has cancelled."""
    task = session.work.tasks.get(PLANS)
    if task is None:
        return None
    task.collect()
    if task.active:
        for found in task.job.parts:
            session.work.forecasts |= found
    batch = [] if task.active or task.ended_early else next_batch(session)
    return start_plans(session, batch) if batch else task


def unfit(work: TableWork, row: PlanRow) -> bool:
    """Whether the mechanism does not fit the table at any epsilon."""
    return all(scenario in work.unforeseen for scenario in row.scenarios)


def _missing(work: TableWork, row: PlanRow) -> list[Scenario]:
    return [each for each in row.scenarios if each not in work.forecasts and each not in work.unforeseen]


def too_dear(session: Session, scenario: Scenario) -> str:
    """Why the account cannot pay for a plan; empty where it can or where there is none."""
    account, cost = account_of(session), scenario.budget
    if account is None:
        return ""
    copies = session.settings.copies
    if cost.epsilon * copies > account.left.epsilon:
        return f"The account has only ε {format_amount(account.left.epsilon, up=False)} left."
    if cost.delta * copies > account.left.delta:
        return f"The account has only δ {format_amount(account.left.delta, up=False)} left."
    return ""


def apply_plan(session: Session, scenario: Scenario) -> None:
    """Use its mechanism with the suggested parameters, its epsilon and its delta.

    Where the data set has no account yet, a total is proposed that has room for two such tables.
    """
    settings, work, budget = session.settings, session.work, scenario.budget
    key = scenario.mechanism.key
    settings.changed.pop(key, None)
    settings.pick(key)
    settings.pick_epsilon(format_amount(budget.epsilon))
    settings.grant_delta = bool(budget.delta)
    if budget.delta:
        settings.use_delta(format_amount(budget.delta, up=False))
    if session.mode == "release" and account_of(session) is None:
        times = TABLES * settings.copies
        delta = times * budget.delta or work.proposed_total.delta
        work.proposed_total = Budget(epsilon=times * budget.epsilon, delta=delta)


def is_applied(session: Session, scenario: Scenario) -> bool:
    """Whether the settings are those of the plan."""
    settings, work = session.settings, session.work
    if settings.key != scenario.mechanism.key or work.schema is None or settings.changed.get(settings.key):
        return False
    return Budget.of(settings.epsilon, settings.delta_of()) == scenario.budget
