"""Pictures of the declared domain: how large it is, and how well the declared ranges fit."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.charts.theme import GOOD, ORIGINAL, REFERENCE, WARNING, Chart, new_figure, plain
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MOST_PAIRS = 12


def pair_size_chart(schema: Schema, rows: int) -> Chart:
    """Cells of each pair of columns against the number of rows: beyond it, most cells are empty. Public facts only.

    The vertical axis lists columns by name, so it needs no title.
    """
    groups: list[tuple[str, ...]] = list(combinations(schema.names, 2)) or [schema.names]
    frame = pd.DataFrame(
        {
            "columns": [" × ".join(group) for group in groups],
            "cells": [schema.domain_size(group) for group in groups],
        }
    ).sort_values("cells", ascending=False, ignore_index=True)
    frame["verdict"] = np.where(frame["cells"] > rows, "more cells than rows", "fewer cells than rows")
    sparse = int((frame["cells"] > rows).sum())
    shown = frame.head(MOST_PAIRS).iloc[::-1]
    figure = new_figure(
        x_title="number of cells (log scale)", y_title="", height=110 + 26 * len(shown), showlegend=True
    )
    for verdict, colour, symbol in (
        ("more cells than rows", WARNING, "diamond"),
        ("fewer cells than rows", GOOD, "circle"),
    ):
        part = shown[shown["verdict"] == verdict]
        figure.add_scatter(
            x=part["cells"], y=[plain(text) for text in part["columns"]], mode="markers", name=verdict,
            marker={"color": colour, "symbol": symbol, "size": 11},
            hovertemplate="%{y}<br>%{x:,} cells<extra></extra>",
        )  # fmt: skip
    figure.add_vline(x=rows, line={"color": REFERENCE, "dash": "dash"})
    # On a log axis an annotation is placed by the exponent.
    figure.add_annotation(
        x=np.log10(rows), y=0, yref="paper", text=f"{rows:,} rows", showarrow=False, xanchor="left", xshift=4,
        yanchor="bottom",
    )  # fmt: skip
    ends = [float(np.log10(max(int(size), 1))) for size in (*shown["cells"], rows)]
    figure.update_xaxes(type="log", range=[min(ends) - 0.3, max(ends) + 0.3], **_log_ticks(min(ends), max(ends)))
    figure.update_yaxes(categoryorder="array", categoryarray=[plain(text) for text in shown["columns"]])
    return Chart(
        figure=figure,
        table=frame,
        alt=f"Dot plot of cells per pair of columns on a log axis. {sparse} of {len(frame)} pairs have more cells "
        f"than the {rows} rows.",
    )


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    """Powers of ten; within about one decade also twice and five times them, which Plotly itself writes too small."""
    if high - low > 1.5:
        return {"dtick": 1}
    exponents = range(math.floor(low) - 1, math.ceil(high) + 1)
    values = [lead * 10**exponent for exponent in exponents if exponent >= 0 for lead in (1, 2, 5)]
    return {"tickvals": values, "ticktext": [f"{value:,}" for value in values]}


def range_chart(table: PrivateTable) -> Chart | None:
    """How much of each declared range the rows use. Private: the ends of the data are single rows."""
    records = []
    for column in table.schema:
        if not column.is_numeric:
            continue
        positions = table.positions(column.name)
        values = positions.values if positions.missing is None else positions.values[~positions.missing]
        if not len(values):
            continue
        points = column.lattice
        low, width = (
            (float(column.lower), float(column.upper) - float(column.lower))  # type: ignore[arg-type]
            if points is None
            else (0.0, float(max(points[1] - points[0], 1)))
        )
        records.append((column.name, (values.min() - low) / width, (values.max() - low) / width))
    if not records:
        return None
    frame = pd.DataFrame(records, columns=["column", "from", "to"])
    figure = new_figure(
        x_title="share of the declared range", y_title="", height=80 + 26 * len(frame), showlegend=False
    )
    for name, start, end in reversed(records):
        y = [plain(name)] * 2
        figure.add_scatter(x=[0, 1], y=y, mode="lines", line={"color": REFERENCE, "width": 1}, hoverinfo="skip")
        figure.add_scatter(
            x=[start, end], y=y, mode="lines+markers", line={"color": ORIGINAL, "width": 4}, marker={"size": 10},
            hovertemplate="%{y}: %{x:.0%}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(tickformat=".0%", range=[-0.03, 1.03])
    loose = min(records, key=lambda record: record[2] - record[1])[0]
    return Chart(
        figure=figure,
        table=frame,
        alt=f"For {len(frame)} columns, the part of the declared range that the rows use. The loosest is {loose}.",
    )
