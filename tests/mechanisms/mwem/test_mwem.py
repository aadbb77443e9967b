"""MWEM: what is spent, what is asked, and whether more of either helps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.mechanisms.mwem.mechanism import MAX_CELLS, MWEM
from dpsynth_core.mechanisms.mwem.weights import MeasuredQuery, reweigh, select_query, suggested_rounds
from dpsynth_core.mechanisms.mwem.workload import MarginalWorkload
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay
from tests.tables.schemas import SMALL_SCHEMA

KINDS = ("marginals", "ranges", "intervals")


def frame(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, rows)
    return pd.DataFrame(
        {
            "x": pd.array(np.where(rng.random(rows) < 0.1, None, x), dtype="Int64"),
            "sex": np.where(x + rng.normal(0, 1, rows) > 2, "f", "m"),
            "y": np.clip(x / 5 + rng.normal(0, 0.1, rows), 0, 1),
        }
    )


@pytest.mark.parametrize("workload", KINDS)
def test_neighbours_enter_every_draw_within_the_declared_sensitivity(workload: Any) -> None:
    mechanism = MWEM(workload=workload, rounds=2, passes=3)
    rows = frame()
    recorder = Recorder(SeededNoise(Budget.of(1), seed=0))
    mechanism.fit(dp.PrivateTable(rows, SMALL_SCHEMA), recorder)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        other = rows.copy()
        other.loc[int(rng.integers(len(rows))), :] = frame(1, seed + 100).iloc[0]
        replay = Replay(recorder)
        mechanism.fit(dp.PrivateTable(other, SMALL_SCHEMA), replay)
        assert replay.finished
        assert replay.excess <= 1


@pytest.mark.parametrize("workload", KINDS)
def test_half_of_every_round_selects_and_half_measures(workload: Any) -> None:
    charges = dp.synthesize(
        dp.PrivateTable(frame(), SMALL_SCHEMA), MWEM(workload=workload, rounds=2), epsilon="1/3", seed=1
    ).charges
    assert [charge.primitive for charge in charges] == ["exponential", "laplace"] * 2
    assert {charge.budget.epsilon for charge in charges} == {Fraction(1, 12)}
    assert {charge.sensitivity for charge in charges} == {2 if workload == "marginals" else 1}


def test_where_every_query_is_measured_none_is_selected() -> None:
    release = dp.synthesize(dp.PrivateTable(frame(), SMALL_SCHEMA), MWEM(rounds=50), epsilon=1, seed=1)
    assert [charge.primitive for charge in release.charges] == ["laplace"] * 3
    assert sum(charge.budget.epsilon for charge in release.charges) == 1


def test_a_query_is_never_selected_twice() -> None:
    workload = MarginalWorkload(shape=(6, 2, 4), sets=((0,), (1,), (2,), (0, 1)))
    histogram = np.random.default_rng(0).integers(0, 9, workload.shape)
    for seed in range(30):
        noise = SeededNoise(Budget.of(100), seed)
        taken: list[int] = []
        for _ in range(len(workload)):
            weights = np.full(workload.shape, histogram.sum() / histogram.size)
            taken.append(
                select_query(
                    workload,
                    histogram,
                    weights,
                    noise,
                    epsilon=Fraction(1),
                    measuring=Fraction(1),
                    taken=taken,
                )
            )
        assert sorted(taken) == [0, 1, 2, 3]


def test_selection_prefers_what_the_weights_answer_badly() -> None:
    workload = MarginalWorkload(shape=(3, 2), sets=((0,), (1,)))
    histogram = np.array([[500, 500], [0, 0], [0, 0]])
    weights = np.full((3, 2), 1000 / 6)
    chosen = [
        select_query(
            workload,
            histogram,
            weights,
            SeededNoise(Budget.of(1), seed),
            epsilon=Fraction(1),
            measuring=Fraction(1),
        )
        for seed in range(50)
    ]
    assert set(chosen) == {0}


@pytest.mark.parametrize("step", ["relative", "paper"])
def test_exact_measurements_are_met(step: Any) -> None:
    workload = MarginalWorkload(shape=(3, 2), sets=((0,), (1,)))
    target = np.array([[30, 10], [40, 0], [15, 5]], dtype=np.int64)
    measured = [MeasuredQuery(query=q, values=workload.answer(target, q).astype(float)) for q in (0, 1)]
    fitted = reweigh(workload, np.full((3, 2), 100 / 6), measured, rows=100, passes=3000, correction=step)
    for query in (0, 1):
        np.testing.assert_allclose(workload.answer(fitted, query), workload.answer(target, query), atol=0.05)
    # The fit with the fewest assumptions: with both margins given, independence.
    np.testing.assert_allclose(fitted, np.outer(target.sum(1), target.sum(0)) / 100, atol=0.05)


@pytest.mark.parametrize("step", ["paper", "relative"])
def test_weights_add_up_and_stay_positive_however_often_they_are_corrected(step: Any) -> None:
    """Noise that left nothing of any count can never be met, so that every pass corrects again."""
    workload = MarginalWorkload(shape=(4, 3), sets=((0,), (1,)))
    low = [MeasuredQuery(query=0, values=np.zeros(4)), MeasuredQuery(query=1, values=np.array([2.0, 0, 0]))]
    fitted = reweigh(workload, np.full((4, 3), 100 / 12 + 1e-12), low, rows=100, passes=2_000, correction=step)
    assert (fitted >= 0).all()
    assert fitted.sum() == pytest.approx(100)


def two_way_error(rows: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    original, made = dp.PrivateTable(rows, SMALL_SCHEMA), dp.PrivateTable(synthetic, SMALL_SCHEMA)
    pairs = [("x", "sex"), ("x", "y"), ("sex", "y")]
    gaps = [original.counts(p).dense() / original.n - made.counts(p).dense() / made.n for p in pairs]
    return float(np.mean([np.abs(gap).sum() / 2 for gap in gaps]))


@pytest.mark.parametrize("workload", KINDS)
def test_more_epsilon_gives_a_better_table(workload: Any) -> None:
    rows = frame(2_000)
    table = dp.PrivateTable(rows, SMALL_SCHEMA)
    mechanism = MWEM(workload=workload, rounds=3 if workload == "marginals" else 12, passes=8, estimate="last")
    errors = [
        np.mean(
            [two_way_error(rows, dp.synthesize(table, mechanism, epsilon=e, seed=s).sample(20_000)) for s in (1, 2)]
        )
        for e in (0.02, 1, 50)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_the_average_lies_between_the_uniform_start_and_the_last_round() -> None:
    rows = frame(2_000)
    table = dp.PrivateTable(rows, SMALL_SCHEMA)
    errors = {
        kind: two_way_error(
            rows,
            dp.synthesize(table, MWEM(rounds=3, passes=1, step="paper", estimate=kind), epsilon=50, seed=1).sample(),
        )
        for kind in ("average", "last")
    }
    uniform = two_way_error(rows, dp.synthesize(table, MWEM(rounds=1, passes=0), epsilon=1e-4, seed=1).sample())
    assert errors["last"] < errors["average"] < uniform


def test_too_many_cells_are_refused_with_their_number_before_anything_is_allocated() -> None:
    facts = [
        {"name": f"c{i}", "kind": "categorical", "categories": list("abcdefgh"), "public": True} for i in range(20)
    ]
    schema = dp.Schema.from_dict({"columns": facts})
    table = dp.PrivateTable(pd.DataFrame({f"c{i}": ["a", "b"] for i in range(20)}), schema)
    noise = SeededNoise(Budget.of(1), 0)
    with pytest.raises(dp.ParameterError) as caught:
        MWEM().fit(table, noise)
    assert str(8**20) in str(caught.value)
    assert f"{MAX_CELLS:,}" in str(caught.value)
    assert "Private-PGM" in str(caught.value)
    assert noise.charges == ()


def test_the_user_chooses_the_questions() -> None:
    table = dp.PrivateTable(frame(), SMALL_SCHEMA)
    charges = dp.synthesize(table, MWEM(columns="sex, x; y"), epsilon=1, seed=1).charges
    assert len([charge for charge in charges if charge.primitive == "laplace"]) == 2
    with pytest.raises(dp.ParameterError, match="columns is 'z'"):
        dp.synthesize(table, MWEM(columns="z"), epsilon=1, seed=1)
    with pytest.raises(dp.ParameterError, match="columns"):
        MWEM(columns=" ")


def test_the_papers_variant_runs_ten_rounds_of_intervals() -> None:
    paper = MWEM(workload="intervals", bins=5, rounds=10, passes=10, step="paper", estimate="last", placement="centre")
    release = dp.synthesize(dp.PrivateTable(frame(), SMALL_SCHEMA), paper, epsilon=1, seed=1)
    assert [charge.primitive for charge in release.charges] == ["exponential", "laplace"] * 10
    assert release.sample()["y"].round(6).isin([0.1, 0.3, 0.5, 0.7, 0.9]).all()


def test_suggested_rounds_minimise_the_bound() -> None:
    n, epsilon, cells, queries = 20_000, 0.5, 1_000, 300
    bound = [2 * n * np.sqrt(np.log(cells) / t) + 10 * t * np.log(queries) / epsilon for t in range(1, 301)]
    assert abs(suggested_rounds(n, epsilon, cells, queries) - min(1 + int(np.argmin(bound)), 40)) <= 1
