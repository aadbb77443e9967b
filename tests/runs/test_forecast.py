"""What to expect before anything is spent, against what then happens on tables that the forecast has not seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from benchmarks.utility.simulated import small, survey
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.runs.expected_error import COLUMN_CELLS, PAIR_CELLS, variation
from dpsynth_core.runs.forecast import (
    AS_IT_IS,
    FEWER_BINS,
    FEWER_COLUMNS,
    MAX_ROWS,
    WITH_DELTA,
    WITH_MORE,
    Scenario,
    alternatives,
    forecast,
    forecast_each,
    forecast_in_parts,
)
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_related
from tests.tables.schemas import mixed_schema

COLUMN_FACTOR, PAIR_FACTOR = 2.0, 3.0
"""How far an error may be from its forecast here; docs/results/utility.md has what was measured on more tables."""
DELTA = Fraction(1, 10**6)


def scenario(epsilon: float = 1.0, delta: Fraction = Fraction(0)) -> Scenario:
    schema = Schema.from_dict({"columns": small()[1]})
    return Scenario(mechanism=PrivatePGM(), schema=schema, n=1_000, budget=Budget.of(epsilon, delta))


@pytest.mark.parametrize(
    ("draw", "epsilon", "delta"),
    [
        (small, "0.3", 0),
        pytest.param(small, "3", DELTA, marks=pytest.mark.slow),
        (survey, "0.3", 0),
        pytest.param(survey, "3", DELTA, marks=pytest.mark.slow),
    ],
)
def test_errors_are_near_their_forecast(draw: object, epsilon: str, delta: Fraction) -> None:
    rows, facts = draw()  # type: ignore[operator]
    schema = Schema.from_dict({"columns": facts})
    original = PrivateTable(rows, schema)
    expected = forecast(Scenario(mechanism=PrivatePGM(), schema=schema, n=original.n, budget=Budget.of(epsilon, delta)))
    made = PrivateTable(synthesize(original, PrivatePGM(), epsilon=epsilon, delta=delta, seed=5).sample(), schema)
    columns = np.mean([variation(original, made, (name,), COLUMN_CELLS) for name in schema.names])
    pairs = np.mean([variation(original, made, names, PAIR_CELLS) for names in combinations(schema.names, 2)])
    assert 1 / COLUMN_FACTOR < columns / expected.column_error < COLUMN_FACTOR
    assert expected.pair_error is not None
    assert 1 / PAIR_FACTOR < pairs / expected.pair_error < PAIR_FACTOR


@pytest.mark.slow
def test_more_epsilon_and_more_rows_mean_less_error() -> None:
    base = forecast(scenario(1.0))
    assert forecast(scenario(10.0)).column_error < base.column_error / 2
    assert forecast(replace(scenario(1.0), n=10_000)).column_error < base.column_error / 2


def test_related_columns_widen_the_range() -> None:
    expected = forecast(scenario(1.0))
    assert expected.pair_range is not None
    assert expected.pair_range[0] < expected.pair_range[1]
    low, high = expected.column_range
    assert low <= expected.column_error <= high


def test_it_is_the_same_for_everybody() -> None:
    assert forecast(scenario()) == forecast(scenario()), "nothing but public facts goes in"


def test_huge_tables_are_forecast_from_fewer_rows() -> None:
    assert replace(scenario(), n=10**7).rows == MAX_ROWS
    assert replace(scenario(), n=10**7).seconds < 60


def test_what_could_be_changed() -> None:
    ways = alternatives(scenario(), DELTA)
    assert list(ways) == [AS_IT_IS, WITH_DELTA, WITH_MORE, FEWER_COLUMNS, FEWER_BINS]
    assert ways[AS_IT_IS] == scenario()
    assert ways[WITH_DELTA].budget == Budget.of(1, DELTA)
    assert ways[WITH_MORE].budget == Budget.of(2)
    assert len(ways[FEWER_COLUMNS].schema.names) == 3
    # What can be typed on the Data page, and nothing else: numbers stay numbers, and labels stay as they are.
    for before, after in zip(scenario().schema, ways[FEWER_BINS].schema, strict=True):
        assert after == (replace(before, bins=8) if before.is_numeric and before.levels > 8 else before)


@pytest.mark.parametrize("key", ["kd_tree", "private_pgm", "perturbed_histogram"])
def test_whoever_makes_a_change_gets_the_settings_that_were_forecast(key: str) -> None:
    original = scenario()
    suggested = MECHANISMS[key].suggest(original.schema, original.n, 1)
    for way, changed in alternatives(replace(original, mechanism=suggested), DELTA).items():
        again = MECHANISMS[key].suggest(changed.schema, changed.n, changed.budget.epsilon, changed.budget.delta)
        assert changed.mechanism == again, way


def test_parameters_that_somebody_has_set_stay() -> None:
    mine = replace(scenario(), mechanism=PrivatePGM(rounds=3))
    assert {changed.mechanism for changed in alternatives(mine, DELTA).values()} == {mine.mechanism}


def test_only_what_applies_is_offered() -> None:
    granted = alternatives(scenario(1, DELTA), DELTA)
    assert WITH_DELTA not in granted
    assert WITH_DELTA not in alternatives(scenario(), Fraction(0)), "there is no delta to grant"
    pure = MECHANISMS["kd_tree"].suggest(scenario().schema, 1_000, 1)
    assert WITH_DELTA not in alternatives(replace(scenario(), mechanism=pure), DELTA), "it has no use for one"
    few = scenario().schema.select(["group", "outcome"])
    assert set(alternatives(replace(scenario(), schema=few), DELTA)) == {AS_IT_IS, WITH_DELTA, WITH_MORE}


def test_a_way_that_the_mechanism_refuses_is_left_out() -> None:
    fits = scenario()
    refused = replace(fits, mechanism=PrivatePGM(strategy="given", marginals="nowhere"))
    reported: list[float] = []
    found = forecast_each({"fits": fits, "refused": refused}, progress=lambda _, done, *__: reported.append(done))
    assert list(found) == ["fits"]
    assert reported == sorted(reported)
    assert max(reported) < 1


def test_each_forecast_is_handed_over_before_the_next_begins() -> None:
    first, second = scenario(), scenario(2)
    refused = replace(first, mechanism=PrivatePGM(strategy="given", marginals="nowhere"))
    told: list[object] = []

    class Recording(RunProgress):
        def __call__(self, stage: str, done: float, /, *points: Point) -> None:
            told.append(done)

        def part(self, result: object) -> None:
            told.append(result)

    found = forecast_in_parts([first, refused, second], progress=Recording())
    assert found == forecast_each({each: each for each in (first, second)})
    parts = [each for each in told if isinstance(each, dict)]
    assert parts == [{first: found[first]}, {}, {second: found[second]}]
    until_first = told[: told.index(parts[0])]
    assert max(done for done in until_first if isinstance(done, float)) <= 1 / 3


@pytest.mark.parametrize("relation", [0.0, 1.0])
def test_simulated_rows_fit_any_schema(relation: float) -> None:
    schema = mixed_schema()
    rows = simulate_related(schema, 500, relation=relation, seed=1)
    restored = PrivateTable(rows, schema).rows()
    for name in schema.names:
        assert restored[name].astype(str).equals(rows[name].astype(str)), "every value lies in its declared domain"


def test_relation_decides_how_much_columns_share() -> None:
    schema = scenario().schema

    def dependence(relation: float) -> float:
        """Of the first two columns: what is lost when one of them is shuffled."""
        rows = simulate_related(schema, 4_000, relation=relation, seed=2)
        shuffled = rows.assign(score=rows["score"].to_numpy()[np.random.default_rng(0).permutation(len(rows))])
        return variation(PrivateTable(rows, schema), PrivateTable(shuffled, schema), ("score", "age"), PAIR_CELLS)

    assert dependence(0.0) < 0.06
    assert dependence(0.9) > 2 * dependence(0.3) > 0.1
