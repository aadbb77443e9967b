"""Which pictures stand beside a diagnostic's numbers in the review report. Private, like the numbers."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from dpsynth_core.charts.coefficients import coefficient_chart
from dpsynth_core.charts.columns import compare_chart
from dpsynth_core.charts.overlays import correlation_chart
from dpsynth_core.charts.scores import distance_chart, dot_chart, giveaway_chart, pair_heat_map
from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics import Result
from dpsynth_core.table.private_table import PrivateTable

WORST_COLUMNS = 3
"""Columns drawn in full."""
LABEL = "synthetic"


def figures(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart]:
    """The pictures of one result; none where nothing could be computed."""
    if result.headline.value is None:
        return []
    draw = _PICTURES.get(result.key, _dots)
    return [chart for chart in draw(result, original, synthetic) if chart is not None]


def _dots(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart | None]:  # noqa: ARG001
    return [dot_chart({LABEL: result})]


def _columns(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart | None]:
    """Every column's score, and the worst columns in full."""
    rows, worst = original.rows(), [item.name for item in result.items[:WORST_COLUMNS]]
    return [dot_chart({LABEL: result}), *(compare_chart(rows, synthetic, original.schema, name) for name in worst)]


def _pairs(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart | None]:  # noqa: ARG001
    names = [name for name in original.schema.names if any(name in item.columns for item in result.items)]
    return [pair_heat_map(result, names) if names else None, correlation_chart(result)]


def _propensity(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart | None]:  # noqa: ARG001
    return [dot_chart({LABEL: result}, log=True), giveaway_chart(result)]


def _distance(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart | None]:  # noqa: ARG001
    return [distance_chart({LABEL: result})]


def _coefficients(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart | None]:  # noqa: ARG001
    return [coefficient_chart({LABEL: result})]


_PICTURES: dict[str, Callable[[Result, PrivateTable, pd.DataFrame], list[Chart | None]]] = {
    "marginals": _columns,
    "pairs": _pairs,
    "pmse": _propensity,
    "mmd": _distance,
    "regression": _coefficients,
}
