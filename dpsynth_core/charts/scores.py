"""Pictures of diagnostics' results. Private, like the results they are drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.palette import BADNESS, REFERENCE, RELEASE_COLOURS, SYMBOLS, SYNTHETIC
from dpsynth_core.charts.theme import FONT_SIZE, Chart, list_names, new_figure, plain
from dpsynth_core.diagnostics.base import Measure, Result

ROW_HEIGHT = 26
MAX_WRITTEN = 9
"""Columns up to which a heat map's cells show their numbers."""
MAX_ITEMS, MAX_GIVEAWAYS = 25, 15


def dot_chart(results: Mapping[str, Result]) -> Chart:
    """Every item of a diagnostic as a dot with its interval, one symbol per release, over the reference's range.

    Args:
        results: The same diagnostic for up to four releases, by the releases' names. The first release's worst items
            are drawn; the table has them all.
    """
    first = next(iter(results.values()))
    items = {label: result.items or (result.headline,) for label, result in results.items()}
    shown = [item for item in next(iter(items.values())) if item.value is not None][:MAX_ITEMS]
    index = {item.name: i for i, item in enumerate(shown)}
    figure = new_figure(x_title=first.scale.name, y_title="", height=96 + ROW_HEIGHT * max(3, len(shown)))
    highest = {i: item.reference_high for i, item in enumerate(shown) if item.reference_high is not None}
    bars = {"x": list(highest.values()), "y": list(highest), "orientation": "h", "width": 0.7}
    hover = "a fresh sample reaches up to %{x:.3g}<extra></extra>"
    marker = {"color": REFERENCE, "opacity": 0.35}
    figure.add_bar(name="range of a fresh sample", marker=marker, hovertemplate=hover, **bars)
    for number, (label, own) in enumerate(items.items()):
        drawn = [item for item in own if item.name in index and item.value is not None]
        offset = (number - (len(results) - 1) / 2) * 0.18
        _add_dots(figure, drawn, [index[item.name] + offset for item in drawn], label, number=number)
    list_names(figure, [plain(item.name) for item in shown])
    figure.update_xaxes(rangemode="tozero")
    worst = first.headline
    failed = sum(item.value is None for item in first.items)
    alt = f"Dot plot of {first.scale.name} for {len(shown)} items; worst: {worst.name}"
    alt += f" at {worst.value:.3g}." if worst.value is not None else ", which could not be computed."
    table = pd.DataFrame({"release": label, **_row(item)} for label, own in items.items() for item in own)
    return Chart(figure=figure, table=table, alt=alt + (f" {failed} could not be computed." if failed else ""))


def _row(item: Measure) -> dict[str, Any]:
    interval = {"interval from": item.low, "interval to": item.high}
    reference = {"reference": item.reference, "reference up to": item.reference_high}
    return {"item": item.name, "value": item.value, **interval, **reference, "verdict": item.verdict}


def _add_dots(
    figure: go.Figure, drawn: Sequence[Measure], y: Sequence[float | str], label: str, *, number: int, **options: Any
) -> None:
    values = [float(item.value) for item in drawn if item.value is not None]
    above = [max(0.0, (item.high or 0.0) - value) for item, value in zip(drawn, values, strict=True)]
    below = [max(0.0, value - (item.low or 0.0)) for item, value in zip(drawn, values, strict=True)]
    interval = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    figure.add_scatter(
        x=values,
        y=list(y),
        mode="markers",
        name=plain(label),
        marker={"color": RELEASE_COLOURS[number], "symbol": SYMBOLS[number], "size": 10},
        error_x={**interval, "thickness": 1.5, "width": 3},
        customdata=[[plain(item.name), item.reading] for item in drawn],
        hovertemplate="%{customdata[0]}: %{x:.3g}<br>%{customdata[1]}<extra></extra>",
        **options,
    )


def pair_heat_map(result: Result, names: Sequence[str]) -> Chart:
    """Total variation of every pair as a lower triangle, on a scale that is the same for every table."""
    index = {name: i for i, name in enumerate(names)}
    grid = np.full((len(names), len(names)), np.nan)
    for item in result.items:
        i, j = sorted(index[name] for name in item.columns)
        grid[j, i] = math.nan if item.value is None else item.value
    labels = [plain(name) for name in names]
    figure = new_figure(x_title="column", y_title="column", height=140 + 34 * len(names))
    figure.add_heatmap(
        z=grid[1:, :-1],
        x=labels[:-1],
        y=labels[1:],
        zmin=0,
        zmax=1,
        colorscale=BADNESS,
        colorbar={"title": {"text": "total variation"}, "thickness": 14},
        hoverongaps=False,
        hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
    )
    if len(names) <= MAX_WRITTEN:
        _write_values(figure, result, labels, index)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False)
    table = pd.DataFrame(_row(item) for item in result.items)
    worst = result.headline
    value = "could not be computed" if worst.value is None else f"differs by {worst.value:.2f}"
    alt = f"Heat map of {len(result.items)} pairs of columns. The worst, {worst.name}, {value}."
    return Chart(figure=figure, table=table, alt=alt)


def _write_values(figure: go.Figure, result: Result, labels: Sequence[str], index: Mapping[str, int]) -> None:
    """The values in their cells. Pale cells show the page behind them, so their letters have its colour of text."""
    for low, high, colour in ((-1.0, 0.4, None), (0.4, 0.7, "#1A1A1A"), (0.7, 2.0, "#FFFFFF")):
        own = [item for item in result.items if item.value is not None and low <= item.value < high]
        ends = [sorted(index[name] for name in item.columns) for item in own]
        figure.add_scatter(
            x=[labels[i] for i, _ in ends],
            y=[labels[j] for _, j in ends],
            text=[f"{item.value:.2f}" for item in own],
            mode="text",
            textfont={"size": 12, "color": colour},
            hoverinfo="skip",
            showlegend=False,
        )


def giveaway_chart(result: Result) -> Chart:
    """What the tree used to tell the tables apart."""
    table = result.tables["giveaways"]
    shown = table[table["importance"] > 0].head(MAX_GIVEAWAYS)
    names = [plain(name) for name in shown["column"]]
    figure = new_figure(x_title="importance in the tree", y_title="", height=96 + ROW_HEIGHT * max(2, len(shown)))
    bars = {"y": list(range(len(shown))), "x": shown["importance"], "orientation": "h", "marker": {"color": SYNTHETIC}}
    hover = "%{customdata}: %{x:.3g}<extra></extra>"
    figure.add_bar(customdata=names, hovertemplate=hover, showlegend=False, **bars)
    list_names(figure, names)
    alt = f"What gives the synthetic rows away: first {shown['column'].iloc[0]}." if names else "Nothing was found."
    return Chart(figure=figure, table=table, alt=alt)


def distance_chart(results: Mapping[str, Result]) -> Chart:
    """MMD of up to four releases as a share of pure noise, beside two halves of the original."""
    known = {label: result for label, result in results.items() if result.headline.value is not None}
    first = next(iter(known.values()))
    scores = first.tables["scores"].set_index("score")["value"]
    noise = float(scores["pure noise"])
    marks = {"two halves of the original": float(scores["two halves of the original"]) / noise, "pure noise": 1.0}
    chance = first.tables["chance"]["MMD by chance"] / noise
    figure = new_figure(x_title=f"{first.scale.name} (0: equal)", y_title="", height=150 + 30 * len(known))
    box = {"x": chance, "y": ["by chance"] * len(chance), "orientation": "h", "boxpoints": False, "showlegend": False}
    hover = "two tables from one distribution: %{x:.3g}<extra></extra>"
    figure.add_box(marker={"color": REFERENCE}, hovertemplate=hover, **box)
    for number, (label, result) in enumerate(known.items()):
        _add_dots(figure, [result.headline], [plain(label)], label, number=number, showlegend=False)
    for (name, x), dash, side in zip(marks.items(), ("dot", "dash"), ("left", "right"), strict=True):
        figure.add_vline(x=x, line={"dash": dash, "color": REFERENCE, "width": 2})
        text = {"text": name, "font": {"size": FONT_SIZE}, "xanchor": side, "yanchor": "bottom", "showarrow": False}
        figure.add_annotation(x=x, y=1.02, yref="paper", **text)
    highest = max(1.0, *(result.headline.high or 0.0 for result in known.values()))
    figure.update_xaxes(range=[0, 1.05 * highest])
    tables = [result.tables["scores"].assign(release=label) for label, result in known.items()]
    values = ", ".join(f"{label} {result.headline.value:.3g}" for label, result in known.items())
    alt = f"{first.scale.name}: {values}; two halves of the original {marks['two halves of the original']:.3g}."
    return Chart(figure=figure, table=pd.concat(tables, ignore_index=True), alt=alt)
