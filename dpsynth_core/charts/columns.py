"""One column: how many rows fall into each declared cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.cells import MISSING, axis_title, bar_geometry, cell_names, cell_shares, tick_text
from dpsynth_core.charts.palette import ORIGINAL, REFERENCE, TABLES
from dpsynth_core.charts.theme import Chart, new_figure, plain
from dpsynth_core.diagnostics.total_variation import coarse
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_BARS = 60
COMPARED_CELLS = MAX_LABELS = 30
MAX_TICKS = 5
HOVER = "%{customdata}<br>%{y} rows<extra></extra>"


def column_chart(table: PrivateTable, name: str) -> Chart:
    """Rows by cell of one column, with a bar of its own for missing values. Private: for internal eyes."""
    column = coarse(table.schema[name], MAX_BARS)
    bins = {name: column.levels} if column.is_numeric else None
    rows = table.counts([name], bins=bins).dense()
    frame = pd.DataFrame({"value": cell_names(column), "rows": rows})
    figure = new_figure(x_title=axis_title(column), y_title="rows", height=220, showlegend=False)
    draw = _draw_range if column.is_numeric else _draw_labels
    draw(figure, column, frame)
    fullest = frame["value"].iloc[int(rows.argmax())]
    alt = f"Bar chart of {table.n} rows by {name}. The fullest of {len(frame)} cells is {fullest}."
    return Chart(figure=figure, table=frame, alt=alt)


def compare_chart(
    original: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, name: str, *, first: str = "original"
) -> Chart:
    """Share of rows by cell, two tables side by side in the two colours that they have everywhere."""
    column = coarse(schema[name], COMPARED_CELLS)
    frame = pd.DataFrame({"value": cell_names(column)})
    frame[first], frame["synthetic"] = cell_shares(original, column), cell_shares(synthetic, column)
    if len(frame) > MAX_LABELS:
        frame = frame.loc[frame[first].nlargest(MAX_LABELS).index.sort_values()]
    figure = new_figure(x_title=axis_title(column), y_title="share of rows", height=240, barmode="group")
    add_share_bars(figure, {first: frame[first], "synthetic": frame["synthetic"]}, list(frame["value"]))
    step = max(1, -(-len(frame) // MAX_TICKS)) if column.is_numeric else 1
    show_ticks(figure, column, list(frame["value"]), step)
    figure.update_yaxes(tickformat=".0%")
    apart = float((frame[first] - frame["synthetic"]).abs().sum() / 2)
    alt = f"Shares of rows by {name}: the two tables differ by {apart:.0%} of rows."
    return Chart(figure=figure, table=frame, alt=alt)


def add_share_bars(figure: go.Figure, shares: dict[str, Any], names: Sequence[str], **where: Any) -> None:
    """Bars of two tables, by the name of the first and of the second, over the indices of their cells."""
    for (label, heights), (_, colour, pattern) in zip(shares.items(), TABLES, strict=True):
        figure.add_bar(
            x=list(range(len(names))),
            y=heights,
            name=label,
            customdata=[plain(name) for name in names],
            marker={"color": colour, "pattern": {"shape": pattern}},
            hovertemplate="%{customdata}<br>%{y:.1%}<extra>" + label + "</extra>",
            **where,
        )


def show_ticks(figure: go.Figure, column: Column, names: Sequence[str], step: int) -> None:
    """Label every so many cells. Labels are set as ticks, so that "1" or a date is never mistaken for a number."""
    ticks = list(range(0, len(names), step))
    figure.update_xaxes(tickvals=ticks, ticktext=[tick_text(column, names[i]) for i in ticks])


def _draw_range(figure: go.Figure, column: Column, frame: pd.DataFrame) -> None:
    inside = frame[frame["value"] != MISSING]
    centres, widths = bar_geometry(column)
    bars = {"x": centres, "y": inside["rows"], "width": widths, "customdata": inside["value"]}
    figure.add_bar(marker={"color": ORIGINAL}, hovertemplate=HOVER, **bars)
    missing = int(frame.loc[frame["value"] == MISSING, "rows"].sum())
    if missing:
        figure.update_layout(xaxis={"domain": [0, 0.86]}, xaxis2={"domain": [0.9, 1], "anchor": "y"})
        marker, names = {"color": REFERENCE, "pattern": {"shape": "x"}}, ["missing"]
        figure.add_bar(x=names, y=[missing], xaxis="x2", marker=marker, customdata=names, hovertemplate=HOVER)


def _draw_labels(figure: go.Figure, column: Column, frame: pd.DataFrame) -> None:
    shown = frame.nlargest(MAX_LABELS, "rows").sort_index() if len(frame) > MAX_LABELS else frame
    missing = shown["value"] == MISSING
    marker = {"color": np.where(missing, REFERENCE, ORIGINAL), "pattern": {"shape": np.where(missing, "x", "")}}
    bars = {"x": list(range(len(shown))), "y": shown["rows"], "customdata": [plain(value) for value in shown["value"]]}
    figure.add_bar(marker=marker, hovertemplate=HOVER, **bars)
    show_ticks(figure, column, list(shown["value"]), 1)
