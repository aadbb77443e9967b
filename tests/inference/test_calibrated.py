"""The calibrated test: valid where the ordinary one is not, for any mechanism, from the release alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.errors import DPSynthError, SchemaError
from dpsynth_core.inference.calibrated import calibrated_mann_whitney, pvalue_over_nulls
from dpsynth_core.inference.experiments import Experiment, error_rates
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.mann_whitney import GroupsError
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.populations import populations
from dpsynth_core.inference.simulated_pvalues import least_favourable, simulated_pvalues
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram
from dpsynth_core.privacy.budget import Budget

PERTURBED = PerturbedHistogram(placement="centre")
SKEWED = np.exp2(-np.arange(100) / 10)


def at_most(level: float, reps: int) -> float:
    """Four standard errors above a level: once in some 30,000 runs if the level holds, and seeds are fixed."""
    return level + 4 * math.sqrt(level * (1 - level) / reps)


def release(mechanism: Mechanism, *, extra: bool = False, epsilon: float = 1.0, seed: int = 0) -> dp.Release:
    rng = np.random.default_rng(seed)
    n = 400
    facts = [
        {"name": "arm", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True, "public": True},
        {"name": "score", "kind": "integer", "lower": 0, "upper": 50, "bins": 17, "nullable": True, "public": True},
    ]
    table = pd.DataFrame({"arm": rng.choice(["a", "b", "c", None], n), "score": rng.integers(5, 30, n).astype(float)})
    table.loc[table["arm"] == "a", "score"] += 12
    table.loc[::9, "score"] = np.nan
    if extra:
        facts.append({"name": "age", "kind": "continuous", "lower": 0, "upper": 100, "bins": 8, "public": True})
        table["age"] = rng.uniform(20, 80, n)
    return dp.synthesize(
        dp.PrivateTable(table, dp.Schema.from_dict({"columns": facts})), mechanism, epsilon=epsilon, seed=seed
    )


@pytest.mark.parametrize(
    ("n", "epsilon"),
    [
        (100, 1.0),
        (500, 0.1),
        pytest.param(50, 1.0, marks=pytest.mark.slow),
        pytest.param(1000, 0.1, marks=pytest.mark.slow),
        pytest.param(20_000, 0.01, marks=pytest.mark.slow),
    ],
)
def test_false_discoveries_are_rare_where_the_ordinary_test_makes_many(n: int, epsilon: float) -> None:
    reps = 80
    calibrated = error_rates(PERTURBED, epsilon=epsilon, n=n, reps=reps, test="calibrated")
    assert calibrated.type_one.estimate <= at_most(0.05, reps)
    ordinary = error_rates(PERTURBED, epsilon=epsilon, n=n, reps=reps)
    if n >= 500:
        assert ordinary.type_one.estimate > 0.35


def test_it_finds_a_difference_of_one_deviation() -> None:
    assert error_rates(PERTURBED, epsilon=1, n=500, reps=40, test="calibrated").power.low > 0.9


@pytest.mark.parametrize(
    ("mechanism", "n", "epsilon"),
    [(PERTURBED, 1000, 1.0), (SmoothedHistogram(placement="centre", rows=500), 20_000, 5.0)],
    ids=["perturbed", "smoothed"],
)
def test_unequal_groups_are_not_taken_for_a_difference(mechanism: Mechanism, n: int, epsilon: float) -> None:
    """Noise dilutes the smaller group more; the ordinary test sees that even in smoothed histograms."""
    given = {"epsilon": epsilon, "n": n, "ratio": 0.1, "shape": SKEWED, "reps": 50}
    assert error_rates(mechanism, **given).type_one.estimate > 0.5
    assert error_rates(mechanism, **given, test="calibrated").type_one.estimate <= at_most(0.05, 50)


def test_a_single_release_by_counts() -> None:
    given = release(PERTURBED, epsilon=5)
    spent = given.charges
    found = calibrated_mann_whitney(given, value="score", group="arm", levels=("a", "b"), seed=3)
    assert found.path == "counts"
    assert found.simulations == 999
    assert found.pvalue == pytest.approx(1 / 1000)
    assert found.statistic > 0, "the first level has the larger values"
    assert found.error == pytest.approx(math.sqrt(0.001 * 0.999 / 1000))
    assert found.ordinary.n1 + found.ordinary.n2 < 400, "other levels and missing values are left out"
    assert given.charges == spent, "post-processing costs nothing"
    nothing = calibrated_mann_whitney(given, value="score", group="arm", levels=("b", "c"), seed=3)
    assert nothing.pvalue > 0.01


@pytest.mark.parametrize(
    "mechanism",
    [pytest.param(KDTree(), marks=pytest.mark.slow), PerturbedHistogram()],
    ids=["kd_tree", "perturbed"],
)
def test_a_single_release_by_running_the_mechanism(mechanism: Mechanism) -> None:
    given = release(mechanism, extra=True, epsilon=20)
    table = given.sample()
    told: list[float] = []
    found, again = (
        calibrated_mann_whitney(
            given,
            value="score",
            group="arm",
            levels=("a", "b"),
            table=table,
            simulations=19,
            seed=1,
            workers=1,
            progress=lambda _, done: told.append(done),
        )
        for _ in range(2)
    )
    assert found.path == "rows"
    assert found == again
    assert told[0] == 0
    assert found.pvalue <= 0.05
    unrelated = calibrated_mann_whitney(
        given, value="age", group="arm", levels=("a", "b"), simulations=19, seed=1, workers=1
    )
    assert unrelated.pvalue > 0.05


def test_a_cancel_is_heard() -> None:
    def cancel(stage: str, done: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrated_mann_whitney(
            release(KDTree(), extra=True), value="score", group="arm", levels=("a", "b"), progress=cancel, workers=1
        )


def test_pvalues_of_exchangeable_statistics_are_valid() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(3.0, 2.0, (20_000, 100))
    p = simulated_pvalues(z[:, 0], z[:, 1:])
    for level in (0.05, 0.2, 0.5):
        assert abs((p <= level).mean() - level) <= 4 * math.sqrt(level * (1 - level) / len(p))
    assert simulated_pvalues(np.zeros(1), np.zeros((1, 19))).tolist() == [1.0]


@pytest.mark.parametrize("possible", [0.9, 0.2])
def test_they_are_valid_among_releases_that_leave_something_to_test(possible: float) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(3.0, 2.0, (20_000, 100))
    z[rng.random(z.shape) > possible] = np.nan
    p = simulated_pvalues(z[:, 0], z[:, 1:])
    assert (np.isnan(p) == np.isnan(z[:, 0])).all()
    answers = p[~np.isnan(p)]
    for level in (0.05, 0.2, 0.5):
        assert (answers <= level).mean() <= level + 4 * math.sqrt(level * (1 - level) / len(answers))


def test_a_null_with_too_few_releases_to_test_withholds_a_low_pvalue_only() -> None:
    many, few = np.linspace(-1, 1, 99), np.linspace(-1, 1, 18)
    assert least_favourable(5.0, [many])[0] == pytest.approx(0.01)
    assert math.isnan(least_favourable(5.0, [many, few])[0])
    assert math.isnan(least_favourable(5.0, [np.zeros(0)])[0])
    assert least_favourable(0.5, [many, few])[0] > 0.05
    assert least_favourable(5.0, [many, np.linspace(-9, 9, 99)]) == (pytest.approx(0.45, abs=0.02), 1)


@pytest.mark.slow
def test_answers_keep_the_level_where_a_small_group_often_falls_below_a_threshold() -> None:
    """20 of 1,000 rows in one group, which is lost in 28% of releases; before, 8.8% of the answers were wrong."""
    shape, reps = np.full(100, 0.002), 600
    shape[[10, 60]] = 0.402
    (null, _) = populations(n1=20, n2=980, effect=1.0, shape=shape / shape.sum())
    experiment = Experiment(mechanism=KDGrid(), budget=Budget.of(1), bins=100, test="calibrated", simulations=99)
    (pvalues,) = experiment.pvalues([null], reps, np.random.SeedSequence(5))
    answers = pvalues[~np.isnan(pvalues)]
    assert reps / 2 < len(answers) < reps
    assert (answers <= 0.05).mean() <= at_most(0.05, len(answers))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": "score", "group": "arm"}, "two levels"),
        ({"value": "score", "group": "arm", "levels": ("a", "z")}, "levels is 'z'"),
        ({"value": "score", "group": "arm", "levels": ("a", "a")}, "two different"),
        ({"value": "arm", "group": "score"}, "order"),
        ({"value": "score", "group": "score"}, "another column"),
        ({"value": "nonsense", "group": "arm"}, "column"),
        ({"value": "score", "group": "arm", "levels": ("a", "b"), "simulations": 5}, "at least 19"),
    ],
)
def test_what_cannot_be_compared_is_explained(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DPSynthError, match=message):
        calibrated_mann_whitney(release(PERTURBED), **arguments)  # type: ignore[arg-type]


def test_degenerate_tables_are_explained() -> None:
    given = release(PERTURBED)
    table = given.sample()
    with pytest.raises(GroupsError, match="No row of this table has 'arm' equal to 'b'"):
        calibrated_mann_whitney(given, value="score", group="arm", levels=("a", "b"), table=table[table["arm"] == "a"])
    with pytest.raises(GroupsError, match="All values of 'score' are equal"):
        calibrated_mann_whitney(given, value="score", group="arm", levels=("a", "b"), table=table.assign(score=7))
    numeric = dp.Schema.from_dict(
        {"columns": [{"name": n, "kind": "continuous", "lower": 0, "upper": 1, "public": True} for n in "xy"]}
    )
    private = dp.PrivateTable(pd.DataFrame({"x": [0.1, 0.2], "y": [0.3, 0.4]}), numeric)
    with pytest.raises(SchemaError, match="labels"):
        calibrated_mann_whitney(dp.synthesize(private, PERTURBED, epsilon=1), value="x", group="y")


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "skewed", "two peaks", "spike"])
@pytest.mark.parametrize("ratio", [0.5, 0.15])
@pytest.mark.parametrize(("n", "epsilon"), [(100, 1.0), (1000, 0.1), (1000, 1.0)])
def test_other_shapes_and_sizes(shape: str, ratio: float, n: int, epsilon: float) -> None:
    """The null is estimated, so the level holds only approximately; it stays near it whatever the values look like."""
    place = np.arange(100)
    shares = {
        "uniform": np.ones(100),
        "skewed": SKEWED,
        "two peaks": np.exp(-(((place - 20) / 4) ** 2)) + np.exp(-(((place - 80) / 4) ** 2)),
        "spike": np.where(place == 0, 0.8, 0.2 / 99),
    }[shape]
    reps = 600
    found = error_rates(PERTURBED, epsilon=epsilon, n=n, ratio=ratio, shape=shares, reps=reps, test="calibrated")
    assert found.type_one.estimate <= at_most(0.06, reps)


def test_an_experiment_stops_where_a_pvalue_cannot_be_low_any_more_and_agrees_with_the_whole_test() -> None:
    low = {}
    for seed, levels in enumerate([("a", "b"), ("b", "c")]):  # a difference, and none
        made = release(KDTree(), epsilon=5.0, seed=seed)
        test = GroupTest.of(made.schema, value="score", group="arm", levels=levels)
        simulator = simulator_of(made, test, made.sample(), workers=1)
        whole, all_of_them = pvalue_over_nulls(simulator, 39, np.random.default_rng(seed))
        quick, some = pvalue_over_nulls(simulator, 39, np.random.default_rng(seed), stop_above=0.05)
        assert (whole <= 0.05) == (quick <= 0.05)
        assert quick == whole or quick > 0.05, "where it is low, it is the same p-value from the same simulations"
        assert len(all_of_them) == 39
        low[levels] = quick <= 0.05, len(some)
    assert low["a", "b"] == (True, 39), "what is low is simulated to the end"
    assert low["b", "c"][0] is False
    assert low["b", "c"][1] < 39
