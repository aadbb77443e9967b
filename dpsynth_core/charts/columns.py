"""A picture of one column: how many rows fall into each declared cell."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.cells import MISSING, bar_geometry, cell_names, drawable
from dpsynth_core.charts.theme import ORIGINAL, REFERENCE, Chart, new_figure, plain
from dpsynth_core.column import Column
from dpsynth_core.private import PrivateTable

MOST_LABELS = 30


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
