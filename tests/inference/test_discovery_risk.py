"""The false-discovery risk of one release: from published things only, with a range, for any mechanism and table."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.inference import efforts
from dpsynth_core.inference.calibrated import CalibratedMannWhitney
from dpsynth_core.inference.candidate_nulls import candidates
from dpsynth_core.inference.count_simulator import CountSimulator, count_cells_of
from dpsynth_core.inference.discovery_risk import DiscoveryRisk, private_discovery_risk
from dpsynth_core.inference.efforts import COUNT_EFFORTS, FEWEST_SEEN, ROW_EFFORTS, row_efforts
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.mann_whitney import mann_whitney
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import Findings, NullReleases, NullSimulator
from dpsynth_core.inference.null_simulators import NotSimulatedError, row_simulator, simulator_of
from dpsynth_core.inference.plausible_nulls import PlausibleNulls, is_plausible, risk_range, settled, summaries
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.row_simulator import RowSimulator
from dpsynth_core.inference.stated_risk import (
    CALIBRATED_FOLLOWS,
    QUICK_SECONDS,
    SOUND,
    TOO_FEW_TO_CALIBRATE,
    TOO_SLOW_TO_CALIBRATE,
    RiskVerdict,
    expected_seconds,
    of_100,
    range_of,
    verdict_of,
)
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress

BINS = 20
GROUP = {"name": "group", "kind": "categorical", "categories": ["a", "b"], "public": True}
VALUE = {"name": "value", "kind": "continuous", "lower": 0, "upper": 1, "bins": BINS, "public": True}
SKEWED = 0.5 ** (np.arange(BINS) / 2)
SKEWED /= SKEWED.sum()


def schema_of(*columns: dict) -> dp.Schema:
    return dp.Schema.from_dict({"columns": list(columns)})


def null_table(n: int, share: float, seed: int, shape: np.ndarray = SKEWED) -> pd.DataFrame:
    """No difference between the groups: the values have nothing to do with them."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(len(shape), n, p=shape)
    value = (cell + rng.random(n)) / len(shape)
    return pd.DataFrame({"group": np.where(np.arange(n) < share * n, "a", "b"), "value": value})


def release_of(mechanism: dp.mechanisms.base.Mechanism, n: int, share: float, epsilon: float, seed: int) -> dp.Release:
    private = dp.PrivateTable(null_table(n, share, seed), schema_of(GROUP, VALUE))
    return dp.synthesize(private, mechanism, epsilon=epsilon, seed=seed)


def true_rate(mechanism: dp.mechanisms.base.Mechanism, n: int, share: float, epsilon: float, reps: int) -> float:
    """With the law that the tables really come from."""
    test = GroupTest.of(schema_of(GROUP, VALUE), value="value", group="group")
    simulator = CountSimulator(
        test=test,
        mechanism=mechanism,
        schema=schema_of(GROUP, VALUE),
        epsilon=Fraction(str(epsilon)),
        n=n,
        observed=np.ones((2, BINS)),
    )
    first = round(share * n)
    law = Nuisance(sizes=np.array([[first, n - first]]), chances=SKEWED[None])
    return float(simulator.rates(law, reps, np.random.default_rng(5), 0.05)[0])


CASES = [
    ("perturbed_histogram", {}, 1000, 0.1, 1.0),
    ("perturbed_histogram", {}, 300, 0.5, 0.2),
    ("smoothed_histogram", {"rows": 100}, 5000, 0.1, 1.0),
    ("smoothed_histogram", {"rows": 100}, 5000, 0.5, 0.1),
    ("kd_grid", {}, 1000, 0.2, 0.5),
]


@pytest.mark.parametrize(("key", "parameters", "n", "share", "epsilon"), CASES)
def test_the_range_holds_the_true_rate(key: str, parameters: dict, n: int, share: float, epsilon: float) -> None:
    mechanism = dp.MECHANISMS[key](**parameters)
    truth = true_rate(mechanism, n, share, epsilon, 4000)
    release = release_of(mechanism, n, share, epsilon, seed=11)
    risk = dp.discovery_risk(release, value="value", group="group", advice=False)
    assert risk.low - 0.01 <= truth <= risk.high + 0.01
    assert risk.verdict != "sound" or truth <= 0.1
    assert risk.releasable


def test_one_kept_cell_may_stand_for_several() -> None:
    """All values in 4 of 100 cells, each near the threshold: a release that kept one of them says nothing of the rest,
    and the true rate, two in three, must not be excluded because only wider or narrower shapes were tried."""
    bins, n = 100, 100
    schema = schema_of(GROUP, {**VALUE, "bins": bins})
    observed = np.zeros((2, bins))
    observed[1, 2] = n
    simulator = CountSimulator(
        test=GroupTest.of(schema, value="value", group="group"),
        mechanism=dp.MECHANISMS["kd_grid"](),
        schema=schema,
        epsilon=Fraction(1),
        n=n,
        observed=observed,
    )
    law = Nuisance(sizes=np.array([[50, 50]]), chances=np.repeat([0.25, 0.0], [4, bins - 4])[None])
    truth = float(simulator.rates(law, 2000, np.random.default_rng(5), 0.05)[0])
    found = risk_range(simulator, COUNT_EFFORTS[-1], alpha=0.05, rng=np.random.default_rng(6))
    low, high = range_of(found.rates())
    assert truth > 0.6
    assert low <= truth <= high


def test_cells_below_a_threshold_may_hold_rows_that_are_not_seen() -> None:
    schema = schema_of(GROUP, {**VALUE, "bins": 50})
    observed = np.zeros((2, 50))
    observed[:, 10:13] = 1000
    test = GroupTest.of(schema, value="value", group="group")
    given = {"test": test, "schema": schema, "epsilon": Fraction(1, 10), "n": 6000, "observed": observed}
    estimate = Nuisance(sizes=np.array([[3000, 3000]]), chances=observed.sum(axis=0)[None] / observed.sum())
    hidden: dict[str, set[int]] = {}
    for key in ("kd_grid", "perturbed_histogram"):
        simulator = CountSimulator(mechanism=dp.MECHANISMS[key](), **given)
        rng, effort = np.random.default_rng(1), COUNT_EFFORTS[0]
        tried = candidates(simulator, estimate, effort, rng)
        below = simulator.threshold / 2 / 3000
        hidden[key] = {int(np.isclose(one.chances[0] / one.chances[0].max(), 3 * below).sum()) for one in tried}
    assert {6, 47} <= hidden["kd_grid"]  # near the three that were kept, and everywhere
    assert not {6, 47} & hidden["perturbed_histogram"]


def test_the_rate_is_that_of_releases_that_leave_something_to_test() -> None:
    """A threshold empties the smaller group in six of seven releases; of the rest, a quarter report a difference."""
    shape = np.exp(-(((np.arange(100) + 0.5) / 100 - 0.5) ** 2) / (2 * 0.02**2))
    columns = schema_of(GROUP, {**VALUE, "bins": 100})
    private = dp.PrivateTable(null_table(100, 0.2, 14, shape / shape.sum()), columns)
    for seed in range(40):
        release = dp.synthesize(private, dp.MECHANISMS["kd_grid"](), epsilon=1, seed=seed)
        table = release.sample()
        if table["group"].nunique() == 2:
            break
    simulator = simulator_of(release, GroupTest.of(columns, value="value", group="group"), table)
    law = Nuisance(sizes=np.array([[20, 80]]), chances=(shape / shape.sum())[None])
    found = simulator.run(law, 4000, np.random.default_rng(5)).found
    assert 0.05 < found.tested.mean() < 0.3
    true = float(simulator.rates(law, 4000, np.random.default_rng(5), 0.05)[0])
    assert true > 0.15 > (found.pvalues <= 0.05).mean()
    risk = dp.discovery_risk(release, value="value", group="group", table=table, stage=0, advice=False)
    assert risk.low <= true <= risk.high
    assert risk.verdict != "sound"


def test_what_the_old_panel_called_sound_is_called_inflated() -> None:
    """10% in one group, skewed values: the smoothed histogram's true rate is near 100%."""
    bins, n = 100, 20_000
    rng = np.random.default_rng(1)
    shape = 0.5 ** (np.arange(bins) // 10)
    value = rng.choice(bins, n, p=shape / shape.sum()) + rng.random(n)
    table = pd.DataFrame({"group": np.where(np.arange(n) < n / 10, "a", "b"), "value": value / bins})
    private = dp.PrivateTable(table, schema_of(GROUP, {**VALUE, "bins": bins}))
    release = dp.synthesize(private, dp.MECHANISMS["smoothed_histogram"](rows=500), epsilon=5, seed=3)
    risk = dp.discovery_risk(release, value="value", group="group", stage=0, advice=False)
    assert risk.verdict == "inflated"
    assert risk.low > 0.5
    assert risk.high > 0.99
    assert risk.ordinary is not None
    assert risk.calibrated is not None
    assert risk.calibrated.pvalue > risk.ordinary.pvalue


def test_the_figure_follows_from_published_things_alone() -> None:
    """Two originals, one release: the same figure, because nothing else is looked at."""
    release = release_of(dp.MECHANISMS["perturbed_histogram"](), 400, 0.3, 1.0, seed=2)
    table = release.sample()
    asked = [
        dp.discovery_risk(release, value="value", group="group", table=table, stage=0, advice=False) for _ in range(2)
    ]
    assert asked[0] == asked[1]


def test_refining_narrows_the_figure() -> None:
    release = release_of(dp.MECHANISMS["perturbed_histogram"](), 2000, 0.5, 4.0, seed=4)
    table = release.sample()
    rough, fine = (
        dp.discovery_risk(release, value="value", group="group", table=table, stage=stage, advice=False)
        for stage in (0, 1)
    )
    assert (rough.stage, rough.last, fine.stage, fine.last) == (0, False, 1, True)
    assert rough.simulations < fine.simulations


def test_cancelling_ends_the_simulation() -> None:
    class CancelledError(Exception):
        pass

    told = []

    def cancel(stage: str, done: float, /, *points: object) -> None:
        told.append(done)
        if done > 0.3:
            raise CancelledError

    release = release_of(dp.MECHANISMS["perturbed_histogram"](), 200, 0.5, 1.0, seed=4)
    with pytest.raises(CancelledError):
        dp.discovery_risk(release, value="value", group="group", progress=cancel)
    assert all(earlier <= later for earlier, later in pairwise(told))


# Words


def verdict(low: int, high: int, reps: int = 2000) -> str:
    return verdict_of((Proportion(count=low, reps=reps), Proportion(count=high, reps=reps)))


def test_the_verdict_comes_from_the_bad_end() -> None:
    assert verdict(90, 110) == "sound"
    assert verdict(100, 900) == "inflated"
    assert verdict(3, 5, reps=50) == "unknown"  # too few simulations to tell
    # A null of which nothing could be tested leaves everything open, but does not hide one that is bad for certain.
    nothing, bad, good = (Proportion(count=count, reps=reps) for count, reps in ((0, 0), (900, 2000), (100, 2000)))
    assert verdict_of([good, nothing]) == "unknown"
    assert verdict_of([bad, nothing]) == "inflated"


@pytest.mark.parametrize(
    ("low", "high", "judged"),
    [(0.03, 0.07, "sound"), (0.04, 0.5, "inflated"), (0.6, 0.9, "inflated"), (0.0, 0.3, "unknown")],
)
def test_sentences_do_not_contradict_the_verdict(low: float, high: float, judged: RiskVerdict) -> None:
    risk = DiscoveryRisk(
        value="v",
        group="g",
        levels=("a", "b"),
        low=low,
        high=high,
        verdict=judged,
        ordinary=mann_whitney([1.0, 2, 3], [2.0, 3, 4]),
        calibrated=None,
        problem=CALIBRATED_FOLLOWS,
        simulations=100,
        last=False,
    )
    figure, meaning = risk.sentences
    assert figure.startswith("Of 100 analysts who test a difference that does not exist, between ")
    assert figure.endswith("would report one; 5 is what a sound test allows.")
    assert ("means about what it says" in meaning) == (judged == "sound")
    assert ("calibrated test" in meaning) == (judged == "inflated")
    # A wide range is laid to the release only once it is not for want of simulations.
    wide = judged == "inflated" and low < SOUND
    assert ("says too little" in meaning) == wide
    rough = replace(risk, simulations=8).sentences[1]
    assert "says too little" not in rough
    assert ("Only 8 releases were simulated" in rough) == wide
    # Nobody is sent to a test that will never be there.
    for problem in (TOO_SLOW_TO_CALIBRATE, TOO_FEW_TO_CALIBRATE):
        without = replace(risk, problem=problem)
        assert "calibrated test" not in without.sentences[1]
        assert problem in without.tests_sentence


@pytest.mark.parametrize(("ordinary", "calibrated"), [(0.03, 0.08), (0.08, 0.03)])
def test_a_sound_test_that_the_calibrated_one_contradicts_is_called_borderline(
    ordinary: float, calibrated: float
) -> None:
    """ "Means about what it says" beside "the mechanism alone makes such a difference" would contradict itself."""
    plain = replace(mann_whitney([1.0, 2, 3], [2.0, 3, 4]), pvalue=ordinary)
    checked = CalibratedMannWhitney(
        pvalue=calibrated,
        error=0.01,
        simulations=99,
        statistic=2.0,
        null_mean=0.0,
        null_std=1.0,
        ordinary=plain,
        path="counts",
    )
    sound = DiscoveryRisk(
        value="v",
        group="g",
        levels=("a", "b"),
        low=0.03,
        high=0.07,
        verdict="sound",
        ordinary=plain,
        calibrated=checked,
        simulations=100,
    )
    assert "borderline" in sound.tests_sentence
    assert "mechanism" not in sound.tests_sentence
    inflated = replace(sound, high=0.5, verdict="inflated")
    assert "mechanism" in inflated.tests_sentence


def test_people_of_a_hundred_are_rounded_outwards() -> None:
    assert of_100(0.384, 0.4601) == "between 38 and 47"
    assert of_100(0.05, 0.05) == "about 5"


# Any table


def test_more_than_two_groups_are_compared_in_pairs_with_a_correction() -> None:
    rng = np.random.default_rng(0)
    n = 1200
    group = {**GROUP, "categories": ["a", "b", "c"]}
    table = pd.DataFrame({"group": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]), "value": rng.random(n) ** 3})
    private = dp.PrivateTable(table, schema_of(group, VALUE))
    release = dp.synthesize(private, dp.MECHANISMS["perturbed_histogram"](), epsilon=0.5, seed=1)
    risk = dp.discovery_risk(release, value="value", group="group", stage=0, advice=False)
    assert risk.levels == ("a", "b", "c")
    assert [pair.levels for pair in risk.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert "all pairs of 3 groups" in risk.sentences[0]
    assert risk.high <= sum(pair.high for pair in risk.pairs) + 0.05
    chosen = dp.discovery_risk(release, value="value", group="group", levels=("a", "c"), stage=0, advice=False)
    assert chosen.levels == ("a", "c")
    assert chosen.pairs == ()


@pytest.mark.parametrize(
    "value",
    [
        {"name": "value", "kind": "ordinal", "categories": ["low", "middle", "high"], "public": True},
        {"name": "value", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "bins": 12, "public": True},
        {"name": "value", "kind": "integer", "lower": 0, "upper": 99, "bins": 10, "public": True, "nullable": True},
        {"name": "value", "kind": "continuous", "lower": 0, "upper": 1e9, "bins": 50, "public": True},
    ],
    ids=["ordinal", "date", "missing values", "bounds far too wide"],
)
@pytest.mark.parametrize("key", ["perturbed_histogram", "kd_tree"])
def test_any_ordered_value(value: dict, key: str) -> None:
    rng = np.random.default_rng(3)
    n = 300
    cells = {
        "ordinal": rng.choice(["low", "middle", "high"], n),
        "date": pd.Timestamp("2020-02-01") + pd.to_timedelta(rng.integers(0, 100, n), "D"),
        "integer": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 30, n)),
        "continuous": rng.gamma(2, 10, n),
    }[value["kind"]]
    schema = schema_of(GROUP, value)
    table = pd.DataFrame({"group": rng.choice(["a", "b"], n, p=[0.99, 0.01]), "value": cells})
    release = dp.synthesize(dp.PrivateTable(table, schema), dp.MECHANISMS[key](), epsilon=1, seed=1)
    risk = dp.discovery_risk(release, value="value", group="group", stage=0, advice=False)
    assert 0 <= risk.low <= risk.high <= 1
    assert risk.simulations > 0


def test_a_mechanism_that_is_too_slow_or_states_no_loss_is_unknown() -> None:
    slow = release_of(dp.MECHANISMS["kd_tree"](), 200, 0.5, 1.0, seed=1)
    risk = dp.discovery_risk(slow, value="value", group="group", max_seconds=0.01)
    assert (risk.low, risk.high, risk.verdict) == (0.0, 1.0, "unknown")
    assert "is not known" in risk.sentences[0]
    assert "takes too long" in risk.sentences[0]
    open_ended = release_of(dp.MECHANISMS["bayes"](), 200, 0.5, 1.0, seed=1)
    assert dp.discovery_risk(open_ended, value="value", group="group").verdict == "unknown"


def test_a_group_that_is_not_in_the_release_still_has_a_risk() -> None:
    release = release_of(dp.MECHANISMS["perturbed_histogram"](), 200, 0.5, 1.0, seed=1)
    table = release.sample().assign(group="a")
    risk = dp.discovery_risk(release, value="value", group="group", table=table, stage=0)
    assert risk.ordinary is None
    assert "No row of this table" in risk.problem
    assert risk.calibrated is None


@pytest.mark.parametrize("kept", ["a", "b"])
def test_nobody_is_told_to_rely_on_a_test_that_cannot_be_made(kept: str) -> None:
    release = release_of(dp.MECHANISMS["smoothed_histogram"](), 60, 0.5, 1.0, seed=1)
    table = release.sample().assign(group=kept)
    risk = dp.discovery_risk(release, value="value", group="group", table=table, stage=0, advice=False)
    assert risk.nothing_to_test
    assert risk.verdict != "sound"
    assert "There is nothing to test in this release" in risk.sentences[1]
    assert "calibrated" not in " ".join([*risk.sentences, risk.tests_sentence])
    assert risk.tests_sentence == risk.problem


def test_the_wait_is_told_from_public_facts_before_anything_is_simulated() -> None:
    test = GroupTest.of(schema_of(GROUP, VALUE), value="value", group="group")
    by_counts = release_of(dp.MECHANISMS["kd_grid"](), 200, 0.5, 1.0, seed=1)
    assert expected_seconds(by_counts, test) == QUICK_SECONDS
    by_rows = release_of(dp.MECHANISMS["kd_tree"](), 200, 0.5, 1.0, seed=1)
    one = row_simulator(by_rows, test, by_rows.sample()).seconds
    assert [expected_seconds(by_rows, test, stage) for stage in range(3)] == [each.runs * one for each in ROW_EFFORTS]
    with pytest.raises(NotSimulatedError, match="states no privacy loss"):
        expected_seconds(release_of(dp.MECHANISMS["bayes"](), 200, 0.5, 1.0, seed=1), test)


def test_compiling_is_expected_once_however_often_a_mechanism_runs() -> None:
    test = GroupTest.of(schema_of(GROUP, VALUE), value="value", group="group")
    by_tree = release_of(dp.MECHANISMS["kd_tree"](), 200, 0.5, 1.0, seed=1)
    compiled = replace(by_tree, mechanism=dp.MECHANISMS["dp_gan"](rounds=2), budget=Budget.of(1, "1e-6"))
    one = compiled.mechanism.plan(compiled.schema, compiled.n, compiled.budget)
    assert one.seconds - one.seconds_again > 1
    efforts = row_efforts(one.seconds_again)
    assert expected_seconds(compiled, test) == one.starting + efforts[0].runs * one.seconds_again


def test_where_runs_are_slow_a_glimpse_comes_first_and_calls_nothing_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efforts, "FIRST_SECONDS", 0.5)
    test = GroupTest.of(schema_of(GROUP, VALUE), value="value", group="group")
    release = release_of(dp.MECHANISMS["pmse"](), 400, 0.5, 1.0, seed=1)
    one = row_simulator(release, test, release.sample()).seconds
    assert ROW_EFFORTS[0].runs * one > 0.5 >= expected_seconds(release, test)
    assert expected_seconds(release, test, 1) == ROW_EFFORTS[0].runs * one, "the usual first figure comes next"
    risk = dp.discovery_risk(release, value="value", group="group", stage=0, workers=1)
    assert FEWEST_SEEN <= risk.simulations < ROW_EFFORTS[0].runs
    assert not risk.last
    assert risk.verdict != "sound"
    assert risk.high - risk.low > 0.2
    assert risk.problem == CALIBRATED_FOLLOWS


@pytest.mark.parametrize("seconds", [0.01, 0.2, 2.0, 60.0])
def test_a_first_figure_is_as_quick_as_the_mechanism_allows(seconds: float) -> None:
    stages = row_efforts(seconds)
    assert stages[-len(ROW_EFFORTS) :] == ROW_EFFORTS
    assert stages[0].runs * seconds <= max(efforts.FIRST_SECONDS, FEWEST_SEEN * seconds)
    assert len(stages) == len(ROW_EFFORTS) or not stages[0].calibrates


class _Coins(NullSimulator):
    """Releases on which the test reports something with a known chance: the null's share of the first group."""

    n, quick = 1000, False

    def __init__(self) -> None:
        self.found = Findings(pvalues=np.array([0.5]), statistics=np.zeros(1))

    def run(
        self, null: Nuisance, tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> NullReleases:
        low = rng.random(tables) < null.sizes[0, 0] / self.n
        pvalues = np.where(low, 0.01, 0.5)[:, None]
        return NullReleases(counts=np.ones((tables, 2, 1)), found=Findings(pvalues=pvalues, statistics=pvalues))

    counted = estimate = again = changed = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("rates", "verdict", "was_open"),
    [((0.03, 0.05), "sound", True), ((0.03, 0.2), "inflated", False), ((0.03, 0.08), "inflated", True)],
)
def test_an_open_verdict_is_settled_by_more_releases_of_the_worst_null(
    rates: tuple[float, ...], verdict: RiskVerdict, was_open: bool
) -> None:
    rng, simulator, effort = np.random.default_rng(4), _Coins(), ROW_EFFORTS[-1]
    nulls = [Nuisance(sizes=np.array([[1000 * rate, 1000 - 1000 * rate]]), chances=np.ones((1, 1))) for rate in rates]
    first = [(null, simulator.run(null, effort.releases, rng).found) for null in nulls]
    drawn = settled(simulator, first, effort, alpha=0.05, rng=rng)
    shares = [Proportion(count=int((found.pvalues <= 0.05).sum()), reps=len(found.pvalues)) for _, found in drawn]
    assert verdict_of(shares) == verdict
    assert sum(share.reps for share in shares) <= len(rates) * effort.releases + effort.settling
    assert (shares[1].reps > effort.releases) == was_open


# The simulation


def test_both_simulators_draw_the_same_releases() -> None:
    """Array arithmetic and the mechanism itself agree on the shares and on how often a test is wrong."""
    release = release_of(dp.MECHANISMS["perturbed_histogram"](), 400, 0.25, 0.5, seed=6)
    table = release.sample()
    test = GroupTest.of(release.schema, value="value", group="group")
    by_counts = simulator_of(release, test, table)
    assert isinstance(by_counts, CountSimulator)
    by_rows = row_simulator(release, test, table, axes=(by_counts.cells.group, by_counts.cells.value))
    assert isinstance(by_rows, RowSimulator)
    np.testing.assert_array_equal(by_counts.observed, by_rows.observed)
    rng = np.random.default_rng(1)
    null = by_counts.estimate(rng)
    occupied = by_rows.observed.sum(axis=0) > 0
    null = Nuisance(sizes=null.sizes, chances=np.where(occupied, null.chances, 0) / null.chances[:, occupied].sum())
    runs = 150
    drawn = [simulator.run(null, runs, rng) for simulator in (by_counts, by_rows)]
    for a, b in zip(*(summaries(one.counts).T for one in drawn), strict=True):
        spread = np.sqrt((a.var() + b.var()) / runs) + 1e-9
        assert abs(a.mean() - b.mean()) < 4.5 * spread
    rates = [(one.found.pvalues <= 0.05).mean() for one in drawn]
    assert abs(rates[0] - rates[1]) < 4 * np.sqrt(0.5 / runs)


def test_smoothing_over_other_columns_adds_up() -> None:
    """A smoothed histogram of three columns, seen in two of them, is a smoothed histogram with a larger constant."""
    other = {"name": "other", "kind": "categorical", "categories": ["x", "y", "z"], "public": True}
    schema = schema_of(GROUP, other, VALUE)
    table = null_table(600, 0.3, 1).assign(other="x")[["group", "other", "value"]]
    mechanism = dp.MECHANISMS["smoothed_histogram"](rows=200)
    test = GroupTest.of(schema, value="value", group="group")
    cells = count_cells_of(mechanism, schema, test, 600, Fraction(2))
    assert cells is not None
    counts = np.zeros((2, BINS))
    np.add.at(counts, ((table["group"] == "b").to_numpy(int), (table["value"] * BINS).astype(int)), 1)
    rng = np.random.default_rng(2)
    simulated = cells.law.run(np.repeat(counts[None], 2000, axis=0), rng).mean(axis=0)
    runs = [dp.synthesize(dp.PrivateTable(table, schema), mechanism, epsilon=2, seed=i).sample() for i in range(60)]
    real = np.mean([[(run["group"] == level).sum() for level in ("a", "b")] for run in runs], axis=0)
    np.testing.assert_allclose(real, simulated.sum(axis=1), atol=4 * np.sqrt(200 / 4 / 60))
    first = np.mean([(run["value"] < 0.25).sum() for run in runs])
    assert abs(first - simulated[:, : BINS // 4].sum()) < 4 * np.sqrt(200 / 4 / 60)


def test_a_null_is_plausible_if_its_releases_look_like_the_real_one() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(0, 1, (40, 5))
    usual = np.ones(5)
    assert is_plausible(np.zeros(5), drawn, usual)
    assert not is_plausible(np.array([0, 0, 9.0, 0, 0]), drawn, usual)
    assert is_plausible(np.array([0, 0, 9.0, 0, 0]), drawn, np.full(5, 9.0))


def test_summaries_do_not_see_a_difference_between_the_groups() -> None:
    same = np.array([[[10.0, 20, 30], [10, 20, 30]]])
    apart = np.array([[[20.0, 20, 20], [0, 20, 40]]])
    np.testing.assert_allclose(summaries(same), summaries(apart))


def test_the_calibrated_test_is_advised_with_its_own_rate_under_every_null() -> None:
    rng, releases = np.random.default_rng(2), 400
    drawn = tuple(
        Findings(
            pvalues=np.where(rng.random((releases, 1)) < 0.8, 0.5, np.nan), statistics=rng.normal(m, s, (releases, 1))
        )
        for m, s in ((0.0, 1.0), (0.5, 1.0), (0.0, 3.0))
    )
    none, one = np.zeros((3, 1), dtype=np.int64), np.ones(1)
    found = PlausibleNulls(
        nulls=(),
        reported=none,
        tested=none,
        pvalues=one,
        centres=one,
        spreads=one,
        drawn=drawn,
        releases=releases,
        tried=3,
        plausible=3,
    )
    rates = found.calibrated_rates(0.05)
    assert [rate.reps for rate in rates] == [int(each.tested.sum()) for each in drawn]
    assert all(rate.low <= 0.05 for rate in rates)
    assert rates[0].count == 0, "what is unusual under the first null is usual under the third"
    assert 0.02 <= rates[2].estimate <= 0.05 + 1 / releases


@pytest.mark.slow
def test_advice_comes_with_figures() -> None:
    release = release_of(dp.MECHANISMS["perturbed_histogram"](), 300, 0.2, 0.5, seed=8)
    assert not dp.discovery_risk(release, value="value", group="group", stage=0).advice, "the first figure comes first"
    told: list[DiscoveryRisk] = []
    risk = dp.discovery_risk(release, value="value", group="group", stage=1, figure=told.append)
    assert told == [replace(risk, advice=())], "nobody waits for the advice to read the figure"
    remedies = [advice.remedy for advice in risk.advice]
    assert remedies[:3] == ["calibrated", "epsilon", "rows"]
    assert set(remedies[3:]) <= {"mechanism"}
    assert all(0 <= advice.low <= advice.high <= 1 for advice in risk.advice)
    calibrated = risk.advice[0]
    assert calibrated.high < risk.high
    assert COUNT_EFFORTS[0].runs < COUNT_EFFORTS[1].runs


def test_the_figure_of_the_original_itself_is_marked_as_private() -> None:
    """With the true sizes and shape the true rate is met to within the simulation's error."""
    mechanism = dp.MECHANISMS["perturbed_histogram"]()
    truth = true_rate(mechanism, 1000, 0.1, 1.0, 4000)
    private = dp.PrivateTable(null_table(1000, 0.1, 21), schema_of(GROUP, VALUE))
    release = dp.synthesize(private, mechanism, epsilon=1.0, seed=21)
    risk = private_discovery_risk(private, release, value="value", group="group")
    assert not risk.releasable
    assert risk.low - 0.1 <= truth <= risk.high + 0.1  # the original is one sample of the law
    by_rows = dp.synthesize(private, dp.MECHANISMS["kd_tree"](), epsilon=1.0, seed=21)
    small = private_discovery_risk(private, by_rows, value="value", group="group", max_seconds=2.0)
    assert not small.releasable
    assert small.simulations == ROW_EFFORTS[0].releases
