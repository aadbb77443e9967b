"""The grid of plans: every private mechanism at a few epsilons, from public facts alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.forecast import PAIR_LIMITS, Forecast, Scenario, forecast_each
from dpsynth_core.runs.planning import PLAN_EPSILONS, best_plan, least_error, plan_rows
from dpsynth_core.table.examples import EXAMPLES

SCHEMA, N = EXAMPLES["diabetes"].schema, 442


def foreseen(column: float, *pairs: float) -> Forecast:
    errors = ExpectedError(
        columns=(("a", column),), pairs=tuple(("a", f"b{i}", each) for i, each in enumerate(pairs)), repetitions=1
    )
    return Forecast(rows=N, errors=(errors,))


def plan(epsilon: str, delta: str = "0", key: str = "private_pgm") -> Scenario:
    mechanism = MECHANISMS[key].suggest(SCHEMA, N, epsilon, delta)
    return Scenario(mechanism=mechanism, schema=SCHEMA, n=N, budget=Budget.of(epsilon, delta))


def test_every_private_mechanism_has_a_row_and_the_recommended_one_is_first() -> None:
    rows = plan_rows(SCHEMA, N, delta="1e-6")
    assert rows[0].key == recommended(SCHEMA)
    meant = {key for key, kind in MECHANISMS.items() if kind.status != "none" and not kind.comparator}
    assert {row.key for row in rows} == meant
    both = [key for key, kind in MECHANISMS.items() if kind.takes_delta and not kind.needs_delta]
    for key in both:
        assert sorted(row.delta for row in rows if row.key == key) == [0, Fraction(1, 10**6)]
    for row in rows:
        budgets = [scenario.budget for scenario in row.scenarios]
        assert [each.epsilon for each in budgets] == [Fraction(each) for each in PLAN_EPSILONS]
        assert {each.delta for each in budgets} == {row.delta}


def test_without_a_delta_no_plan_has_one() -> None:
    rows = plan_rows(SCHEMA, N, delta=0)
    assert all(row.delta == 0 for row in rows)
    assert not any(MECHANISMS[row.key].needs_delta for row in rows)


def test_a_mechanism_that_refuses_says_why_and_the_others_stay() -> None:
    wide = replace(
        SCHEMA, columns=tuple(replace(column, name=f"{column.name} {i}") for i in range(8) for column in SCHEMA)
    )
    rows = {row.key: row for row in plan_rows(wide, N, delta=0)}
    refused = [row for row in rows.values() if not row.scenarios]
    assert refused
    assert all(row.refusal for row in refused)
    assert rows["private_pgm"].scenarios


def test_the_best_plan_is_close_at_the_least_epsilon_and_without_a_delta_if_possible() -> None:
    close, far = foreseen(0.01, 0.02), foreseen(0.2, 0.4)
    found = {plan("0.5"): far, plan("1", "1e-6"): close, plan("1"): foreseen(0.02, 0.05), plan("5"): close}
    assert best_plan(found) == plan("1")
    assert best_plan({plan("5"): far}) is None
    assert least_error(found) in (plan("1", "1e-6"), plan("5"))
    assert least_error({}) is None


def test_pairs_that_are_not_far_off_count_as_kept() -> None:
    limit = PAIR_LIMITS[1]
    assert foreseen(0.1, limit, limit + 0.01, 0.0).kept_pairs == (2, 3)
    assert foreseen(0.1).kept_pairs == (0, 0)


def test_what_is_known_is_not_forecast_again() -> None:
    known = {plan("1"): foreseen(0.123)}
    stages: list[str] = []
    found = forecast_each({"one": plan("1")}, known, progress=lambda stage, *_: stages.append(stage))
    assert found == {"one": known[plan("1")]}
    assert not stages
