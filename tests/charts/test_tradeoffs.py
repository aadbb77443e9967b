"""Pictures of trade-offs: readable, spoken, and true to the mathematics behind them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.charts.palette import REFERENCE, mechanism_style
from dpsynth_core.charts.sweeps import (
    enough_chart,
    group_error_chart,
    moving_chart,
    multiples_chart,
    sweep_chart,
)
from dpsynth_core.charts.theme import FONT_SIZE, Chart
from dpsynth_core.charts.tradeoffs import attacker_chart, noisy_counts_chart, partition_chart, true_positive_rate
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.simulate import simulate_table
from dpsynth_core.teaching.noise_examples import grown_tree, noisy_histogram
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import SweepConfig
from dpsynth_core.teaching.sweep.results import SweepResult
from dpsynth_core.teaching.sweep.run import sweep
from dpsynth_core.teaching.sweep.sizes import SizeSweepConfig, sweep_sizes
from tests.tables.schemas import MARKUP_SCHEMA

ROWS = simulate_table(MARKUP_SCHEMA, 200, seed=1)
GRID = SweepConfig(mechanisms=("perturbed_histogram", "kd_grid"), epsilons=(0.1, 1.0, 10.0), repetitions=2)
COLUMNS = range(len(MARKUP_SCHEMA.names))
NAMES = [
    *(f"sweep {aspect}" for aspect in ASPECTS),
    *(f"{kind} {column}" for kind in ("multiples", "moving", "noise") for column in COLUMNS),
    *("sweep", "groups", "enough", "attacker", "measured", "tree"),
]
every_chart = pytest.mark.parametrize("name", NAMES)


@cache
def swept() -> SweepResult:
    return sweep(ROWS, MARKUP_SCHEMA, GRID)


@cache
def charts() -> dict[str, Chart]:
    found = swept()
    tables = [(point.epsilon, point.table) for point in found.points[:3] if point.table is not None]
    made = {f"sweep {aspect}": sweep_chart(found, [aspect]) for aspect in found.aspects}
    made |= {"sweep": sweep_chart(found, found.aspects), "groups": group_error_chart(found, "kd_grid")}
    order = SizeSweepConfig(
        sweep=SweepConfig(mechanisms=("kd_grid",), epsilons=(0.1, 10.0), repetitions=1), rows=(100, 200)
    )
    made["enough"] = enough_chart(sweep_sizes(ROWS, MARKUP_SCHEMA, order), "kd_grid", "column", 0.1)
    for place, name in enumerate(MARKUP_SCHEMA.names):
        made[f"multiples {place}"] = multiples_chart(ROWS, tables, MARKUP_SCHEMA, name)
        made[f"moving {place}"] = moving_chart(ROWS, dict(tables), MARKUP_SCHEMA, name, 10.0)
        drawn = noisy_histogram(ROWS, MARKUP_SCHEMA, name, epsilon=1, seed=1)
        made[f"noise {place}"] = noisy_counts_chart(drawn.true, drawn.noisy, drawn.column, 1.0)
    tree = grown_tree(ROWS, MARKUP_SCHEMA, MARKUP_SCHEMA.names[:2], epsilon=1, seed=1)
    measured = attacker_chart(1.0, measured=(np.arange(50.0), np.arange(50.0) - 5))
    return made | {
        "attacker": attacker_chart(1.0, 1e-6),
        "measured": measured,
        "tree": partition_chart(tree, 1.0, ROWS),
    }


def test_every_chart_is_looked_at() -> None:
    assert set(charts()) == set(NAMES)


@every_chart
def test_a_chart_is_named_readable_and_says_the_same_in_words_and_as_a_table(name: str) -> None:
    chart = charts()[name]
    layout = chart.figure.layout
    assert chart.alt.endswith(".")
    assert len(chart.alt) > 20
    assert len(chart.table) > 0
    assert layout.font.size == FONT_SIZE >= 12
    assert any(axis.title.text for axis in chart.figure.select_xaxes())
    assert layout.yaxis.title.text
    for axis in (layout.xaxis, layout.yaxis):
        assert axis.type != "log" or axis.dtick == 1


@every_chart
def test_text_from_a_file_stays_text(name: str) -> None:
    drawn = charts()[name].figure.to_json().replace("\\u003c", "<")
    assert "<b>" not in drawn
    assert "<u>" not in drawn
    assert "<i>" not in drawn


def test_every_mechanism_has_a_line_of_its_own() -> None:
    styles = [mechanism_style(key) for key in MECHANISMS]
    shapes = {(style["line"]["dash"], style["marker"]["symbol"]) for style in styles}
    colours = {style["line"]["color"] for style in styles}
    assert len(shapes) == len(styles), "without colour, too"
    assert len(colours) >= min(9, len(styles))


def test_a_mechanism_registered_later_is_drawn_without_another_edit() -> None:
    toy = type("Toy", (MECHANISMS["kd_grid"],), {"key": "toy", "title": "Toy"})
    config = SweepConfig(mechanisms=("kd_grid",), epsilons=(0.1, 1.0))
    measured = swept()
    with MECHANISMS.register("toy", toy):
        points = tuple(replace(point, mechanism="toy") for point in measured.line("kd_grid", "column"))
        result = replace(
            measured, config=replace(config, mechanisms=("kd_grid", "toy")), points=measured.points + points
        )
        chart = sweep_chart(result, ["column"])
        drawn = {trace.name: (trace.line.color, trace.line.dash, trace.marker.symbol) for trace in chart.figure.data}
    assert len(set(chart.table["mechanism"])) == 2
    assert drawn["Toy"] != drawn[MECHANISMS["kd_grid"].title]


def test_every_curve_stands_beside_what_a_fresh_sample_would_show() -> None:
    found = swept()
    for aspect in found.aspects:
        chart = charts()[f"sweep {aspect}"]
        levels = {trace.y[0] for trace in chart.figure.data if trace.line.color == REFERENCE} - {None}
        # Missing a real difference has no such level: it depends on the size of the groups.
        assert levels == (set() if aspect == "type_two" else {found.references[aspect]})
        assert set(chart.table["a fresh sample"].dropna()) == levels
        assert ("a fresh sample" in chart.alt) == bool(levels)
        assert set(chart.table["runs"]) == ({GRID.analysts} if ASPECTS[aspect].simulated else {2})


def test_all_multiples_share_one_scale() -> None:
    figure = charts()["multiples 0"].figure
    assert len({axis.range for axis in figure.select_yaxes()}) == 1


def test_a_line_passes_through_what_was_measured() -> None:
    found = swept()
    chart = sweep_chart(found, ["column"])
    title = MECHANISMS["kd_grid"].title
    (line,) = (trace for trace in chart.figure.data if trace.name == title and trace.customdata is not None)
    assert list(line.y) == [point.bands["column"].middle for point in found.line("kd_grid", "column")]


@settings(deadline=None)
@given(st.floats(0, 5), st.integers(-40, 40))
def test_no_test_on_a_noisy_count_beats_the_bound(epsilon: float, cut: int) -> None:
    k = np.arange(-400, 401)
    law = np.exp(-epsilon * np.abs(k))
    law /= law.sum()
    false = float(law[k >= cut].sum())
    caught = float(law[k + 1 >= cut].sum())  # the count is one higher with the person
    assert caught <= true_positive_rate(false, epsilon) + 1e-6 + float(law[0] + law[-1])


@settings(deadline=None)
@given(st.floats(0, 10), st.floats(0, 1))
def test_randomised_response_with_failures_reaches_the_bound(epsilon: float, delta: float) -> None:
    """With chance delta the truth is shown outright; otherwise a coin answers: the worst that is allowed."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    false, caught = (1 - delta) * (1 - truth), delta + (1 - delta) * truth
    assert true_positive_rate(false, epsilon, delta) == pytest.approx(caught, abs=1e-9)


def test_noise_on_a_histogram_has_the_stated_size() -> None:
    """DLap(b) has variance 2 a / (1 - a)^2 with a = exp(-1/b), here b = 2; five standard errors."""
    a = math.exp(-1 / 2)
    variance = 2 * a / (1 - a) ** 2
    drawn = [noisy_histogram(ROWS, MARKUP_SCHEMA, "size", epsilon=1, seed=seed) for seed in range(60)]
    squares = np.concatenate([(one.noisy - one.true) ** 2 for one in drawn]).astype(float)
    assert squares.mean() == pytest.approx(variance, abs=5 * squares.std() / math.sqrt(len(squares)))
    assert all(int(one.true.sum()) == len(ROWS) for one in drawn)


def test_rows_of_the_original_lie_behind_the_boxes_and_within_them() -> None:
    example = EXAMPLES["mixture"]
    rows = example.load(500)
    tree = grown_tree(rows, example.schema, example.schema.names, epsilon=10, seed=1)
    bare, chart = partition_chart(tree, 10.0), partition_chart(tree, 10.0, rows)
    points = chart.figure.data[0]
    assert len(chart.figure.data) == len(bare.figure.data) + 1
    assert points.name == "rows of the original"
    assert len(points.x) == 500
    # Where a row is drawn is where its values are on the axis.
    column = example.schema["x1"]
    expected = (rows["x1"].clip(column.lower, column.upper) - column.lower) / (column.upper - column.lower)
    np.testing.assert_allclose(points.x, expected, atol=1e-3)
    assert "rows of the original" in chart.alt
    assert "original" not in bare.alt
