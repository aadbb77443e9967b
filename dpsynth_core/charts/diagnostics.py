"""The pictures of every diagnostic, for the Diagnostics page and the review report alike. Private, like the results.

A diagnostic needs no entry here: its measures are drawn as dots with their intervals. One that has more to show gets a
line in ``PICTURES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from dpsynth_core.charts.classification import roc_area_chart
from dpsynth_core.charts.coefficients import coefficient_chart
from dpsynth_core.charts.columns import compare_chart
from dpsynth_core.charts.overlays import box_chart, correlation_chart, ecdf_chart, pair_chart
from dpsynth_core.charts.scores import distance_chart, dot_chart, giveaway_chart, pair_heat_map
from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics import Measure, Result
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

Overview: TypeAlias = Callable[[Mapping[str, Result], Schema], Sequence[Chart | None]]
"""From the same diagnostic's results for up to four releases, by the releases' names."""
Detail: TypeAlias = Callable[[Measure, PrivateTable, pd.DataFrame], Sequence[Chart]]
"""From one measure, the original and the synthetic table; the most telling chart first."""


@dataclass(frozen=True, kw_only=True)
class Pictures:
    overview: Overview = lambda results, _: [dot_chart(results)]
    detail: Detail | None = None
    item: str = ""
    """What a measure is about, where it can be drawn in full: a label for choosing one."""
    in_report: int = 0
    """Measures that the review report draws in full, worst first."""


def overview(results: Mapping[str, Result], schema: Schema) -> list[Chart]:
    """The pictures of one diagnostic for up to four releases; none where nothing could be computed."""
    computed = {
        label: result
        for label, result in results.items()
        if any(measure.value is not None for measure in (result.headline, *result.items))
    }
    if not computed:
        return []
    draw = pictures_of(next(iter(computed.values())).key).overview
    return [chart for chart in draw(computed, schema) if chart is not None]


def report_pictures(result: Result, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart]:
    """The pictures of one result in the review report: the overview, then the worst measures in full."""
    charts, chosen = overview({"synthetic": result}, original.schema), pictures_of(result.key)
    if charts and chosen.detail is not None:
        charts += [chosen.detail(item, original, synthetic)[0] for item in result.items[: chosen.in_report]]
    return charts


def pictures_of(key: str) -> Pictures:
    return PICTURES.get(key, Pictures())


def _column(measure: Measure, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart]:
    schema, rows, name = original.schema, original.rows(), measure.name
    charts = [compare_chart(rows, synthetic, schema, name)]
    if schema[name].is_numeric:
        charts.append(ecdf_chart(rows, synthetic, schema, name))
    if schema[name].kind in ("continuous", "integer"):
        charts.append(box_chart(rows, synthetic, schema, name))
    return charts


def _pairs(results: Mapping[str, Result], schema: Schema) -> list[Chart | None]:
    """A heat map and correlations of the first release; a dot plot compares several."""
    result = next(iter(results.values()))
    names = [name for name in schema.names if any(name in item.columns for item in result.items)]
    dots = [dot_chart(results)] if len(results) > 1 else []
    return [*dots, pair_heat_map(result, names), correlation_chart(result)]


def _pair(measure: Measure, original: PrivateTable, synthetic: pd.DataFrame) -> list[Chart]:
    return [pair_chart(original, synthetic, *measure.columns)]


def _pmse(results: Mapping[str, Result], _: Schema) -> list[Chart | None]:
    return [dot_chart(results), giveaway_chart(next(iter(results.values())))]


PICTURES: dict[str, Pictures] = {
    "marginals": Pictures(detail=_column, item="Column", in_report=3),
    "pairs": Pictures(overview=_pairs, detail=_pair, item="Pair"),
    "pmse": Pictures(overview=_pmse),
    "mmd": Pictures(overview=lambda results, _: [distance_chart(results)]),
    "regression": Pictures(overview=lambda results, _: [coefficient_chart(results)]),
    "classification": Pictures(overview=lambda results, _: [roc_area_chart(results)]),
}
