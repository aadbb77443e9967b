"""With and without one row: what a reader is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.audit.end_to_end_attack import attack
from dpsynth_core.audit.neighbours import NeighbourPair
from dpsynth_core.charts.tradeoffs import neighbours_chart
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.neighbours import NeighbourConfig, NeighbourDemonstration, demonstrate, watched_row

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "sort", "kind": "categorical", "categories": ["a", "b", "c"], "public": True},
            {"name": "since", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "bins": 2, "public": True},
        ]
    }
)
TABLE = pd.DataFrame({"sort": ["a"] * 30 + ["c"], "since": pd.to_datetime(["2020-02-01"] * 30 + ["2020-11-01"])})


def show(epsilon: float, runs: int = 600, **options: object) -> NeighbourDemonstration:
    return demonstrate(TABLE, SCHEMA, PerturbedHistogram(), epsilon=epsilon, row=30, runs=runs, **options)  # type: ignore[arg-type]


def test_the_ratio_stays_below_what_epsilon_allows_and_grows_with_it() -> None:
    little, much = show(0.5), show(6.0)
    assert little.bound.epsilon <= 0.5
    assert much.bound.epsilon <= 6.0
    assert much.bound.epsilon > 2.0 > little.bound.epsilon
    assert much.ratio > little.ratio
    assert much.ratio < much.allowed
    assert much.with_row.mean() > much.without.mean()


def test_it_repeats_and_tells_how_far_it_is() -> None:
    told: list[float] = []
    first = show(1.0, runs=20, progress=lambda _stage, done, *_: told.append(done))
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert np.array_equal(first.with_row, show(1.0, runs=20).with_row)
    assert not np.array_equal(first.with_row, show(1.0, runs=20, seed=1).with_row)


def test_a_row_of_the_fullest_other_cell_takes_the_place() -> None:
    crowd = TABLE.iloc[[*range(30), 4]].reset_index(drop=True)
    pair = NeighbourPair(name="by hand", schema=SCHEMA, first=crowd, second=TABLE, row=30)
    budget, seed = Budget.of(1), np.random.SeedSequence(0)
    without, with_row = attack(PerturbedHistogram(), pair, SeededNoise, budget, runs=20, seed=seed)
    shown = show(1.0, runs=20)
    assert np.array_equal(shown.without, without)
    assert np.array_equal(shown.with_row, with_row)


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ParameterError, match="row is 99"):
        demonstrate(TABLE, SCHEMA, PerturbedHistogram(), epsilon=1, row=99)
    with pytest.raises(ParameterError, match="runs is 3"):
        show(1.0, runs=3)
    with pytest.raises(ParameterError, match="same cell"):
        demonstrate(TABLE.head(30), SCHEMA, PerturbedHistogram(), epsilon=1, row=0)


def test_the_chart_says_the_same_in_table_and_words() -> None:
    shown = show(2.0, runs=40)
    chart = neighbours_chart(shown)
    assert np.isclose(chart.table["with the row"].sum(), 1.0)
    assert np.isclose(chart.table["without it"].sum(), 1.0)
    assert shown.sentence in chart.alt
    assert "allows a factor of 7.39" in chart.alt
    assert [trace.name for trace in chart.figure.data] == [
        "with the row",
        "without it",
        "where an attacker draws the line",
    ]


def test_a_statistic_that_never_changes_can_be_drawn() -> None:
    shown = show(2.0, runs=40)
    flat = NeighbourDemonstration(epsilon=1.0, with_row=np.ones(9), without=np.ones(9), bound=shown.bound)
    assert np.isclose(neighbours_chart(flat).table["with the row"].sum(), 1.0)


def test_the_unusual_person_is_the_one_who_stands_alone() -> None:
    private = PrivateTable(TABLE, SCHEMA)
    assert watched_row(private, "unusual") == 30
    assert watched_row(private, "typical") == 0


@pytest.mark.parametrize("wrong", [{"mechanism": "pmse"}, {"who": "nobody"}, {"seed": -1}])
def test_an_order_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        NeighbourConfig(**wrong)  # type: ignore[arg-type]
