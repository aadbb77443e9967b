"""Error rates, curves, verdicts, the replay and the table of all columns."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.charts.p_values import groups_chart, replay_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.experiments import ErrorRates, Experiment, doubled_us, error_rates
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.multiplicity import benjamini_hochberg, holm
from dpsynth_core.inference.pair_tests import all_pairs
from dpsynth_core.inference.populations import populations
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram
from dpsynth_core.teaching.false_discovery import p_value, replay_false_discovery

PERTURBED = PerturbedHistogram(placement="centre")


def rates(false: int, missed: int, reps: int = 1000, **changes: float) -> ErrorRates:
    shares = {"type_one": Proportion(count=false, reps=reps), "type_two": Proportion(count=missed, reps=reps)}
    facts = {"epsilon": 0.1, "n1": 250, "n2": 250, "effect": 1.0, "alpha": 0.05, "undefined": 0, **changes}
    return ErrorRates(test="ordinary", **facts, **shares)  # type: ignore[arg-type]


@given(count=st.integers(0, 50), more=st.integers(0, 50))
def test_wilson_intervals_hold_the_shares_that_the_score_test_accepts(count: int, more: int) -> None:
    reps = count + more + 1
    share = Proportion(count=count, reps=reps)
    for end in (share.low, share.high):
        if 0 < end < 1:  # the score test just accepts it: (p - end)^2 = z^2 end (1 - end) / n
            apart = stats.norm.ppf(0.975) * math.sqrt(end * (1 - end) / reps)
            assert abs(share.estimate - end) == pytest.approx(apart, rel=1e-9)
    assert share.low <= share.estimate <= share.high
    assert share.complement.estimate == pytest.approx(1 - share.estimate)


def test_the_papers_findings_appear() -> None:
    """Perturbed histograms mislead at small epsilon unless n is large; smoothed ones and the private test do not."""
    inflated = error_rates(PERTURBED, epsilon=0.1, n=500, reps=400)
    assert inflated.type_one.low > 0.35
    assert error_rates(PERTURBED, epsilon=1, n=20_000, reps=400).type_one.low <= 0.06
    smoothed = SmoothedHistogram(placement="centre", smoothing="paper", rows=500)
    for epsilon in (0.1, 10):
        for valid in (
            error_rates(smoothed, epsilon=epsilon, n=20_000, reps=400),
            error_rates(None, epsilon=epsilon, n=500, reps=400, test="dp"),
        ):
            assert valid.type_one.estimate <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)


def test_a_run_repeats_with_its_seed_and_tells_of_its_progress() -> None:
    told: list[tuple[str, float]] = []
    one, two, other = (
        error_rates(
            PERTURBED,
            epsilon=1,
            n=200,
            reps=80,
            test="calibrated",
            seed=seed,
            simulations=19,
            progress=lambda stage, done: told.append((stage, done)),
        )
        for seed in (0, 0, 1)
    )
    assert one == two
    assert one != other
    assert told[0] == ("Simulating releases", 0.0)
    assert all(0 <= done <= 1 for _, done in told)


def test_a_cancel_is_heard() -> None:
    class Cancelled(Exception):  # noqa: N818
        pass

    def cancel(stage: str, done: float) -> None:
        raise Cancelled

    for mechanism in (PERTURBED, KDTree()):
        with pytest.raises(Cancelled):
            error_rates(mechanism, epsilon=1, n=60, reps=50, progress=cancel)


@pytest.mark.slow
def test_any_mechanism_can_be_tried_over_processes() -> None:
    by_processes = error_rates(KDTree(), epsilon=1, n=80, reps=12, workers=2, bins=10)
    in_line = error_rates(KDTree(), epsilon=1, n=80, reps=12, workers=1, bins=10)
    assert by_processes == in_line
    calibrated = error_rates(KDTree(), epsilon=1, n=60, reps=2, workers=1, test="calibrated", simulations=19, bins=10)
    assert calibrated.type_one.reps == 2


@pytest.mark.parametrize("placement", ["centre", "uniform"])
def test_arrays_and_runs_of_the_mechanism_reject_equally_often(placement: str) -> None:
    mechanism = PerturbedHistogram(placement=placement)  # type: ignore[arg-type]
    _, signal = populations(n1=40, n2=40, effect=1.0)
    experiment = Experiment(mechanism=mechanism, budget=dp.Budget.of(3), bins=100, test="ordinary", simulations=99)
    (fast,) = experiment.pvalues([signal], 2000, np.random.SeedSequence(0))
    (slow,) = experiment._rows([signal], 150, np.random.SeedSequence(1), lambda *_: None, 1)
    assert stats.ks_2samp(fast[~np.isnan(fast)], slow[~np.isnan(slow)]).pvalue > 1e-4


def test_a_shape_of_ones_own_can_be_given() -> None:
    found = error_rates(PERTURBED, epsilon=10, n=400, shape=[1, 4, 6, 4, 1], bins=20, reps=200, lower=-5, upper=5)
    assert found.power.low > 0.9
    null, signal = populations(n1=5, n2=5, effect=2.0, shape=[1, 4, 6, 4, 1], lower=-5, upper=5)
    rng = np.random.default_rng(0)
    values = signal.rows(20_000, rng)
    assert values[:, :5].mean() - values[:, 5:].mean() == pytest.approx(2 * values[:, 5:].std(), rel=0.15)
    counts = signal.counts(20_000, 5, rng).mean(axis=0) / 5
    for group in (0, 1):
        part = values[:, 5 * group : 5 * group + 5]
        share = np.histogram(part, bins=5, range=(-5, 5))[0] / part.size
        np.testing.assert_allclose(counts[group], share, atol=0.01)
    assert null.schema(7)["value"].levels == 7


def test_large_originals_are_simulated_without_ranking_every_row() -> None:
    null, _ = populations(n1=30_000, n2=30_000, effect=1.0)
    rng = np.random.default_rng(0)
    doubled = doubled_us(null, 200, rng, lambda *_: None)
    deviation = math.sqrt(30_000**2 * 60_001 / 12)
    z = (30_000**2 - doubled) / 2 / deviation  # half-normal under the null
    assert stats.kstest(z, stats.halfnorm.cdf).pvalue > 1e-4
    large = error_rates(PerturbedHistogram(), epsilon=10, n=60_000, reps=200)
    assert large.type_one.low <= 0.05


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 1},
        {"reps": 0},
        {"ratio": 1.0},
        {"effect": 0.0},
        {"alpha": 0},
        {"test": "t"},
        {"bins": 1},
        {"epsilon": 0},
        {"simulations": 3},
        {"shape": [0, 0]},
        {"shape": [[1]]},
    ],
    ids=str,
)
def test_impossible_settings_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(DPSynthError):
        error_rates(PERTURBED, **{"epsilon": 1, "n": 50, "reps": 2, **changes})  # type: ignore[arg-type]


def test_a_test_on_releases_needs_a_mechanism() -> None:
    with pytest.raises(DPSynthError, match="mechanism"):
        error_rates(None, epsilon=1, n=50, reps=2)


def test_tables_that_leave_nothing_to_test_are_counted() -> None:
    found = error_rates(PerturbedHistogram(placement="centre", bins=2), epsilon=0.01, n=2, reps=300)
    assert found.undefined > 0
    assert found.type_one.reps == 300


def test_figure_six_can_be_replayed() -> None:
    replays = [replay_false_discovery(seed=seed, simulations=99) for seed in range(16)]
    again = replay_false_discovery(seed=0, simulations=99)
    assert again.sentence == replays[0].sentence
    assert sum(r.perturbed.ordinary.pvalue <= 0.05 for r in replays) >= 2, "about 47 in 100"
    assert sum(r.smoothed.ordinary.pvalue <= 0.05 for r in replays) <= 5
    assert sum(r.perturbed.calibrated.pvalue <= 0.05 for r in replays) <= 5  # type: ignore[union-attr]
    assert [len(r.table) for r in (again.original, again.perturbed, again.smoothed)] == [500] * 3
    chart = replay_chart(again)
    assert "no difference between the groups" in chart.alt
    under = " ".join(note.text for note in chart.figure.layout.annotations)
    for one in (again.original, again.perturbed, again.smoothed):
        assert f"<b>{p_value(one.ordinary.pvalue)}</b>" in under
    assert chart.table.groupby(["table", "group"])["share"].sum().to_numpy() == pytest.approx(np.ones(6))


def mixed_release() -> tuple[dp.Release, dp.PrivateTable]:
    rng = np.random.default_rng(0)
    n = 300
    group = rng.random(n) < 0.5
    table = pd.DataFrame({"sick": group, "x": rng.normal(size=n) + 2 * group, "y": rng.normal(size=n), "flat": 1.0})
    facts = [{"name": "sick", "kind": "boolean", "public": True}]
    facts += [{"name": name, "kind": "continuous", "lower": -5, "upper": 5, "public": True} for name in ("x", "y")]
    facts.append({"name": "flat", "kind": "integer", "lower": 1, "upper": 1, "public": True})
    facts.append({"name": "colour", "kind": "categorical", "categories": ["red", "blue"], "public": True})
    table["colour"] = "red"
    private = dp.PrivateTable(table, dp.Schema.from_dict({"columns": facts}))
    return dp.synthesize(private, KDTree(), epsilon=20, seed=0), private


def test_all_columns_are_read_with_their_number_in_mind() -> None:
    release, private = mixed_release()
    found = all_pairs(release, group="sick", original=private, calibrated=True, simulations=19, seed=0, workers=1)
    assert found.pairs[0].value == "x"
    assert {pair.value for pair in found.pairs} == {"x", "y", "flat"}, "colours have no order"
    flat = next(pair for pair in found.pairs if pair.value == "flat")
    assert flat.pvalue is None
    assert "equal" in flat.problem
    assert (found.tested, found.by_chance) == (2, pytest.approx(0.1))
    assert not found.releasable
    assert "2 calibrated tests at level 0.05" in found.sentence
    first = found.pairs[0]
    assert first.holm == pytest.approx(2 * first.pvalue)  # type: ignore[operator]
    assert first.original is not None
    assert first.original.pvalue < 1e-6
    assert list(found.frame()["column"]) == [pair.value for pair in found.pairs]
    quick = all_pairs(release, group="sick")
    assert quick.releasable
    assert "calibrate it first" in quick.sentence


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections(pvalues: list[float]) -> None:
    p, m = np.array(pvalues), len(pvalues)
    ranks = [sum(q <= one for q in pvalues) for one in pvalues]
    stepped_up = [min(m * q / r for q, r in zip(pvalues, ranks, strict=True) if q >= one) for one in pvalues]
    assert benjamini_hochberg(p) == pytest.approx([min(1.0, value) for value in stepped_up])
    by_hand = [max(min(1.0, (m - sorted(pvalues).index(q)) * q) for q in pvalues if q <= one) for one in pvalues]
    assert holm(p) == pytest.approx(by_hand)
    assert all(a >= b - 1e-12 for a, b in zip(holm(p), benjamini_hochberg(p), strict=True))


def test_groups_are_drawn_for_original_and_synthetic() -> None:
    release, private = mixed_release()
    comparison = GroupComparison.of(release.schema, value="x", group="sick")
    both = groups_chart(private.rows(), release.sample(), comparison)
    assert set(both.table["table"]) == {"original", "synthetic"}
    alone = groups_chart(None, release.sample(), comparison)
    assert set(alone.table["table"]) == {"synthetic"}
    assert "x in the two groups of sick" in alone.alt
    tests = [comparison.test(table) for table in (private.rows(), release.sample())]
    under = [note.text for note in both.figure.layout.annotations if "<b>p" in note.text]
    assert under[0] == f"<b>{p_value(tests[0].pvalue)}</b>: a difference"
    assert len(under) == 2
    assert f"The original table shows a difference (U = {tests[0].statistic:,.1f}," in both.alt


def test_a_release_that_lost_a_group_is_drawn_all_the_same() -> None:
    release, private = mixed_release()
    comparison = GroupComparison.of(release.schema, value="x", group="sick")
    rows = release.sample()
    one = rows[rows["sick"] == comparison.levels[0]]
    chart = groups_chart(private.rows(), one, comparison)
    assert "In the synthetic table there is nothing to test." in chart.alt
    assert [note.text for note in chart.figure.layout.annotations][-1] == "nothing to test"
    with pytest.raises(dp.DPSynthError):
        comparison.test(one)
