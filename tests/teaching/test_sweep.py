"""Sweeps over epsilon: repeatable, honest about what was not reached, and never silent about a refusal."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.inference.discovery_risk import discovery_risk, private_discovery_risk
from dpsynth_core.inference.experiments import error_rates
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.populations import populations
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Point
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.analysts import PATIENCE, AnalystPanel, groups_to_compare
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import SweepConfig
from dpsynth_core.teaching.sweep.distances import CellCodes, Slopes, error_by_size
from dpsynth_core.teaching.sweep.results import Band, SweepPoint, SweepResult, epsilon_needed
from dpsynth_core.teaching.sweep.run import MAX_TABLE_ROWS, sweep
from dpsynth_core.teaching.sweep.sizes import SizeSweepConfig, SizeSweepResult, sweep_sizes

EXAMPLE = EXAMPLES["two_groups_signal"]
CONFIG = SweepConfig(
    mechanisms=("perturbed_histogram", "kd_tree"), epsilons=(0.01, 1.0, 100.0), repetitions=2, analysts=10
)
HISTOGRAM_KEYS = {kind.key for kind in HISTOGRAMS}
PRIVATE = [key for key, kind in MECHANISMS.items() if kind.status != "none" and not kind.comparator]


@lru_cache
def swept() -> SweepResult:
    return sweep(EXAMPLE.load(), EXAMPLE.schema, CONFIG)


def drawn(*highs: float) -> SweepResult:
    """A sweep with these upper ends of its bands."""
    grid = tuple(float(10**i) for i in range(len(highs)))
    points = tuple(
        SweepPoint(
            mechanism="kd_tree", epsilon=e, bands={"column": Band(low=0.0, middle=high / 2, high=high)}, table=None
        )
        for e, high in zip(grid, highs, strict=True)
    )
    return SweepResult(config=SweepConfig(mechanisms=("kd_tree",), epsilons=grid), rows=10, points=points)


def point_at(found: SweepResult, mechanism: str, epsilon: float) -> SweepPoint:
    return next(point for point in found.line(mechanism, "column") if point.epsilon == epsilon)


def test_every_point_of_the_grid_is_measured_with_a_band() -> None:
    found = swept()
    assert [(s.mechanism, s.epsilon) for s in found.points] == [
        (m, e) for m in CONFIG.mechanisms for e in CONFIG.epsilons
    ]
    for point in found.points:
        assert {"column", "pairs", "pmse", "mmd"} <= set(point.bands) <= set(ASPECTS)
        assert all(band.low <= band.middle <= band.high for band in point.bands.values())
        assert point.table is not None
        assert list(point.table.columns) == list(EXAMPLE.schema.names)
        assert len(point.table) == min(found.rows, MAX_TABLE_ROWS)
    assert set(found.aspects) == set(ASPECTS)
    assert found.references["column"] > 0


def test_more_epsilon_makes_better_tables() -> None:
    for key in CONFIG.mechanisms:
        for aspect in ("column", "pairs", "mmd"):
            first, *_, last = swept().line(key, aspect)
            assert first.bands[aspect].low > last.bands[aspect].high


def test_analysts_compare_two_groups_or_say_that_there_are_none() -> None:
    table = pd.DataFrame({"arm": ["a"] * 30 + ["b"] * 70, "level": ["low"] * 80 + ["high"] * 20})
    arm = {"name": "arm", "kind": "categorical", "categories": ["a", "b"], "public": True}
    level = {"name": "level", "kind": "ordinal", "categories": ["low", "middle", "high"], "public": True}
    both = Schema.from_dict({"columns": [arm, level]})
    test = groups_to_compare(both)
    assert (test.value.name, test.group.name) == ("level", "arm")
    with pytest.raises(DPSynthError, match="two levels"):
        groups_to_compare(Schema.from_dict({"columns": [arm]}))
    panel = AnalystPanel.of(MECHANISMS["kd_grid"](), both, 100, Budget.of(1), 10)
    with pytest.raises(DPSynthError, match="is empty"):
        panel.rates(PrivateTable(table.assign(arm="a"), both), seed=1)


@pytest.mark.parametrize("key", ["perturbed_histogram", "smoothed_histogram", "kd_tree"])
def test_the_sweep_says_what_diagnostics_says_of_the_same_release(key: str) -> None:
    """For the original's own groups, in a table whose third column shares the noise: one simulation, one figure."""
    rng = np.random.default_rng(3)
    n, columns = 400, [{"name": "arm", "kind": "categorical", "categories": ["a", "b"], "public": True}]
    columns += [
        {"name": name, "kind": "continuous", "lower": 0, "upper": 100, "bins": 20, "public": True} for name in "xy"
    ]
    schema = Schema.from_dict({"columns": columns})
    table = pd.DataFrame({"arm": np.where(np.arange(n) < 60, "a", "b"), "x": rng.gamma(2, 8, n).clip(0, 100)})
    private = PrivateTable(table.assign(y=rng.random(n) * 100), schema)
    mechanism = MECHANISMS[key].suggest(schema, n, 1.0)
    budget = Budget.of(1)
    panel = AnalystPanel.of(mechanism, schema, n, budget, 60)
    band = panel.rates(private, seed=1)["type_one"]
    release = synthesize(private, mechanism, epsilon=1, seed=1)
    told = private_discovery_risk(private, release, value="x", group="arm", max_seconds=20.0)
    assert told.low <= band.high
    assert band.low <= told.high
    # What is said of any release allows for this one, so the sweep cannot contradict it either.
    stated = discovery_risk(release, value="x", group="arm", stage=0, advice=False)
    assert stated.low <= band.high
    assert band.low <= stated.high


@pytest.mark.parametrize("key", ["perturbed_histogram", "kd_tree"])
def test_a_difference_of_one_standard_deviation_is_made_alike_by_counts_and_by_rows(key: str) -> None:
    """With next to no noise, the share that misses it is that of the same test on tables drawn by hand."""
    rng = np.random.default_rng(5)
    n, schema = 40, populations(n1=20, n2=20, effect=1.0)[0].schema(50)
    group, value = schema.names
    draws = rng.normal(50, 8, n).clip(*schema[value].position_range)
    private = PrivateTable(pd.DataFrame({group: np.arange(n) >= n // 2, value: draws}), schema)
    panel = AnalystPanel.of(MECHANISMS[key].suggest(schema, n, 1e6), schema, n, Budget.of(10**6), 150)
    rates = panel.rates(private, seed=2)
    expected = error_rates(None, epsilon=10**6, n=n, effect=1.0, reps=2000, test="dp", seed=1).type_two.estimate
    assert rates["type_one"].low <= 0.1
    assert rates["type_two"].low - 0.1 <= expected <= rates["type_two"].high + 0.1


@pytest.mark.parametrize("key", PRIVATE)
def test_every_mechanism_has_analysts_or_says_why_not(key: str) -> None:
    budget = Budget.of(1, "1e-6" if MECHANISMS[key].needs_delta else 0)
    mechanism = MECHANISMS[key].suggest(EXAMPLE.schema, 300, 1.0)
    panel = AnalystPanel.of(mechanism, EXAMPLE.schema, 300, budget, 30)
    assert panel == AnalystPanel.of(mechanism, EXAMPLE.schema, 300, budget, 30)
    assert bool(panel.each) != bool(panel.problem)
    assert panel.seconds <= PATIENCE
    assert not panel.problem
    none = AnalystPanel.of(mechanism, EXAMPLE.schema, 300, budget, 0)
    assert (none.each, none.problem) == ((400, "") if key in HISTOGRAM_KEYS else (0, ""))


def test_what_takes_too_long_is_said_with_its_time() -> None:
    mechanism = MECHANISMS["dp_gan"].suggest(EXAMPLE.schema, 20_000, 1.0)
    panel = AnalystPanel.of(mechanism, EXAMPLE.schema, 20_000, Budget.of(1, "1e-6"), 30)
    assert re.fullmatch(r"20 simulated analysts of each kind would take about \d+ minutes\.", panel.problem)
    points = tuple(
        SweepPoint(mechanism="pmse", epsilon=epsilon, bands={}, table=None, no_analysts=reason)
        for epsilon, reason in ((0.1, ""), (1.0, "Too long."), (10.0, "Far too long."))
    )
    found = SweepResult(config=SweepConfig(mechanisms=("pmse",), epsilons=(0.1, 1.0, 10.0)), rows=10, points=points)
    assert found.without_analysts == (f"{MECHANISMS['pmse'].title} at ε 1, 10: Far too long.",)


def test_what_was_measured_stays_where_analysts_cannot_be_simulated() -> None:
    tiny = EXAMPLE.load().head(3)
    (point,) = sweep(tiny, EXAMPLE.schema, replace(CONFIG, mechanisms=("kd_grid",), epsilons=(1.0,))).points
    assert point.table is not None
    assert "column" in point.bands
    assert point.no_analysts == "3 rows are too few for two groups."


def test_progress_never_goes_back_and_tells_of_analysts() -> None:
    told: list[tuple[str, float]] = []
    config = replace(CONFIG, epsilons=(1.0,), repetitions=1)
    sweep(EXAMPLE.load(), EXAMPLE.schema, config, lambda stage, done, /, *_: told.append((stage, done)))
    shares = [done for _, done in told]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert any(stage == "Simulating analysts: KD tree at ε 1" for stage, _ in told)


def test_analysts_and_measures_can_be_left_out() -> None:
    quick = sweep(EXAMPLE.load(), EXAMPLE.schema, replace(CONFIG, epsilons=(1.0,), analysts=0))
    assert quick.line("perturbed_histogram", "type_one")
    assert quick.line("kd_tree", "type_one") == ()
    assert SizeSweepConfig.around(500, ["kd_tree"]).sweep.analysts == 0
    without = sweep(EXAMPLE.load(), EXAMPLE.schema, replace(CONFIG, epsilons=(1.0,), discoveries=False))
    assert "type_one" not in without.aspects


def test_a_run_does_not_depend_on_what_else_is_swept() -> None:
    alone = sweep(EXAMPLE.load(), EXAMPLE.schema, replace(CONFIG, mechanisms=("kd_tree",), epsilons=(1.0,)))
    together = point_at(swept(), "kd_tree", 1.0)
    assert together is not None
    assert together.table is not None
    assert alone.points[0].table is not None
    assert alone.points[0].bands == together.bands
    pd.testing.assert_frame_equal(alone.points[0].table, together.table)


def test_the_error_of_the_worst_column_is_the_total_variation_of_its_shares() -> None:
    found = sweep(EXAMPLE.load(), EXAMPLE.schema, SweepConfig(mechanisms=("kd_grid",), epsilons=(1.0,), repetitions=1))
    (point,) = found.points
    assert point.table is not None
    original = EXAMPLE.load()
    group = "group"
    shares = [table[group].value_counts(normalize=True) for table in (original, point.table)]
    apart = float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
    assert point.bands["column"].middle >= apart - 1e-12
    column = EXAMPLE.schema["value"]
    edges = np.linspace(float(column.lower), float(column.upper), 31)  # type: ignore[arg-type]
    counts = [
        np.histogram(table["value"].clip(edges[0], edges[-1]), edges)[0] / found.rows
        for table in (original, point.table)
    ]
    assert point.bands["column"].middle == pytest.approx(max(apart, np.abs(counts[0] - counts[1]).sum() / 2), abs=1e-9)


def test_a_mechanism_that_refuses_says_why_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DPSynthError("It does not fit.")

    monkeypatch.setattr(MECHANISMS["mwem"], "suggest", refuse)
    config = SweepConfig(mechanisms=("mwem", "kd_grid"), epsilons=(1.0,), repetitions=1)
    found = sweep(EXAMPLE.load(), EXAMPLE.schema, config)
    refused, made = found.points
    assert refused.table is None
    assert found.problems == {MECHANISMS["mwem"].title: "It does not fit."}
    assert made.table is not None


def test_progress_names_the_run_and_can_end_it() -> None:
    class EndedError(Exception):
        pass

    def end(stage: str, done: float, /, *points: Point) -> None:
        assert stage.startswith("Run 1 of 12: Perturbed histogram at ε 0.01")
        assert done == 0
        raise EndedError

    with pytest.raises(EndedError):
        sweep(EXAMPLE.load(), EXAMPLE.schema, CONFIG, end)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mechanisms": ()},
        {"mechanisms": ("kd_tree", "kd_tree")},
        {"mechanisms": ("nothing",)},
        {"epsilons": ()},
        {"epsilons": (1.0, 0.1)},
        {"epsilons": (0.0, 1.0)},
        {"repetitions": 0},
    ],
)
def test_an_order_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        SweepConfig(**wrong)  # type: ignore[arg-type]


def test_the_needed_epsilon_is_the_smallest_from_which_on_the_target_holds() -> None:
    (answer,) = epsilon_needed(drawn(0.5, 0.04, 0.03), "column", 0.05)
    assert answer.epsilon == 10
    assert answer.sentence == "KD tree: ε 10 is enough (at worst 4.0%); ε 1 is not."
    # One lucky epsilon below one that misses does not count.
    assert epsilon_needed(drawn(0.04, 0.5, 0.03), "column", 0.05)[0].epsilon == 100
    assert "smallest that was tried" in epsilon_needed(drawn(0.01, 0.01), "column", 0.05)[0].sentence


def test_a_target_that_nothing_reaches_is_said_not_to_be_reached() -> None:
    (answer,) = epsilon_needed(drawn(0.5, 0.4), "column", 0.05)
    assert answer.epsilon is None
    assert answer.sentence == "KD tree: no ε up to 10 is enough; there it is 20.0%, at worst 40.0%."
    assert "not measured" in epsilon_needed(drawn(0.5, 0.4), "type_one", 0.05)[0].sentence
    with pytest.raises(ParameterError, match="aspect"):
        epsilon_needed(drawn(0.5), "beauty", 0.05)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_a_laxer_target_never_needs_more_epsilon(highs: list[float], first: float, second: float) -> None:
    strict, lax = sorted([first, second])
    hard, easy = (epsilon_needed(drawn(*highs), "column", target)[0].epsilon for target in (strict, lax))
    assert hard is None or (easy is not None and easy <= hard)


def test_every_aspect_and_mechanism_by_default_is_known() -> None:
    assert set(SweepConfig().mechanisms) <= set(MECHANISMS)
    assert all(kind.question.endswith("?") or kind.question.endswith(".") for kind in ASPECTS.values())


def bivariate(rows: int, seed: int = 1) -> PrivateTable:
    example = EXAMPLES["bivariate_normal"]
    return PrivateTable(example.load(rows, seed=seed), example.schema)


def test_the_error_of_a_slope_is_that_of_least_squares_in_standard_deviations() -> None:
    first, second = bivariate(500), bivariate(300, seed=2)
    slopes = Slopes.of(first)
    assert slopes is not None
    outcome, (predictor,) = slopes.design.outcome.column, slopes.predictors
    (x, y), (u, v) = ((table.rows()[predictor], table.rows()[outcome]) for table in (first, second))
    steep = [float(np.polyfit(a, b, 1)[0]) * float(x.std(ddof=0) / y.std(ddof=0)) for a, b in ((x, y), (u, v))]
    assert slopes.error(second) == pytest.approx(abs(steep[0] - steep[1]), rel=1e-6)
    assert slopes.error(first) == pytest.approx(0, abs=1e-9)


def test_a_slope_that_the_synthetic_rows_cannot_tell_counts_as_lost() -> None:
    table = bivariate(200)
    slopes = Slopes.of(table)
    assert slopes is not None
    rows = table.rows()
    rows[slopes.predictors[0]] = 0.0
    assert slopes.error(PrivateTable(rows, table.schema)) == pytest.approx(float(np.abs(slopes.values).max()))
    constant = EXAMPLES["bivariate_normal"].schema.select(["x1"])
    assert Slopes.of(PrivateTable(rows[["x1"]], constant)) is None


def test_the_error_of_groups_by_size_is_the_median_of_plain_counts() -> None:
    first, second = bivariate(400), bivariate(400, seed=2)
    found = error_by_size(CellCodes.of(first), CellCodes.of(second))
    fine = [CellCodes.of(table).fine for table in (first, second)]
    sizes: dict[int, list[float]] = {}
    for names in (["x1"], ["x2"], ["x1", "x2"]):
        counts = [pd.Series(list(zip(*(part[name] for name in names), strict=True))).value_counts() for part in fine]
        for group, size in counts[0].items():
            power = 2 ** (int(size).bit_length() - 1)
            sizes.setdefault(power, []).append(abs(counts[1].get(group, 0) - size) / size)
    assert found == {size: pytest.approx(float(np.median(e))) for size, e in sizes.items() if len(e) >= 3}


def test_small_groups_pay_most() -> None:
    table = bivariate(1_000)
    config = SweepConfig(mechanisms=("kd_tree",), epsilons=(1.0,), repetitions=2, discoveries=False)
    found = sweep(table.rows(), table.schema, config)
    (point,) = found.points
    assert point.groups[min(point.groups)].low > 2 * point.groups[max(point.groups)].high
    assert found.group_references[1] > found.group_references[64]


def sized() -> SizeSweepResult:
    config = SizeSweepConfig(
        sweep=SweepConfig(mechanisms=("kd_grid",), epsilons=(0.03, 3.0), repetitions=1), rows=(100, 2000)
    )
    return sweep_sizes(EXAMPLE.load(), EXAMPLE.schema, config)


def test_more_rows_need_less_epsilon() -> None:
    found = sized()
    assert [one.rows for one in found.sweeps] == [100, 2000]
    assert set(found.aspects) >= {"column", "mmd"}
    target = found.sweeps[1].points[1].bands["column"].high
    assert found.answers("kd_grid", "column", target) == {100: None, 2000: 3.0}
    assert found.sentence("kd_grid", "column", target) == (
        f"{MECHANISMS['kd_grid'].title}: 100 rows are too few at any ε up to 3; 2,000 rows need ε 3."
    )


@pytest.mark.parametrize("rows", [(), (200, 100), (100, 100), (2, 100)])
def test_sizes_that_make_no_sense_are_refused(rows: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="rows"):
        SizeSweepConfig(sweep=CONFIG, rows=rows)
