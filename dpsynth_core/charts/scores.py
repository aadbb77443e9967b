"""Pictures of what the diagnostics found. Private, like the results they are drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.theme import BADNESS, COLORWAY, FONT_SIZE, REFERENCE, SYNTHETIC, Chart, new_figure, plain
from dpsynth_core.diagnostics.base import Measure, Result

SYMBOLS = ("circle", "diamond", "square", "cross")
RELEASE_COLOURS = (SYNTHETIC, *COLORWAY[2:5])
"""Of up to four releases: the first in the colour that synthetic rows have everywhere."""
ROW_HEIGHT = 26
MOST_WRITTEN = 9
"""Columns up to which a heat map's cells carry their numbers."""


def dot_chart(results: Mapping[str, Result], *, most: int = 25, log: bool = False) -> Chart:
    """Every item of a diagnostic as a dot with its interval, one symbol per release, over the reference's range.

    Args:
        results: The same diagnostic for up to four releases, by the releases' names.
        most: Items drawn, worst of the first release first; the table has them all.
        log: Whether the axis is logarithmic, for ratios.
    """
    first = next(iter(results.values()))
    frame = pd.DataFrame(
        [_row(label, item) for label, result in results.items() for item in result.items or (result.headline,)]
    )
    shown = [item for item in first.items or (first.headline,) if item.value is not None][:most]
    places = {item.name: place for place, item in enumerate(shown)}
    figure = new_figure(x_title=first.scale.name, y_title="", height=96 + ROW_HEIGHT * max(3, len(shown)))
    _reference_bars(figure, shown)
    for number, (label, result) in enumerate(results.items()):
        drawn = [item for item in result.items or (result.headline,) if item.name in places and item.value is not None]
        _dots(figure, drawn, places, label, number=number, of=len(results))
    ticks = [plain(item.name) for item in shown]
    figure.update_yaxes(tickvals=list(range(len(shown))), ticktext=ticks, range=[len(shown) - 0.4, -0.6])
    if log:
        figure.update_xaxes(type="log", dtick=1)
    else:
        figure.update_xaxes(rangemode="tozero")
    worst = first.headline
    failed = len(first.items) - sum(item.value is not None for item in first.items)
    alt = f"Dot plot of {first.scale.name} for {len(places)} items; worst: {worst.name}"
    alt += f" at {worst.value:.3g}" if worst.value is not None else ", which could not be computed"
    return Chart(figure=figure, table=frame, alt=alt + (f". {failed} could not be computed." if failed else "."))


def _row(label: str, item: Measure) -> dict[str, Any]:
    return {
        "release": label, "item": item.name, "value": item.value, "interval from": item.low, "interval to": item.high,
        "reference": item.reference, "reference up to": item.reference_high, "verdict": item.verdict,
    }  # fmt: skip


def _reference_bars(figure: go.Figure, shown: Sequence[Measure]) -> None:
    known = [(place, item) for place, item in enumerate(shown) if item.reference_high is not None]
    figure.add_bar(
        y=[place for place, _ in known], x=[item.reference_high for _, item in known], orientation="h", width=0.7,
        name="range of a fresh sample", marker={"color": REFERENCE, "opacity": 0.35},
        hovertemplate="a fresh sample reaches up to %{x:.3g}<extra></extra>",
    )  # fmt: skip


def _dots(
    figure: go.Figure, drawn: Sequence[Measure], places: Mapping[str, int], label: str, *, number: int, of: int
) -> None:
    offset = 0.0 if of == 1 else (number - (of - 1) / 2) * 0.18
    values = [float(item.value) for item in drawn if item.value is not None]
    figure.add_scatter(
        x=values, y=[places[item.name] + offset for item in drawn], mode="markers", name=plain(label),
        marker={"color": RELEASE_COLOURS[number], "symbol": SYMBOLS[number], "size": 10},
        error_x={
            "type": "data", "symmetric": False, "thickness": 1.5, "width": 3,
            "array": [max(0.0, (item.high or 0.0) - value) for item, value in zip(drawn, values, strict=True)],
            "arrayminus": [max(0.0, value - (item.low or 0.0)) for item, value in zip(drawn, values, strict=True)],
        },
        customdata=[[plain(item.name), item.reading] for item in drawn],
        hovertemplate="%{customdata[0]}: %{x:.3g}<br>%{customdata[1]}<extra></extra>",
    )  # fmt: skip


def pair_heat_map(result: Result, names: Sequence[str]) -> Chart:
    """Total variation of every pair as a lower triangle, on a scale that is the same for every table."""
    place = {name: i for i, name in enumerate(names)}
    grid = np.full((len(names), len(names)), np.nan)
    for item in result.items:
        i, j = sorted((place[item.columns[0]], place[item.columns[1]]))
        grid[j, i] = math.nan if item.value is None else item.value
    labels = [plain(name) for name in names]
    figure = new_figure(x_title="column", y_title="column", height=140 + 34 * len(names))
    figure.add_heatmap(
        z=grid[1:, :-1], x=labels[:-1], y=labels[1:], zmin=0, zmax=1, colorscale=BADNESS,
        colorbar={"title": {"text": "total variation"}, "thickness": 14},
        texttemplate="%{z:.2f}" if len(names) <= MOST_WRITTEN else None, hoverongaps=False, textfont={"size": 12},
        hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False)
    table = pd.DataFrame([_row("", item) for item in result.items]).drop(columns="release")
    worst = result.headline
    value = "could not be computed" if worst.value is None else f"differs by {worst.value:.2f}"
    return Chart(
        figure=figure,
        table=table,
        alt=f"Heat map of {len(result.items)} pairs of columns. The worst, {worst.name}, {value}.",
    )


def giveaway_chart(result: Result) -> Chart:
    """What the tree used to tell the tables apart."""
    table = result.tables["giveaways"]
    shown = table[table["importance"] > 0].head(15)
    figure = new_figure(x_title="importance in the tree", y_title="", height=96 + ROW_HEIGHT * max(2, len(shown)))
    figure.add_bar(
        y=list(range(len(shown))), x=shown["importance"], orientation="h", marker={"color": SYNTHETIC},
        customdata=[plain(name) for name in shown["column"]],
        hovertemplate="%{customdata}: %{x:.3g}<extra></extra>", showlegend=False,
    )  # fmt: skip
    figure.update_yaxes(
        tickvals=list(range(len(shown))), ticktext=[plain(name) for name in shown["column"]], autorange="reversed"
    )
    alt = (
        f"What gives the synthetic rows away: first {shown['column'].iloc[0]}." if len(shown) else "Nothing was found."
    )
    return Chart(figure=figure, table=table, alt=alt)


def distance_chart(results: Mapping[str, Result]) -> Chart:
    """MMD of up to four releases between two marks: halves of the original, and pure noise."""
    known = {label: result for label, result in results.items() if result.headline.value is not None}
    first = next(iter(known.values()))
    scores = first.tables["scores"].set_index("score")["value"]
    chance = first.tables["chance"]["MMD by chance"]
    figure = new_figure(x_title="MMD (0: the tables agree)", y_title="", height=150 + 30 * len(known))
    figure.add_box(
        x=chance, y=["by chance"] * len(chance), orientation="h", name="by chance", showlegend=False, boxpoints=False,
        marker={"color": REFERENCE}, hovertemplate="two tables of one law: %{x:.3g}<extra></extra>",
    )  # fmt: skip
    for number, (label, result) in enumerate(known.items()):
        item = result.headline
        _dots(figure, [item], {item.name: 0}, label, number=number, of=1)
        figure.data[-1].y = [plain(label)]
        figure.data[-1].showlegend = False
    for name, dash in (("two halves of the original", "dot"), ("pure noise", "dash")):
        figure.add_vline(x=float(scores[name]), line={"dash": dash, "color": REFERENCE, "width": 2})
        figure.add_annotation(
            x=float(scores[name]), y=1.02, yref="paper", yanchor="bottom", text=name, showarrow=False,
            xanchor="left" if dash == "dot" else "right", font={"size": FONT_SIZE},
        )  # fmt: skip
    figure.update_xaxes(
        range=[0, 1.05 * max([*(r.headline.high or 0.0 for r in known.values()), float(scores["pure noise"])])]
    )
    table = pd.concat(
        [result.tables["scores"].assign(release=label) for label, result in known.items()], ignore_index=True
    )
    values = ", ".join(f"{label} {result.headline.value:.3g}" for label, result in known.items())
    alt = f"Distances: {values}; two halves of the original {scores.iloc[1]:.3g}; pure noise {scores.iloc[2]:.3g}."
    return Chart(figure=figure, table=table, alt=alt)
