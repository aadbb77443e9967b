"""Pictures of what epsilon costs and buys. Drawn from the rows or from simulations: for public and simulated tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpsynth_core.charts.cells import cell_names, drawable
from dpsynth_core.charts.columns import axis_title
from dpsynth_core.charts.theme import (
    COLORWAY,
    FONT_SIZE,
    ORIGINAL,
    REFERENCE,
    SYNTHETIC,
    SYNTHETIC_PATTERN,
    Chart,
    new_figure,
    plain,
)
from dpsynth_core.column import Column
from dpsynth_core.encoding import FloatArray, IntArray, codec_for
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.partition.model import PartitionModel
from dpsynth_core.schema import Schema
from dpsynth_core.sweep import ASPECTS, Sweep

# The first two colours stand for original and synthetic everywhere, so lines of mechanisms begin with the third.
LINES = (
    (COLORWAY[2], "solid", "circle"),
    (COLORWAY[3], "dash", "square"),
    (COLORWAY[4], "dot", "triangle-up"),
    (COLORWAY[5], "dashdot", "diamond"),
    (REFERENCE, "longdash", "x"),
    ("#A05A00", "longdashdot", "star"),
    ("#6A51A3", "solid", "pentagon"),
    ("#4D9221", "dash", "cross"),
    ("#7A0019", "dashdot", "hexagon"),
)
MULTIPLE_CELLS = 24
MULTIPLES_PER_ROW = 4
MOST_BOXES = 1_500
MAX_LINE = 30
"""Letters of an axis title on one line."""


def sweep_chart(found: Sweep, aspect: str, *, target: float | None = None) -> Chart:
    """One aspect against epsilon, a line and a band for each mechanism, beside what a fresh sample would show."""
    kind = ASPECTS[aspect]
    figure = new_figure(x_title="epsilon (log scale)", y_title=_broken(kind.title), height=340)
    rows, spoken = [], []
    for place, key in enumerate(found.order.mechanisms):
        line = found.line(key, aspect)
        if not line:
            continue
        title = MECHANISMS[key].title
        frame = pd.DataFrame(
            {
                "mechanism": title, "epsilon": [spot.epsilon for spot in line],
                **{end: [getattr(spot.bands[aspect], end) for spot in line] for end in ("low", "middle", "high")},
            }
        )  # fmt: skip
        rows.append(frame)
        colour, dash, symbol = LINES[place % len(LINES)]
        _band(figure, frame, colour)
        figure.add_scatter(
            x=frame["epsilon"], y=frame["middle"], mode="lines+markers", name=title,
            line={"color": colour, "dash": dash, "width": 2.5}, marker={"symbol": symbol, "size": 9},
            customdata=[[kind.say(low), kind.say(mid), kind.say(high)] for low, mid, high in
                        frame[["low", "middle", "high"]].itertuples(index=False)],
            hovertemplate="ε %{x:g}: %{customdata[1]}<br>%{customdata[0]} to %{customdata[2]}<extra>" + title
            + "</extra>",
        )  # fmt: skip
        first, last = line[0], line[-1]
        spoken.append(
            f"{title}: {kind.say(first.bands[aspect].middle)} at epsilon {first.epsilon:g}, "
            f"{kind.say(last.bands[aspect].middle)} at {last.epsilon:g}"
        )
    _level(figure, found.references.get(aspect), "a fresh sample" if not kind.simulated else "acceptable", "dash")
    _level(figure, target, "your target", "dot")
    figure.update_xaxes(type="log", dtick=1)
    if kind.percent:
        figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    else:
        _log_where_wide(figure, pd.concat(rows), aspect)
    return Chart(
        figure=figure,
        table=pd.concat(rows, ignore_index=True),
        alt=f"{kind.title[0].upper()}{kind.title[1:]} against epsilon. {'; '.join(spoken)}.",
    )


def _band(figure: go.Figure, frame: pd.DataFrame, colour: str) -> None:
    """The range of the repetitions, drawn under the line."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(
        x=[*frame["epsilon"], *frame["epsilon"][::-1]], y=[*frame["high"], *frame["low"][::-1]], fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.18)", line={"width": 0}, mode="lines", hoverinfo="skip",
        showlegend=False,
    )  # fmt: skip


def _level(figure: go.Figure, at: float | None, label: str, dash: str) -> None:
    if at is not None:
        figure.add_scatter(
            x=[], y=[], mode="lines", name=label, line={"color": REFERENCE, "dash": dash, "width": 1.5}, showlegend=True
        )
        figure.add_hline(y=at, line={"color": REFERENCE, "dash": dash, "width": 1.5})


def _log_where_wide(figure: go.Figure, frame: pd.DataFrame, aspect: str) -> None:
    """A ratio runs over powers of ten, so its axis does too."""
    least = float(frame["low"].min())
    if aspect == "pmse" and least > 0:
        figure.update_yaxes(type="log", dtick=1)
        # A line at a level is not counted in by the automatic range.
        ends = [math.log10(least), 0.0, math.log10(max(float(frame["high"].max()), 1.0))]
        figure.update_yaxes(range=[min(ends) - 0.2, max(ends) + 0.2])
    else:
        figure.update_yaxes(rangemode="tozero")


def _broken(title: str) -> str:
    """A long title on two lines."""
    return title.replace(" (", "<br>(", 1) if len(title) > MAX_LINE else title


def multiples_chart(
    original: pd.DataFrame, tables: Sequence[tuple[float, pd.DataFrame]], schema: Schema, name: str
) -> Chart:
    """One column of the original and of the synthetic table at each epsilon, small and all on one scale."""
    column = drawable(schema[name], most=MULTIPLE_CELLS)
    names = cell_names(column)
    first = _shares(original, column)
    made = [(epsilon, _shares(table, column)) for epsilon, table in tables]
    kept = np.sort(np.argsort(-first, kind="stable")[:MULTIPLE_CELLS])
    across = min(MULTIPLES_PER_ROW, len(made))
    down = -(-len(made) // across)
    figure = make_subplots(
        rows=down, cols=across, shared_xaxes=True, shared_yaxes=True, horizontal_spacing=0.03,
        vertical_spacing=0.22 / down, subplot_titles=[f"ε {epsilon:g}" for epsilon, _ in made],
    )  # fmt: skip
    top = max(float(share[kept].max()) for share in (first, *(share for _, share in made)))
    for place, (_, share) in enumerate(made):
        row, col = place // across + 1, place % across + 1
        for label, shares, colour, shape in (
            ("original", first, ORIGINAL, ""), ("synthetic", share, SYNTHETIC, SYNTHETIC_PATTERN),
        ):  # fmt: skip
            figure.add_bar(
                x=list(range(len(kept))), y=shares[kept], name=label, showlegend=place == 0, row=row, col=col,
                marker={"color": colour, "pattern": {"shape": shape}}, customdata=[plain(names[i]) for i in kept],
                hovertemplate="%{customdata}<br>%{y:.1%}<extra>" + label + "</extra>",
            )  # fmt: skip
    figure.update_layout(
        height=120 + 170 * down, margin={"l": 8, "r": 8, "t": 70, "b": 8}, font={"size": FONT_SIZE}, bargap=0.04,
        barmode="group", paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "x": 0, "y": 1 + 0.35 / down, "yanchor": "bottom", "traceorder": "normal"},
    )  # fmt: skip
    figure.update_annotations(font_size=FONT_SIZE)
    ticks = list(range(0, len(kept), max(1, len(kept) // 2)))
    figure.update_xaxes(
        tickvals=ticks, ticktext=[_start(column, names[kept[i]]) for i in ticks], tickangle=0, automargin=True
    )
    figure.update_yaxes(
        range=[0, top * 1.05 or 1.0], tickformat=".0%", automargin=True, gridcolor="rgba(128,128,128,0.25)"
    )
    figure.update_xaxes(title={"text": axis_title(column), "standoff": 6}, row=down, col=1)
    figure.update_yaxes(title={"text": "share of rows", "standoff": 6}, col=1)
    apart = [float(np.abs(first - share).sum() / 2) for _, share in made]
    frame = pd.DataFrame(
        {"value": names, "original": first, **{f"synthetic, ε {e:g}": share for e, share in made}}
    )  # fmt: skip
    spoken = ", ".join(f"{gap:.0%} at epsilon {epsilon:g}" for gap, (epsilon, _) in zip(apart, made, strict=True))
    return Chart(figure=figure, table=frame, alt=f"{name} in original and synthetic tables, which differ by {spoken}.")


def _shares(table: pd.DataFrame, column: Column) -> FloatArray:
    codec = codec_for(column)
    codes = codec.codes(codec.positions(table[column.name]))
    return np.asarray(np.bincount(codes, minlength=column.size) / len(table))


def _start(column: Column, name: str) -> str:
    return plain(name.split(" to ", maxsplit=1)[0] if column.is_numeric else name)


def true_positive_rate(false_positive_rate: float, epsilon: float, delta: float = 0.0) -> float:
    """The best that any attacker who tells two neighbouring tables apart can do (Kairouz, Oh & Viswanath 2015).

    Example:
        >>> round(true_positive_rate(0.05, 1.0), 3), true_positive_rate(0.5, 0.0)
        (0.136, 0.5)
    """
    a = false_positive_rate
    return min(1.0, math.exp(epsilon) * a + delta, 1 - math.exp(-epsilon) * (1 - delta - a))


def attacker_chart(epsilon: float, delta: float = 0.0) -> Chart:
    """How often an attacker can be right about a person, against how often wrong: the bound that epsilon sets."""
    # The bound is two straight lines, which meet where they are equal; and ends at one.
    bend = (1 - delta) / (1 + math.exp(epsilon))
    end = 1 - delta
    at = sorted({0.0, 1.0, bend, end, *np.linspace(0, 1, 21).tolist()})
    frame = pd.DataFrame(
        {"false alarms": at, "caught at most": [true_positive_rate(a, epsilon, delta) for a in at], "guessing": at}
    )
    figure = new_figure(
        x_title="share of false alarms", y_title="share of people caught", height=320
    )  # fmt: skip
    figure.add_scatter(
        x=at, y=frame["caught at most"], mode="lines", name="the best possible attacker",
        line={"color": COLORWAY[3], "width": 3},
        hovertemplate="%{x:.0%} false alarms: at most %{y:.1%} caught<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", name="guessing", line={"color": REFERENCE, "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )  # fmt: skip
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    caught = true_positive_rate(0.05, epsilon, delta)
    return Chart(
        figure=figure,
        table=frame,
        alt=f"At epsilon {epsilon:g} an attacker with 5% false alarms finds at most {caught:.1%} of the people.",
    )


def noisy_counts_chart(true: IntArray, noisy: IntArray, column: Column, epsilon: float) -> Chart:
    """Rows in each cell of one column, before and after noise."""
    names = cell_names(column)
    frame = pd.DataFrame({"value": names, "true count": true, "noisy count": noisy})
    figure = new_figure(x_title=axis_title(column), y_title="rows", height=300, barmode="overlay")
    spots = list(range(len(names)))
    figure.add_bar(
        x=spots, y=noisy, name="with noise", marker={"color": SYNTHETIC, "pattern": {"shape": SYNTHETIC_PATTERN}},
        customdata=[plain(name) for name in names], hovertemplate="%{customdata}: %{y}<extra>with noise</extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=spots, y=true, name="true counts", mode="lines+markers", line={"color": ORIGINAL, "shape": "hvh"},
        marker={"symbol": "line-ew-open", "size": 8}, customdata=[plain(name) for name in names],
        hovertemplate="%{customdata}: %{y}<extra>true</extra>",
    )  # fmt: skip
    ticks = list(range(0, len(names), max(1, len(names) // 5)))
    figure.update_xaxes(tickvals=ticks, ticktext=[_start(column, names[i]) for i in ticks])
    off = float(np.abs(true - noisy).mean())
    fullest = int(true.max(initial=0))
    return Chart(
        figure=figure,
        table=frame,
        alt=f"{column.name} at epsilon {epsilon:g}: counts are off by {off:.1f} rows on average; "
        f"the fullest cell holds {fullest}.",
    )


def partition_chart(model: PartitionModel, epsilon: float) -> Chart:
    """The boxes that a tree made of two columns, darker where it believes that more rows lie."""
    axes = model.axes[:2]
    titles = [axis_title(axis.column) for axis in axes]
    figure = new_figure(x_title=titles[0], y_title=titles[1], height=360, showlegend=False)
    sizes = np.array([axis.size for axis in axes], dtype=np.float64)
    low, high = model.low[:, :2] / sizes, model.high[:, :2] / sizes
    crowd = model.weights / np.prod(high - low, axis=1)
    shade = np.sqrt(crowd / crowd.max())
    order = np.argsort(-model.weights)[:MOST_BOXES]
    for i in order:
        x0, x1, y0, y1 = low[i, 0], high[i, 0], low[i, 1], high[i, 1]
        figure.add_shape(
            type="rect", x0=x0, x1=x1, y0=y0, y1=y1, line={"color": SYNTHETIC, "width": 0.6},
            fillcolor=f"rgba(213,94,0,{0.05 + 0.8 * shade[i]:.3f})",
        )  # fmt: skip
    figure.add_scatter(
        x=(low[order, 0] + high[order, 0]) / 2, y=(low[order, 1] + high[order, 1]) / 2, mode="markers",
        marker={"opacity": 0, "size": 6}, text=[f"about {w:.3g} rows" for w in model.weights[order]],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    for axis, update in zip(axes, (figure.update_xaxes, figure.update_yaxes), strict=True):
        first, last = axis.describe(0, axis.slots)
        ends = [plain(f"{end:.4g}" if isinstance(end, float) else end) for end in (first, last)]
        update(range=[0, 1], tickvals=[0, 1], ticktext=ends, showgrid=False)
    return Chart(
        figure=figure,
        table=model.leaves(),
        alt=f"At epsilon {epsilon:g} the tree cut the plane into {len(model.weights)} boxes that are not empty.",
    )
