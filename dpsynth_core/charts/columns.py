"""A picture of one column: how many rows fall into each declared cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.cells import MISSING, bar_geometry, cell_names, drawable
from dpsynth_core.charts.theme import ORIGINAL, REFERENCE, SYNTHETIC, SYNTHETIC_PATTERN, Chart, new_figure, plain
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

COMPARED_CELLS = MOST_LABELS = 30
MOST_TICKS = 6


def column_chart(table: PrivateTable, name: str) -> Chart:
    """Rows by cell of one column, with a bar of its own for missing values. Private: for internal eyes."""
    column = drawable(table.schema[name])
    bins = {name: column.levels} if column.is_numeric else None
    rows = table.counts([name], bins=bins).dense()
    frame = pd.DataFrame({"value": cell_names(column), "rows": rows})
    draw = _numeric_bars if column.is_numeric else _label_bars
    fullest = frame["value"].iloc[int(rows.argmax())]
    return Chart(
        figure=draw(column, frame),
        table=frame,
        alt=f"Bar chart of {table.n} rows by {name}. The fullest of {len(frame)} cells is {fullest}.",
    )


def compare_chart(
    original: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, name: str, *, first: str = "original"
) -> Chart:
    """Share of rows by cell, two tables side by side in the two colours that they have everywhere."""
    column = drawable(schema[name], most=COMPARED_CELLS)
    codec, names = codec_for(column), cell_names(column)
    shares = {}
    for label, table in ((first, original), ("synthetic", synthetic)):
        codes = codec.codes(codec.positions(table[name]))
        shares[label] = np.bincount(codes, minlength=len(names)) / len(table)
    frame = pd.DataFrame({"value": names, **shares})
    if len(frame) > MOST_LABELS:
        frame = frame.loc[frame[first].nlargest(MOST_LABELS).index.sort_values()]
    figure = new_figure(x_title=axis_title(column), y_title="share of rows", height=240, barmode="group")
    for label, colour, shape in ((first, ORIGINAL, ""), ("synthetic", SYNTHETIC, SYNTHETIC_PATTERN)):
        figure.add_bar(
            x=list(range(len(frame))), y=frame[label], name=label, customdata=[plain(v) for v in frame["value"]],
            marker={"color": colour, "pattern": {"shape": shape}},
            hovertemplate="%{customdata}<br>%{y:.1%}<extra>" + label + "</extra>",
        )  # fmt: skip
    step = max(1, -(-len(frame) // MOST_TICKS)) if column.is_numeric else 1
    ticks = list(range(0, len(frame), step))
    figure.update_xaxes(tickvals=ticks, ticktext=[_tick(column, frame["value"].iloc[i]) for i in ticks])
    figure.update_yaxes(tickformat=".0%")
    apart = float((frame[first] - frame["synthetic"]).abs().sum() / 2)
    alt = f"Shares of rows by {name}: the two tables differ by {apart:.0%} of rows."
    return Chart(figure=figure, table=frame, alt=alt)


def _tick(column: Column, name: str) -> str:
    """A label; of an interval, where it begins, in few digits."""
    if not column.is_numeric or name == MISSING:
        return plain(name)
    start = name.split(" to ", maxsplit=1)[0]
    return start if column.kind in ("date", "integer") else f"{float(start):.3g}"


def axis_title(column: Column) -> str:
    """The column's name with its unit."""
    return plain(column.name) + (f" ({plain(column.unit)})" if column.unit else "")


def _numeric_bars(column: Column, frame: pd.DataFrame) -> go.Figure:
    figure = new_figure(x_title=axis_title(column), y_title="rows", height=220, showlegend=False)
    inside = frame[frame["value"] != MISSING]
    centres, widths = bar_geometry(column)
    figure.add_bar(
        x=centres, y=inside["rows"], width=widths, marker={"color": ORIGINAL}, customdata=inside["value"],
        hovertemplate="%{customdata}<br>%{y} rows<extra></extra>",
    )  # fmt: skip
    missing = int(frame.loc[frame["value"] == MISSING, "rows"].sum())
    if missing:
        figure.update_layout(xaxis={"domain": [0, 0.86]}, xaxis2={"domain": [0.9, 1], "anchor": "y"})
        figure.add_bar(
            x=["missing"], y=[missing], xaxis="x2", marker={"color": REFERENCE, "pattern": {"shape": "x"}},
            hovertemplate="missing<br>%{y} rows<extra></extra>",
        )  # fmt: skip
    return figure


def _label_bars(column: Column, frame: pd.DataFrame) -> go.Figure:
    shown = frame.nlargest(MOST_LABELS, "rows").sort_index() if len(frame) > MOST_LABELS else frame
    figure = new_figure(x_title=axis_title(column), y_title="rows", height=220, showlegend=False)
    colours = [REFERENCE if value == MISSING else ORIGINAL for value in shown["value"]]
    shapes = ["x" if value == MISSING else "" for value in shown["value"]]
    figure.add_bar(
        x=list(range(len(shown))), y=shown["rows"], marker={"color": colours, "pattern": {"shape": shapes}},
        customdata=[plain(value) for value in shown["value"]],
        hovertemplate="%{customdata}<br>%{y} rows<extra></extra>",
    )  # fmt: skip
    # Labels are set as ticks, so that the text "1" or a date is never mistaken for a number.
    figure.update_xaxes(tickvals=list(range(len(shown))), ticktext=[plain(value) for value in shown["value"]])
    return figure


def first_value(column: Column, name: str) -> str:
    """Where a cell begins, as a label of an axis."""
    return plain(name.split(" to ", maxsplit=1)[0] if column.is_numeric else name)
