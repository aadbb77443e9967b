"""Plans to choose from before anything is spent: mechanisms, with and without a delta, at a few epsilons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.runs.forecast import Forecast, Scenario
from dpsynth_core.table.schema import Schema

PLAN_EPSILONS = ("0.5", "1", "2", "5")
"""Epsilons of the grid: what one synthetic table may cost."""


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One mechanism, with or without a delta, at every epsilon that it can be run with."""

    key: str
    delta: Fraction
    scenarios: tuple[Scenario, ...]
    """By epsilon, the smallest first; those that the mechanism refuses are left out."""
    seconds: float
    """Expected computing time of all its forecasts."""
    refusal: str = ""
    """Why a scenario was left out, in the mechanism's own words; empty where none was."""

    @property
    def title(self) -> str:
        return MECHANISMS[self.key].title


def plan_rows(
    schema: Schema, n: int, *, delta: Amount, epsilons: Sequence[Amount] = PLAN_EPSILONS
) -> tuple[PlanRow, ...]:
    """Every private mechanism with the parameters that it suggests, the recommended one first and then by quickness.

    The papers' comparators are left out.

    Args:
        schema: The public facts.
        n: Rows of the original.
        delta: What a mechanism that can use one is granted; without, those that need one are left out.
        epsilons: Of one synthetic table, for the unit of protection that the schema declares.

    Example:
        >>> schema = Schema.from_dict({"columns": [{"name": "smoker", "kind": "boolean"}]})
        >>> [(row.key, float(row.delta)) for row in plan_rows(schema, 1000, delta=0)][:1]
        [('kd_tree', 0.0)]
    """
    granted = Budget.of(1, delta).delta
    rows = []
    for key, kind in MECHANISMS.items():
        if kind.status == "none" or kind.comparator:
            continue
        deltas = [] if kind.needs_delta else [Fraction(0)]
        if granted and (kind.needs_delta or kind.takes_delta):
            deltas.append(granted)
        rows += [_row(key, schema, n, [Budget.of(epsilon, each) for epsilon in epsilons]) for each in deltas]
    first = recommended(schema)
    return tuple(sorted(rows, key=lambda row: (row.key != first, row.seconds)))


def _row(key: str, schema: Schema, n: int, budgets: Sequence[Budget]) -> PlanRow:
    scenarios, seconds, refusal = [], 0.0, ""
    for budget in budgets:
        try:
            mechanism = MECHANISMS[key].suggest(schema, n, budget.epsilon, budget.delta)
            scenario = Scenario(mechanism=mechanism, schema=schema, n=n, budget=budget)
            seconds += scenario.seconds
        except DPSynthError as problem:
            refusal = str(problem)
            continue
        scenarios.append(scenario)
    return PlanRow(key=key, delta=budgets[0].delta, scenarios=tuple(scenarios), seconds=seconds, refusal=refusal)


def best_plan(found: Mapping[Scenario, Forecast]) -> Scenario | None:
    """The plan with the smallest epsilon that is forecast to be close, and the most accurate of those.

    A plan without a delta is preferred where both are close at the same epsilon. None where no plan is close.
    """
    close = [scenario for scenario, forecast in found.items() if forecast.light == "green"]
    return min(close, key=lambda each: (each.budget.epsilon, each.budget.delta, _error(found[each])), default=None)


def least_error(found: Mapping[Scenario, Forecast]) -> Scenario | None:
    """The most accurate plan, whatever it costs."""
    return min(found, key=lambda each: _error(found[each]), default=None)


def _error(forecast: Forecast) -> float:
    return forecast.column_error if forecast.pair_error is None else forecast.pair_error
