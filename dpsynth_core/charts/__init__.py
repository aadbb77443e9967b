"""Plotly figures from results: one theme, and always a table and a sentence that say the same."""

from __future__ import annotations

from dpsynth_core.charts.columns import column_chart, compare_chart
from dpsynth_core.charts.domain import pair_size_chart, range_chart
from dpsynth_core.charts.p_values import groups_chart, reliability_chart, replay_chart
from dpsynth_core.charts.privacy import (
    attacker_certainty,
    domain_chart,
    error_chart,
    noise_chart,
    split_chart,
    split_words,
)
from dpsynth_core.charts.series import series_chart
from dpsynth_core.charts.theme import ORIGINAL, SYNTHETIC, Chart

__all__ = [
    "ORIGINAL",
    "SYNTHETIC",
    "Chart",
    "attacker_certainty",
    "column_chart",
    "compare_chart",
    "domain_chart",
    "error_chart",
    "groups_chart",
    "noise_chart",
    "pair_size_chart",
    "range_chart",
    "reliability_chart",
    "replay_chart",
    "series_chart",
    "split_chart",
    "split_words",
]
