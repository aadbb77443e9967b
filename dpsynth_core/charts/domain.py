"""Pictures of the declared domain: how large it is, and how well the declared ranges fit."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.charts.palette import GOOD, ORIGINAL, REFERENCE, WARNING
from dpsynth_core.charts.theme import Chart, new_figure, plain
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_PAIRS = 12


def pair_size_chart(schema: Schema, rows: int) -> Chart:
    """Cells of each pair of columns against the number of rows: beyond it, most cells are empty. Public facts only."""
    groups: list[tuple[str, ...]] = list(combinations(schema.names, 2)) or [schema.names]
    frame = pd.DataFrame({"columns": " × ".join(group), "cells": schema.domain_size(group)} for group in groups)
    frame = frame.sort_values("cells", ascending=False, ignore_index=True)
    frame["verdict"] = np.where(frame["cells"] > rows, "more cells than rows", "fewer cells than rows")
    shown = frame.head(MAX_PAIRS).iloc[::-1]
    # The vertical axis lists columns by name, so it needs no title.
    height = 110 + 26 * len(shown)
    figure = new_figure(x_title="number of cells (log scale)", y_title="", height=height, showlegend=True)
    hover = "%{y}<br>%{x:,} cells<extra></extra>"
    styles = {"more cells than rows": (WARNING, "diamond"), "fewer cells than rows": (GOOD, "circle")}
    for verdict, (colour, symbol) in styles.items():
        part = shown[shown["verdict"] == verdict]
        names, marker = [plain(text) for text in part["columns"]], {"color": colour, "symbol": symbol, "size": 11}
        figure.add_scatter(x=part["cells"], y=names, mode="markers", name=verdict, marker=marker, hovertemplate=hover)
    figure.add_vline(x=rows, line={"color": REFERENCE, "dash": "dash"})
    ends = [float(np.log10(max(int(size), 1))) for size in (*shown["cells"], rows)]
    # On the side of the line where there is room. On a log axis an annotation is placed by the exponent.
    side = (
        {"xanchor": "right", "xshift": -4} if 2 * ends[-1] > min(ends) + max(ends) else {"xanchor": "left", "xshift": 4}
    )
    label = {"text": f"{rows:,} rows", "showarrow": False, "yanchor": "bottom", **side}
    figure.add_annotation(x=ends[-1], y=0, yref="paper", **label)
    figure.update_xaxes(type="log", range=[min(ends) - 0.3, max(ends) + 0.3], **_log_ticks(min(ends), max(ends)))
    figure.update_yaxes(categoryorder="array", categoryarray=[plain(text) for text in shown["columns"]])
    sparse = int((frame["cells"] > rows).sum())
    alt = "Dot plot of cells per pair of columns on a log axis. "
    alt += f"{sparse} of {len(frame)} pairs have more cells than the {rows} rows."
    return Chart(figure=figure, table=frame, alt=alt)


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    """Powers of ten; within about one decade also twice and five times them, which Plotly itself writes too small."""
    if high - low > 1.5:
        return {"dtick": 1}
    exponents = range(math.floor(low) - 1, math.ceil(high) + 1)
    values = [lead * 10**exponent for exponent in exponents if exponent >= 0 for lead in (1, 2, 5)]
    return {"tickvals": values, "ticktext": [f"{value:,}" for value in values]}


def range_chart(table: PrivateTable) -> Chart | None:
    """How much of each declared range the rows use. Private: the ends of the data are single rows."""
    used = {column.name: _used(table, column) for column in table.schema if column.is_numeric}
    records = [(name, *ends) for name, ends in used.items() if ends is not None]
    if not records:
        return None
    frame = pd.DataFrame(records, columns=["column", "from", "to"])
    height = 80 + 26 * len(frame)
    figure = new_figure(x_title="share of the declared range", y_title="", height=height, showlegend=False)
    line, hover = {"color": ORIGINAL, "width": 4}, "%{y}: %{x:.0%}<extra></extra>"
    for name, *ends in reversed(records):
        y = [plain(name)] * 2
        figure.add_scatter(x=[0, 1], y=y, mode="lines", line={"color": REFERENCE, "width": 1}, hoverinfo="skip")
        figure.add_scatter(x=ends, y=y, mode="lines+markers", line=line, marker={"size": 10}, hovertemplate=hover)
    figure.update_xaxes(tickformat=".0%", range=[-0.03, 1.03])
    loosest = frame["column"].iloc[int((frame["to"] - frame["from"]).argmin())]
    alt = f"For {len(frame)} columns, the part of the declared range that the rows use. The loosest is {loosest}."
    return Chart(figure=figure, table=frame, alt=alt)


def _used(table: PrivateTable, column: Column) -> tuple[float, float] | None:
    """The part of the declared range between the smallest and the largest value, as shares of it."""
    positions = table.positions(column.name)
    values = positions.values if positions.missing is None else positions.values[~positions.missing]
    if not len(values):
        return None
    if column.lattice is None:
        low, high = float(column.lower), float(column.upper)  # type: ignore[arg-type]
    else:
        low, high = 0.0, float(max(column.lattice[1] - column.lattice[0], 1))
    return float((values.min() - low) / (high - low)), float((values.max() - low) / (high - low))
