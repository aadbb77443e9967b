"""The pMSE mechanism as published: what it draws from, what it refuses, and that it says what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.mechanisms.pmse import metropolis, published
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.mechanisms.pmse.published import PublishedWalks, normal_rows, standard_normal
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.encoding import moved_cells

SCHEMA = dp.EXAMPLES["bivariate_normal"].schema
PRESET = PMSE(**PMSE.presets["Snoke & Slavković (2018)"])
SHORT = replace(PRESET, steps=200, chains=2, depth=2, datasets=1)


def bivariate(rows: int, schema: dp.Schema = SCHEMA) -> dp.PrivateTable:
    rng = np.random.default_rng(0)
    x1 = rng.normal(2, 10, rows)
    return dp.PrivateTable(pd.DataFrame({"x1": x1, "x2": rng.normal(-2.5 + 0.5 * x1, 3)}), schema)


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short walks count as draws."""
    monkeypatch.setattr(metropolis, "MAX_RHAT", np.inf)
    monkeypatch.setattr(metropolis, "MIN_ESS", 0)


@pytest.mark.usefixtures("lenient")
def test_it_claims_no_more_than_a_heuristic_and_pays_by_the_papers_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "FLAT_TAIL", 1.0)
    release = dp.synthesize(bivariate(100), replace(SHORT, datasets=3), epsilon=5)
    assert release.guarantee.status == "heuristic"
    assert "greedy trees" in " ".join(release.guarantee.caveats)
    (charge,) = release.charges
    assert (charge.sensitivity, charge.budget) == (Budget.of("1/100").epsilon, Budget.of(5))
    assert len(release.sample()) == 100
    assert all(moved.total == 0 for moved in moved_cells(release.sample(), SCHEMA).values())


@pytest.mark.usefixtures("lenient")
def test_a_walk_that_has_left_for_the_flat_tail_is_refused() -> None:
    """At epsilon 0.001 the density is the prior's, hundreds of units wide: rows from there overlap with none."""
    with pytest.raises(dp.DPSynthError, match="flat tail of the published prior") as caught:
        dp.synthesize(bivariate(300), replace(SHORT, steps=1_000, depth=30), epsilon=0.001, seed=1)
    assert not any(letter.isdigit() for letter in str(caught.value))  # a score would tell of the rows


def test_walks_that_do_not_agree_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metropolis, "MIN_ESS", np.inf)
    with pytest.raises(dp.DPSynthError, match="do not agree"):
        dp.synthesize(bivariate(300), SHORT, epsilon=50, seed=1)


def test_walks_that_begin_within_the_bounds_find_the_regression() -> None:
    """At a rate where the density is a narrow peak, every walk must end near it, the slope included."""
    walks = PublishedWalks(depth=5, chains=3, steps=600, attempts=1)
    ends = walks.ends(bivariate(400), SeededNoise(Budget.of(2), 3), lambda *_: None)
    assert ends.scores.max() < 0.05
    assert np.abs(ends.chains.states[:, 3] - 0.5).max() < 0.4
    assert np.abs(ends.chains.states[:, 1] - 10).max() < 6


def test_several_tables_share_epsilon_and_each_score_averages_several_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equations 2 and 3: l draws at the rate of epsilon / l, of a mean of m values."""
    seen: list[tuple[int, float]] = []

    def tree(original: object, rows: np.ndarray, **_: object) -> float:
        return float(np.clip(rows[:, 0].mean(), 0, 1))

    def walk(log_density: object, starts: np.ndarray, *_: object, **__: object) -> metropolis.Chains:
        lines = np.tile([0.5, 0.1, 0.0, 0.0, 1.0], (2, 1))
        lines[1, 0] = 0.25
        first, second = log_density(lines, 1.0)  # type: ignore[operator]
        prior = -0.5 * (0.5**2 - 0.25**2) / published.PRIOR_VARIANCE
        seen.append((len(starts), (second - first + prior) / 0.25))
        return metropolis.Chains(state=starts[0], states=starts, rhat=1.0, ess=99.0, acceptance=0.3)

    monkeypatch.setattr(published, "cart_pmse", tree)
    monkeypatch.setattr(published, "walk", walk)
    for tables, draws in ((1, 1), (5, 1), (5, 7)):
        walks = PublishedWalks(tables=tables, draws=draws, chains=3)
        walks.ends(bivariate(200), SeededNoise(Budget.of(4), 1), lambda *_: None)
    # exp(-eps u / (2 Delta u)) with Delta u = 1/n: 4 * 200 / 2, over the number of tables.
    assert [walks for walks, _ in seen] == [3, 5, 5]
    assert [rate for _, rate in seen] == pytest.approx([400, 80, 80], rel=1e-6)


def test_rows_follow_the_regressions() -> None:
    """x1 = N(theta1, theta2), x2 = N(theta3 + theta4 x1, theta5)."""
    z = standard_normal(SeededNoise(Budget.of(1), 1), (2, 40_000))
    x1, x2 = normal_rows(np.array([2.0, 10.0, -2.5, 0.5, 3.0]), z)
    slope, intercept = np.polyfit(x1, x2, 1)
    residual = x2 - intercept - slope * x1
    # Five standard errors each.
    assert x1.mean() == pytest.approx(2.0, abs=5 * 10 / 200)
    assert x1.std() == pytest.approx(10.0, abs=5 * 10 / np.sqrt(80_000))
    assert slope == pytest.approx(0.5, abs=5 * 3 / 10 / 200)
    assert intercept == pytest.approx(-2.5, abs=5 * 3 * np.sqrt(1.04) / 200)
    assert residual.std() == pytest.approx(3.0, abs=5 * 3 / np.sqrt(80_000))


@pytest.mark.usefixtures("lenient")
def test_whole_numbers_and_decimals_are_walked_in_their_own_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "FLAT_TAIL", 1.0)
    facts = [
        {"name": "x1", "kind": "integer", "lower": 1_000, "upper": 1_100, "public": True},
        {"name": "x2", "kind": "continuous", "lower": -3, "upper": 2, "decimals": 2, "public": True},
    ]
    schema = dp.Schema.from_dict({"columns": facts})
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x1": rng.integers(1_040, 1_061, 400), "x2": rng.normal(-1, 0.3, 400).round(2)})
    release = dp.synthesize(dp.PrivateTable(frame, schema), replace(SHORT, steps=600), epsilon=20, seed=2)
    made = release.sample(2_000)
    assert all(moved.total == 0 for moved in moved_cells(made, schema).values())
    assert 1_020 < made["x1"].mean() < 1_080
    assert -2 < made["x2"].mean() < 0


@pytest.mark.parametrize(
    "column",
    [
        {"name": "town", "kind": "categorical", "categories": ["a", "b"], "public": True},
        {"name": "town", "kind": "continuous", "lower": 0, "upper": 1, "nullable": True, "public": True},
    ],
)
def test_labels_and_missing_values_are_refused_before_anything_is_spent(column: dict[str, object]) -> None:
    schema = dp.Schema.from_dict({"columns": [column]})
    with pytest.raises(dp.ParameterError, match="numbers without missing values"):
        PRESET.plan(schema, 100, Budget.of(1))


@pytest.mark.parametrize(("parameter", "value"), [("depth", 0), ("depth", 31), ("draws", 0), ("draws", 1.5)])
def test_wrong_depths_and_numbers_of_draws_are_refused(parameter: str, value: object) -> None:
    with pytest.raises(dp.ParameterError, match=parameter):
        PMSE(**{parameter: value})  # type: ignore[arg-type]


def test_no_walk_stays_behind_where_the_rate_is_high() -> None:
    """Begun at the real rate, some walks never leave the ledge of the greedy tree's score that they begin on."""
    walks = PublishedWalks(chains=6, steps=400, attempts=1)
    ends = walks.ends(bivariate(1_000), SeededNoise(Budget.of(2), 1), lambda *_: None)
    assert ends.scores.max() < 0.03


def test_while_walks_are_heated_they_stay_within_the_bounds_in_any_units() -> None:
    """Means, deviations and slopes in units of the declared widths: an intercept may lie far outside of them."""
    bounds = np.array([[1_000.0, 1_010.0], [-5.0, 5.0]])
    warm_up = published.WarmUp(starts=np.zeros((1, 5)), spread=np.ones(5), bounds=bounds, heated=True)
    fitting, far, wide, steep = (
        [1_005, 2, -1_005, 1, 1],
        [1_005, 2, 0, 1, 1],
        [1_005, 11, 0, 0, 1],
        [1_005, 2, -5_025, 5, 1],
    )
    assert warm_up.inside(np.array([fitting, far, wide, steep], dtype=float)).tolist() == [True, False, False, False]
