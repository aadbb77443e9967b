"""Original and synthetic rows in one picture. Private: it shows the original."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpsynth_core.arrays import FloatArray
from dpsynth_core.charts.cells import cell_names, drawable
from dpsynth_core.charts.columns import axis_title
from dpsynth_core.charts.theme import (
    CORRELATIONS,
    DIFFERENCES,
    FONT_SIZE,
    ORIGINAL,
    SHARES,
    SYNTHETIC,
    Chart,
    new_figure,
    plain,
)
from dpsynth_core.diagnostics.base import Result
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MOST_POINTS = 400
"""Steps of a drawn distribution function."""


def correlation_chart(result: Result) -> Chart | None:
    """Correlation matrices of original and synthetic table side by side, and their difference; None without pairs."""
    table = result.tables["correlations"]
    names = list(dict.fromkeys([*table["first"], *table["second"]]))
    if not names:
        return None
    place = {name: i for i, name in enumerate(names)}
    grids = []
    for which in ("original", "synthetic", "difference"):
        grid = np.full((len(names), len(names)), np.nan)
        for row in table.to_dict("records"):
            grid[place[row["second"]], place[row["first"]]] = row[which]
        grids.append(grid)
    labels = [plain(name) for name in names]
    figure = _triptych(grids, labels, labels, unit="correlation", most=1, widest=1)
    figure.update_xaxes(title={"text": "column"})
    figure.update_yaxes(title={"text": "column"}, col=1)
    alt = "Correlations in the original, in the synthetic table, and their difference."
    known = table[table["difference"].notna()]
    if len(known):
        first, second, change = known.iloc[known["difference"].abs().argmax()][["first", "second", "difference"]]
        alt += f" The largest change is {change:+.2f}, for {first} and {second}."
    return Chart(figure=figure, table=table, alt=alt)


def pair_chart(original: PrivateTable, synthetic: pd.DataFrame, first: str, second: str, *, bins: int = 12) -> Chart:
    """Shares of rows by two columns: original, synthetic, difference."""
    columns = [drawable(original.schema[name], most=bins) for name in (first, second)]
    schema = original.schema.select([first, second])
    tables = (original.select([first, second]), PrivateTable(synthetic, schema))
    shares = [_joint_shares(table, columns) for table in tables]
    labels = [_ticks(column) for column in columns]
    top = float(max(share.max() for share in shares))
    gap = shares[1] - shares[0]
    figure = _triptych(
        [*shares, gap], labels[1], labels[0], unit="share", most=top, widest=max(float(np.abs(gap).max()), top / 2)
    )
    figure.update_xaxes(title={"text": axis_title(columns[1])})
    figure.update_yaxes(title={"text": axis_title(columns[0])}, col=1)
    index = [(a, b) for a in cell_names(columns[0]) for b in cell_names(columns[1])]
    frame = pd.DataFrame(index, columns=[first, second if second != first else f"{second} "])
    frame["original"], frame["synthetic"], frame["difference"] = (grid.ravel() for grid in (*shares, gap))
    apart = float(np.abs(gap).sum() / 2)
    alt = f"Shares of rows by {first} and {second} in the two tables, which differ by {apart:.0%} of rows."
    return Chart(figure=figure, table=frame, alt=alt)


def _ticks(column: Column) -> list[str]:
    """Short names of cells: where a range begins, or the label."""
    names = cell_names(column)
    return [plain(name.split(" to ")[0] if column.is_numeric else name) for name in names]


def _joint_shares(table: PrivateTable, columns: Sequence[Column]) -> FloatArray:
    codes = [codec_for(column).codes(table.positions(column.name)) for column in columns]
    shape = (columns[0].size, columns[1].size)
    counts = np.bincount(codes[0] * shape[1] + codes[1], minlength=shape[0] * shape[1])
    return np.asarray(counts.reshape(shape) / table.n)


def _triptych(
    grids: Sequence[FloatArray], x: Sequence[str], y: Sequence[str], *, unit: str, most: float, widest: float
) -> go.Figure:
    """Original, synthetic and difference on shared axes; the first two share one colour scale.

    Args:
        grids: The three matrices.
        x: Names of their columns.
        y: Names of their rows.
        unit: What the first two show: "correlation" (from -most to most) or a share (from 0 to most).
        most: End of their scale.
        widest: End of the difference's scale, to both sides.
    """
    titles = ["original", "synthetic", "difference"]
    figure = make_subplots(rows=1, cols=3, subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.03)
    signed = unit == "correlation"
    for place, grid in enumerate(grids, start=1):
        difference = place == 3
        high = widest if difference else most
        colours = CORRELATIONS if signed else DIFFERENCES if difference else SHARES[titles[place - 1]]
        # Each bar lies above its own map, so that none needs room at the side.
        left, right = (place - 1) * 0.343, (place - 1) * 0.343 + 0.313
        bar = {
            "orientation": "h", "thickness": 10, "nticks": 3, "len": 0.25, "x": (left + right) / 2,
            "y": 1.12, "yanchor": "bottom", "title": {"text": "synth. − orig." if difference else unit, "side": "top"},
        }  # fmt: skip
        figure.add_heatmap(
            z=grid, x=list(x), y=list(y), zmin=-high if difference or signed else 0, zmax=high, row=1, col=place,
            colorscale=colours, colorbar=bar,
            hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>", hoverongaps=False,
        )  # fmt: skip
    figure.update_layout(
        height=240 + 18 * min(len(y), 22), margin={"l": 8, "r": 8, "t": 100, "b": 8}, font={"size": FONT_SIZE},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
    )  # fmt: skip
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True, type="category")
    figure.update_xaxes(showgrid=False, automargin=True, type="category")
    return figure


def ecdf_chart(original: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, name: str) -> Chart:
    """Share of present values up to each point, for columns with a range."""
    column = schema[name]
    figure = new_figure(x_title=axis_title(column), y_title="share of rows up to here", height=260)
    lines = {}
    for label, table, colour, dash in (
        ("original", original, ORIGINAL, "solid"), ("synthetic", synthetic, SYNTHETIC, "dash"),
    ):  # fmt: skip
        values = np.sort(table[name].dropna().to_numpy())
        if not len(values):
            continue
        at = np.unique(np.linspace(0, len(values) - 1, MOST_POINTS).astype(int))
        lines[label] = pd.DataFrame({"table": label, "value": values[at], "share up to here": (at + 1) / len(values)})
        figure.add_scatter(
            x=lines[label]["value"], y=lines[label]["share up to here"], mode="lines", name=label,
            line={"color": colour, "dash": dash, "shape": "hv", "width": 2.5},
        )  # fmt: skip
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    table = pd.concat(lines.values()) if lines else pd.DataFrame(columns=["table", "value", "share up to here"])
    medians = ", ".join(f"{label}: {_middle(frame)}" for label, frame in lines.items())
    return Chart(figure=figure, table=table, alt=f"Distribution functions of {name}. Medians: {medians or 'none'}.")


def _middle(frame: pd.DataFrame) -> str:
    value = frame["value"].iloc[int(np.searchsorted(frame["share up to here"].to_numpy(), 0.5))]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def box_chart(original: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, name: str) -> Chart:
    """Quartiles and range of present values, for columns of numbers."""
    column = schema[name]
    figure = new_figure(x_title=axis_title(column), y_title="", height=200, showlegend=False)
    rows = []
    for label, table, colour in (("synthetic", synthetic, SYNTHETIC), ("original", original, ORIGINAL)):
        values = table[name].dropna().to_numpy(dtype=np.float64)
        if not len(values):
            continue
        low, first, median, third, high = (float(q) for q in np.quantile(values, (0.025, 0.25, 0.5, 0.75, 0.975)))
        rows.append({"table": label, "2.5%": low, "25%": first, "median": median, "75%": third, "97.5%": high})
        figure.add_box(
            y=[label], lowerfence=[low], q1=[first], median=[median], q3=[third], upperfence=[high], orientation="h",
            marker={"color": colour}, line={"width": 2}, name=label,
        )  # fmt: skip
    table = pd.DataFrame(rows[::-1])
    spoken = "; ".join(f"{row['table']}: median {row['median']:.4g}" for row in rows[::-1])
    return Chart(figure=figure, table=table, alt=f"Box plot of {name}, whiskers from 2.5% to 97.5%. {spoken}.")
