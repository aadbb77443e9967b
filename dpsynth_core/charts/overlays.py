"""Original and synthetic rows in one picture. Private: it shows the original."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.arrays import FloatArray
from dpsynth_core.charts.cells import axis_title, cell_names, tick_text
from dpsynth_core.charts.palette import CORRELATIONS, DIFFERENCES, ORIGINAL, SHARES, SYNTHETIC
from dpsynth_core.charts.theme import Y_STANDOFF, Chart, new_figure, new_panels, number, plain
from dpsynth_core.diagnostics.base import Result
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_POINTS = 400
"""Steps of a drawn distribution function."""


def correlation_chart(result: Result) -> Chart | None:
    """Correlation matrices of original and synthetic table side by side, and their difference; None without pairs."""
    table = result.tables["correlations"]
    names = list(dict.fromkeys([*table["first"], *table["second"]]))
    if not names:
        return None
    # A lower triangle, as for pairs: the first column has no row of its own, and the last none below it.
    grids = [
        table.pivot(index="second", columns="first", values=which)
        .reindex(index=names[1:], columns=names[:-1])
        .to_numpy()
        for which in ("original", "synthetic", "difference")
    ]
    labels = [plain(name) for name in names]
    figure = _triptych(grids, labels[:-1], labels[1:], unit="correlation", high=1, max_difference=1)
    _name_axes(figure, "column", "column")
    alt = "Correlations in the original, in the synthetic table, and their difference."
    known = table[table["difference"].notna()]
    if len(known):
        first, second, change = known.iloc[known["difference"].abs().argmax()][["first", "second", "difference"]]
        alt += f" The largest change is {change:+.2f}, for {first} and {second}."
    return Chart(figure=figure, table=table, alt=alt)


def pair_chart(original: PrivateTable, synthetic: pd.DataFrame, first: str, second: str, *, bins: int = 12) -> Chart:
    """Shares of rows by two columns: original, synthetic, difference."""
    columns = [coarse(original.schema[name], bins) for name in (first, second)]
    schema = original.schema.select([first, second])
    shares = [_joint_shares(table, columns) for table in (original, PrivateTable(synthetic, schema))]
    names = [cell_names(column) for column in columns]
    labels = [[tick_text(column, name) for name in own] for column, own in zip(columns, names, strict=True)]
    high, gap = float(np.max(shares)), shares[1] - shares[0]
    widest = max(float(np.abs(gap).max()), high / 2)
    figure = _triptych([*shares, gap], labels[1], labels[0], unit="share", high=high, max_difference=widest)
    _name_axes(figure, axis_title(columns[1]), axis_title(columns[0]))
    frame = pd.DataFrame(product(*names), columns=[first, second if second != first else f"{second} "])
    frame["original"], frame["synthetic"], frame["difference"] = (grid.ravel() for grid in (*shares, gap))
    apart = total_variation(shares[0].ravel(), shares[1].ravel())
    alt = f"Shares of rows by {first} and {second} in the two tables, which differ by {apart:.0%} of rows."
    return Chart(figure=figure, table=frame, alt=alt)


def _joint_shares(table: PrivateTable, columns: Sequence[Column]) -> FloatArray:
    codes = [codec_for(column).codes(table.positions(column.name)) for column in columns]
    shape = (columns[0].size, columns[1].size)
    counts = np.bincount(codes[0] * shape[1] + codes[1], minlength=shape[0] * shape[1])
    return np.asarray(counts.reshape(shape) / table.n)


def _triptych(
    grids: Sequence[FloatArray], x: Sequence[str], y: Sequence[str], *, unit: str, high: float, max_difference: float
) -> go.Figure:
    """Original, synthetic and difference (synthetic less original) on shared axes.

    The scale of the first two goes from 0 to high, for correlations from -high; the difference has its own, to both
    sides of 0.
    """
    signed = unit == "correlation"
    titles = ("original", "synthetic", "difference")
    scales = [CORRELATIONS] * 3 if signed else [SHARES["original"], SHARES["synthetic"], DIFFERENCES]
    height = 240 + 18 * min(len(y), 22)
    figure = new_panels(1, 3, titles, height=height, shared_yaxes=True, horizontal_spacing=0.03)
    for col, (grid, scale) in enumerate(zip(grids, scales, strict=True), start=1):
        difference = col == 3
        top = max_difference if difference else high
        # Each colour bar lies above its own map, so that none needs room at the side.
        place = {"orientation": "h", "len": 0.25, "x": (col - 1) * 0.343 + 0.1565, "y": 1.12, "yanchor": "bottom"}
        # One for all three: on a narrow screen each would run into the next.
        label = {"text": unit if col == 2 else "", "side": "top"}
        figure.add_heatmap(
            z=grid,
            x=list(x),
            y=list(y),
            zmin=-top if difference or signed else 0,
            zmax=top,
            colorscale=scale,
            colorbar={**place, "thickness": 10, "nticks": 3, "title": label},
            hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
            hoverongaps=False,
            row=1,
            col=col,
        )
    figure.update_layout(margin={"t": 100})
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    figure.update_xaxes(showgrid=False, type="category")
    return figure


def _name_axes(figure: go.Figure, x: str, y: str) -> None:
    """Of a triptych: once for all three panels, which share them."""
    figure.update_xaxes(title={"text": x, "standoff": 6}, col=2)
    figure.update_yaxes(title={"text": y, "standoff": Y_STANDOFF}, col=1)


def ecdf_chart(original: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, name: str) -> Chart:
    """Share of present values up to each point, for columns with a range."""
    figure = new_figure(x_title=axis_title(schema[name]), y_title="share of rows up to here", height=260)
    frames, medians = [], []
    for label, table, colour, dash in (
        ("original", original, ORIGINAL, "solid"),
        ("synthetic", synthetic, SYNTHETIC, "dash"),
    ):
        values = np.sort(table[name].dropna().to_numpy())
        if not len(values):
            continue
        at = np.unique(np.linspace(0, len(values) - 1, MAX_POINTS).astype(int))
        shares = (at + 1) / len(values)
        frames.append(pd.DataFrame({"table": label, "value": values[at], "share up to here": shares}))
        medians.append(f"{label}: {number(frames[-1]['value'].iloc[int(np.searchsorted(shares, 0.5))])}")
        line = {"color": colour, "dash": dash, "shape": "hv", "width": 2.5}
        figure.add_scatter(x=values[at], y=shares, mode="lines", name=label, line=line)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    table = pd.concat(frames) if frames else pd.DataFrame(columns=["table", "value", "share up to here"])
    alt = f"Distribution functions of {name}. Medians: {', '.join(medians) or 'none'}."
    return Chart(figure=figure, table=table, alt=alt)


def box_chart(original: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, name: str) -> Chart:
    """Quartiles and range of present values, for columns of numbers."""
    figure = new_figure(x_title=axis_title(schema[name]), y_title="", height=200, showlegend=False)
    rows = []
    for label, table, colour in (("synthetic", synthetic, SYNTHETIC), ("original", original, ORIGINAL)):
        values = table[name].dropna().to_numpy(dtype=np.float64)
        if not len(values):
            continue
        low, first, median, third, high = (float(q) for q in np.quantile(values, (0.025, 0.25, 0.5, 0.75, 0.975)))
        rows.append({"table": label, "2.5%": low, "25%": first, "median": median, "75%": third, "97.5%": high})
        box = {"lowerfence": [low], "q1": [first], "median": [median], "q3": [third], "upperfence": [high]}
        figure.add_box(y=[label], name=label, orientation="h", marker={"color": colour}, line={"width": 2}, **box)
    medians = "; ".join(f"{row['table']}: median {row['median']:.4g}" for row in rows[::-1])
    alt = f"Box plot of {name}, whiskers from 2.5% to 97.5%. {medians}."
    return Chart(figure=figure, table=pd.DataFrame(rows[::-1]), alt=alt)
