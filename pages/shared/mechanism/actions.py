"""What the Mechanism page does: preview a mechanism on simulated rows, and forecast its error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.review.wording import share
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.runs.forecast import (
    AS_IT_IS,
    WITH_DELTA,
    Forecast,
    Scenario,
    alternatives,
    forecast_each,
    forecast_with_remedies,
)
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_table
from pages.shared.accounts import account_of
from pages.shared.session import Session
from pages.shared.table_work import ForecastRecord, Preview, TableWork
from pages.shared.tasks import Task

PREVIEW = "preview"
RIVALS = "rivals"
FORECAST = "forecast"
SKIP_CHECK = "skip check"
PREVIEW_ROWS = 20_000
PREVIEW_SEED = 1
BEGIN_SECONDS = 5.0
"""Expected time up to which a forecast begins by itself."""


def start_preview(session: Session, config: RunConfig) -> Task:
    """Run the mechanism on simulated rows with the same schema: free, because no row of the table is looked at."""
    work = session.work
    if work.schema is None or session.mode != "teaching":
        raise DPSynthError("Previews are for teaching mode, with complete public facts.")
    simulated = simulate_table(work.schema, min(work.n, PREVIEW_ROWS), seed=PREVIEW_SEED)

    def store(result: RunResult) -> None:
        work.preview = Preview(config=config, simulated=simulated, synthetic=result.tables[0])

    seeded = replace(config, copies=1, seed=PREVIEW_SEED)
    return work.tasks.start(PREVIEW, "The preview", execute, simulated, work.schema, seeded, about=config, store=store)


def scenario_of(session: Session, config: RunConfig) -> Scenario:
    """What a forecast is about: public facts only."""
    work = session.work
    if work.schema is None:
        raise DPSynthError("The public facts are not complete. Correct them on the Data page.")
    return Scenario(mechanism=config.mechanism, schema=work.schema, n=work.n, budget=config.fitted)


def rival_scenarios(session: Session, schema: Schema, n: int, keys: tuple[str, ...]) -> dict[str, Scenario]:
    """The same table released by several mechanisms at the epsilon on the page: public facts only."""
    settings = session.settings
    return {
        key: Scenario(
            mechanism=settings.mechanism(schema, n, key),
            schema=schema,
            n=n,
            budget=Budget.of(settings.epsilon, settings.delta_of(key)),
        )
        for key in keys
    }


def start_rivals(session: Session, scenarios: dict[str, Scenario]) -> Task:
    """Forecast the errors of several mechanisms on the same simulated tables."""
    work = session.work

    def store(found: dict[str, Forecast]) -> None:
        work.rivals = scenarios, found
        remember_forecasts(work, scenarios, found)

    known = known_forecasts(work, scenarios)
    return work.tasks.start(RIVALS, "The forecast", forecast_each, scenarios, known, about=scenarios, store=store)


def rival_rows(found: Mapping[str, Forecast]) -> list[dict[str, str]]:
    """What each of them would get wrong, on one scale."""
    return [
        {
            "mechanism": MECHANISMS[key].title,
            "single columns, on average": share(each.column_error),
            "pairs, on average": "" if each.pair_error is None else share(each.pair_error),
        }
        for key, each in found.items()
    ]


def offered_delta(session: Session) -> Fraction:
    """A delta that each table could be granted: the one on the page, as far as the account has it."""
    wanted = Budget.of(1, session.settings.delta).delta
    if session.mode == "teaching":
        return wanted
    account = account_of(session)
    return Fraction(0) if account is None else min(wanted, account.left.delta / session.settings.copies)


def _forecast_ways(session: Session, scenario: Scenario) -> dict[str, Scenario]:
    """A release as it is, and the same with a delta where that could be granted."""
    ways, delta = {AS_IT_IS: scenario}, offered_delta(session)
    if scenario.mechanism.takes_delta and not scenario.budget.delta and delta:
        ways[WITH_DELTA] = replace(scenario, budget=Budget(epsilon=scenario.budget.epsilon, delta=delta))
    return ways


def known_forecast(session: Session, scenario: Scenario) -> ForecastRecord | None:
    """The forecast of a release, if it was made before, by whichever page; None if not.

    One that lacks what a delta would give is taken for it only where the rest would take long.
    """
    work = session.work
    if work.forecast is not None and work.forecast.scenario == scenario:
        return work.forecast
    ways = _forecast_ways(session, scenario)
    found = {way: work.forecasts[each] for way, each in ways.items() if each in work.forecasts}
    if AS_IT_IS not in found or (len(found) < len(ways) and scenario.seconds <= BEGIN_SECONDS):
        return None
    return ForecastRecord(scenario=scenario, found=found, delta=offered_delta(session))


def start_forecast(session: Session, scenario: Scenario) -> Task:
    """Forecast the error of a release, and of the same with a delta where that could be granted."""
    ways, delta = _forecast_ways(session, scenario), offered_delta(session)
    work = session.work

    def store(found: dict[str, Forecast]) -> None:
        work.forecast = ForecastRecord(scenario=scenario, found=found, delta=delta)
        remember_forecasts(work, ways, found)

    known = known_forecasts(work, ways)
    return work.tasks.start(FORECAST, "The forecast", forecast_each, ways, known, about=scenario, store=store)


def start_skip_check(session: Session, scenario: Scenario) -> Task:
    """Forecast the error before the visitor skips ahead, and what would help where it is too large."""
    work, delta = session.work, offered_delta(session)

    def store(found: dict[str, Forecast]) -> None:
        work.skip_check = ForecastRecord(scenario=scenario, found=found, delta=delta)
        remember_forecasts(work, alternatives(scenario, delta), found)

    known = known_forecasts(work, alternatives(scenario, delta))
    args = scenario, delta, known
    return work.tasks.start(SKIP_CHECK, "The forecast", forecast_with_remedies, *args, about=scenario, store=store)


def known_forecasts(work: TableWork, ways: Mapping[str, Scenario]) -> dict[Scenario, Forecast]:
    """What was forecast before."""
    return {each: work.forecasts[each] for each in ways.values() if each in work.forecasts}


def remember_forecasts(work: TableWork, ways: Mapping[str, Scenario], found: Mapping[str, Forecast]) -> None:
    """Keep forecasts, so that no page makes them again."""
    work.forecasts |= {ways[way]: forecast for way, forecast in found.items()}
