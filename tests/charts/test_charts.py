"""Every picture has a title on each axis, text that can be read, a table and a sentence that say the same."""

from __future__ import annotations

from functools import cache

import pytest

import dpsynth_core as dp
from dpsynth_core.charts.columns import column_chart, compare_chart
from dpsynth_core.charts.domain import pair_size_chart, range_chart
from dpsynth_core.charts.palette import ORIGINAL, SYNTHETIC, SYNTHETIC_PATTERN
from dpsynth_core.charts.privacy import domain_chart, error_chart, noise_chart, split_chart
from dpsynth_core.charts.runs import series_chart
from dpsynth_core.charts.theme import FONT_SIZE, Chart
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Point, Series, extend
from dpsynth_core.table.simulate import simulate_table
from tests.tables.schemas import MARKUP_SCHEMA

HOSTILE = "<b>x</b>"
LISTS = {"pairs", "ranges", "split"}
"""Their vertical axis lists names, or is one bar."""
NAMES = [
    *("domain", "errors", "noise", "series", *sorted(LISTS)),
    *(f"{kind} {column}" for kind in ("column", "compared") for column in range(len(MARKUP_SCHEMA.names))),
]
every_chart = pytest.mark.parametrize("name", NAMES)


def plan(epsilon: float = 1.0) -> Plan:
    return MECHANISMS["kd_tree"].suggest(MARKUP_SCHEMA, 200, 1).plan(MARKUP_SCHEMA, 200, Budget.of(epsilon))


def line(count: int = 3) -> Series:
    lines: dict[str, Series] = {}
    extend(lines, tuple(Point(series=HOSTILE, x=i, y=i * i, along="round") for i in range(count)))
    return lines[HOSTILE]


@cache
def charts() -> dict[str, Chart]:
    rows, others = (simulate_table(MARKUP_SCHEMA, 200, seed=seed) for seed in (1, 2))
    private = dp.PrivateTable(rows, MARKUP_SCHEMA)
    ranges = range_chart(private)
    assert ranges is not None
    made = {
        "pairs": pair_size_chart(MARKUP_SCHEMA, 200),
        "ranges": ranges,
        "domain": domain_chart(MARKUP_SCHEMA, plan().cuts),
        "split": split_chart(plan()),
        "errors": error_chart({epsilon: plan(epsilon) for epsilon in (0.1, 1.0, 10.0)}, 1.0, 200),
        "noise": noise_chart(2.0, 10),
        "series": series_chart(line()),
    }
    for place, name in enumerate(MARKUP_SCHEMA.names):
        made[f"column {place}"] = column_chart(private, name)
        made[f"compared {place}"] = compare_chart(rows, others, MARKUP_SCHEMA, name)
    return made


def test_every_chart_is_looked_at() -> None:
    assert set(charts()) == set(NAMES)


@every_chart
def test_a_chart_says_the_same_in_words_and_as_a_table(name: str) -> None:
    chart = charts()[name]
    assert chart.alt.endswith(".")
    assert len(chart.alt) > 20
    assert len(chart.table) > 0


@every_chart
def test_axes_are_named_and_text_can_be_read(name: str) -> None:
    layout = charts()[name].figure.layout
    assert layout.font.size == FONT_SIZE >= 12
    assert layout.xaxis.title.text
    assert layout.yaxis.title.text or name in LISTS
    for axis in (layout.xaxis, layout.yaxis):
        # Between the powers of ten, Plotly writes small digits unless it is told how far apart labels stand.
        assert axis.type != "log" or axis.dtick == 1 or axis.ticktext


@every_chart
def test_text_from_a_file_stays_text(name: str) -> None:
    assert "<b>" not in charts()[name].figure.to_json().replace("\\u003c", "<")
    assert "<u>" not in charts()[name].figure.to_json().replace("\\u003c", "<")


@pytest.mark.parametrize("place", range(len(MARKUP_SCHEMA.names)))
def test_original_and_synthetic_differ_by_colour_and_pattern(place: int) -> None:
    first, second = charts()[f"compared {place}"].figure.data
    assert (first.marker.color, first.marker.pattern.shape) == (ORIGINAL, "")
    assert (second.marker.color, second.marker.pattern.shape) == (SYNTHETIC, SYNTHETIC_PATTERN)


def test_the_number_of_rows_stands_clear_of_the_legend() -> None:
    layout = charts()["pairs"].figure.layout
    (label,) = layout.annotations
    assert label.text == "200 rows"
    assert label.y < layout.legend.y


def test_a_line_ends_where_it_is() -> None:
    chart = series_chart(line(4))
    assert list(chart.table.columns) == ["round", HOSTILE]
    assert "At 3 it is 9." in chart.alt
