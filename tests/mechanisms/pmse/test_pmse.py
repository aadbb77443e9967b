"""The pMSE mechanism: what it claims, what one row can do to it, and that it works."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.mechanisms.parameters import parameters
from dpsynth_core.mechanisms.pmse import mechanism as pmse
from dpsynth_core.mechanisms.pmse import metropolis as walks
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay
from dpsynth_core.progress import Point
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import cart_pmse
from dpsynth_core.trees.optimal import optimal_tree_pmse
from tests.tables.strategies import schema_and_table

BIVARIATE = dp.EXAMPLES["bivariate_normal"]


def bivariate(rows: int, seed: int = 0) -> dp.PrivateTable:
    rng = np.random.default_rng(seed)
    x1 = rng.normal(2, 10, rows)
    return dp.PrivateTable(pd.DataFrame({"x1": x1, "x2": rng.normal(-2.5 + 0.5 * x1, 3)}), BIVARIATE.schema)


CLAIMS: list[tuple[PMSE, str]] = [
    (PMSE(), "proven"),
    (PMSE(criterion="cells"), "proven"),
    (PMSE(criterion="optimal"), "proven"),
    (PMSE(sampler="metropolis"), "asymptotic"),
]


@pytest.mark.parametrize(("mechanism", "status"), CLAIMS)
def test_each_way_of_drawing_claims_what_it_can(mechanism: PMSE, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "MAX_RHAT", np.inf)
    monkeypatch.setattr(walks, "MIN_ESS", 0)
    monkeypatch.setattr(pmse, "CANDIDATES", {1: 4, 2: 8, 3: 8})
    release = dp.synthesize(bivariate(60), mechanism, epsilon=1)
    assert release.guarantee.status == status
    assert sum(charge.budget.epsilon for charge in release.charges) == 1
    assert len(release.sample()) == 60


def test_the_form_asks_for_little_and_the_papers_own_settings_are_folded_away() -> None:
    shown = {parameter.name for parameter in parameters(PMSE) if not parameter.advanced}
    assert shown == {"sampler", "numbers", "criterion", "parents", "rows"}
    assert not {parameter.name for parameter in parameters(PMSE)} & {"cart", "bound", "prior", "over_pairs", "cp"}
    assert {parameter.title for parameter in parameters(PMSE)} >= {"Predictors per column"}


def neighbours(table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([row, table.iloc[1:]], ignore_index=True)


@given(
    drawn=schema_and_table(max_rows=9),
    sampler=st.sampled_from(["lists", "metropolis"]),
    criterion=st.sampled_from(["distance", "cells", "optimal"]),
    seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_no_row_moves_a_score_further_than_declared(
    drawn: tuple[Schema, pd.DataFrame], sampler: Any, criterion: Any, seed: int
) -> None:
    """Replay on a neighbour: the same calls, and every score within its sensitivity."""
    schema, frame = drawn
    other = neighbours(frame, frame.iloc[[len(frame) - 1]])
    mechanism = PMSE(sampler=sampler, criterion=criterion, steps=200, chains=2, numbers="skewed")
    recorder = Recorder(SeededNoise(Budget.of(1), seed))
    try:
        mechanism.fit(dp.PrivateTable(frame, schema), recorder)
    except dp.DPSynthError:
        return  # walks that do not agree are refused
    replay = Replay(recorder)
    mechanism.fit(dp.PrivateTable(other, schema), replay)
    assert replay.finished
    assert replay.excess <= 1


@pytest.mark.parametrize("criterion", ["distance", "cells", "optimal"])
def test_an_outlier_moves_scores_no_further_than_any_other_row(criterion: Any) -> None:
    table = bivariate(300)
    other = table.rows()
    other.iloc[0] = [52.0, -31.0]
    recorder = Recorder(SeededNoise(Budget.of(1), 0))
    PMSE(criterion=criterion).fit(table, recorder)
    replay = Replay(recorder)
    PMSE(criterion=criterion).fit(dp.PrivateTable(other, table.schema), replay)
    assert replay.finished
    assert 0 < replay.excess <= 1


def test_walks_that_do_not_agree_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "MAX_RHAT", 0.5)
    with pytest.raises(dp.DPSynthError, match="do not agree"):
        dp.synthesize(bivariate(60), PMSE(sampler="metropolis", steps=200), epsilon=1)


def test_a_walk_is_told_live_and_marked_as_not_for_release() -> None:
    heard: list[Point] = []
    done: list[float] = []

    def hear(stage: str, share: float, /, *points: Point) -> None:
        done.append(share)
        heard.extend(points)

    dp.synthesize(bivariate(100), PMSE(sampler="metropolis", steps=400), epsilon=0.1, progress=hear)
    assert {point.series for point in heard} >= {"Steps accepted (%)", "Log density of the first walk"}
    assert not any(point.releasable for point in heard)
    assert done == sorted(done)
    assert max(done) <= 1


@pytest.mark.parametrize("sampler", ["lists", pytest.param("metropolis", marks=pytest.mark.slow)])
def test_with_many_rows_the_model_is_found(sampler: Any) -> None:
    table = bivariate(20_000)
    rows = dp.synthesize(table, PMSE(sampler=sampler, steps=1_000), epsilon=20, seed=1).sample(50_000)
    truth = table.rows()
    assert np.abs(rows.mean() - truth.mean()).max() < 1.0
    assert np.abs(rows.std() / truth.std() - 1).max() < 0.1
    assert abs(rows.corr().iloc[0, 1] - truth.corr().iloc[0, 1]) < 0.07
    assert optimal_tree_pmse(truth, rows.iloc[:20_000]) < 0.004


def test_several_data_sets_share_epsilon() -> None:
    release = dp.synthesize(bivariate(200), PMSE(datasets=3), epsilon=1, seed=1)
    assert sum(charge.budget.epsilon for charge in release.charges) == 1
    assert len(release.model.models) == 3  # type: ignore[attr-defined]
    assert len(release.sample(100)) == 100
    tables = release.model.samples(50, release.noise)  # type: ignore[attr-defined]
    assert [len(table) for table in tables] == [50, 50, 50]
    assert not tables[0].equals(tables[1])


def test_one_row_moves_the_pmse_of_the_best_tree_by_half_of_what_the_paper_pays_for() -> None:
    """1/(2n), where the paper has 1/n."""
    (charge,) = {
        charge.sensitivity
        for charge in dp.synthesize(bivariate(100), PMSE(criterion="optimal", ratio=1), epsilon=1).charges
    }
    assert charge == Budget.of("1/200").epsilon


def test_a_model_with_too_many_parameters_is_refused_with_the_numbers() -> None:
    labels = [f"k{i}" for i in range(300)]
    facts = {"columns": [{"name": "town", "kind": "categorical", "categories": labels, "public": True}]}
    table = dp.PrivateTable(pd.DataFrame({"town": labels}), Schema.from_dict(facts))
    with pytest.raises(dp.ParameterError, match=r"299 parameters.*'town'"):
        dp.synthesize(table, PMSE(), epsilon=1)


def moved(score: Callable[[Any, Any], float], original: Any, neighbour: Any, synthetic: Any) -> float:
    return abs(score(original, synthetic) - score(neighbour, synthetic))


def test_one_row_moves_a_greedy_tree_further_than_any_bound() -> None:
    """A counterexample found by simulation: more than the paper's 1/n, where the best tree keeps 1/(2n)."""
    rng = np.random.default_rng(26)
    n = 200
    x1 = rng.normal(2.0, 10.0, n)
    original = np.column_stack([x1, rng.normal(-2.5 + 0.5 * x1, 3.0)])
    neighbour = original.copy()
    neighbour[rng.integers(n)] += rng.normal(0.0, 25.0, 2)
    theta = rng.normal(0.0, 10.0, 5)
    s1 = rng.normal(theta[0], abs(theta[1]), n)
    tables = original, neighbour, np.column_stack([s1, rng.normal(theta[2] + theta[3] * s1, abs(theta[4]))])
    assert moved(partial(cart_pmse, cp=0.001), *tables) > 1.8 / n
    assert moved(optimal_tree_pmse, *tables) < 1 / (2 * n)


def test_even_a_single_greedy_split_breaks_the_tight_bound_by_its_least_leaf() -> None:
    """Seven original rows stand apart; when one of them joins the others, six are too few for a leaf."""
    n = 100
    original, synthetic = np.zeros((n, 1)), np.zeros((n, 1))
    original[:7] = 1.0
    neighbour = original.copy()
    neighbour[0] = 0.0
    synthetic[0] = -1.0
    stump = partial(cart_pmse, cp=0.001, maxdepth=1)
    assert moved(stump, original, neighbour, synthetic) > 0.8 / n
    assert moved(partial(optimal_tree_pmse, depth=1), original, neighbour, synthetic) < 1 / (2 * n)
