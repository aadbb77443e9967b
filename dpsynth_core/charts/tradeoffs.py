"""Pictures of noise, and of what an attacker can make of a release. For public and simulated tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.charts.cells import cell_names
from dpsynth_core.charts.columns import axis_title, first_value
from dpsynth_core.charts.theme import (
    COLORWAY,
    ORIGINAL,
    REFERENCE,
    SYNTHETIC,
    SYNTHETIC_PATTERN,
    Chart,
    new_figure,
    plain,
)
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.table.column import Column

MOST_BOXES = 1_500
SHADES = 8
"""Steps from an empty box to the fullest one."""


def true_positive_rate(false_positive_rate: float, epsilon: float, delta: float = 0.0) -> float:
    """The best that any attacker who tells two neighbouring tables apart can do (Kairouz, Oh & Viswanath 2015).

    Example:
        >>> round(true_positive_rate(0.05, 1.0), 3), true_positive_rate(0.5, 0.0)
        (0.136, 0.5)
    """
    a = false_positive_rate
    return min(1.0, math.exp(epsilon) * a + delta, 1 - math.exp(-epsilon) * (1 - delta - a))


def attack_curve(with_row: FloatArray, without: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shares of runs above every possible threshold: without the person (false alarms) and with (caught).

    Example:
        >>> false, right = attack_curve(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
        >>> false.tolist(), right.tolist()
        ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    cuts = np.unique(np.append(with_row, without))
    false, right = (1 - np.searchsorted(np.sort(seen), cuts) / len(seen) for seen in (without, with_row))
    return np.append(0.0, false[::-1]), np.append(0.0, right[::-1])


def attacker_chart(
    epsilon: float, delta: float = 0.0, *, measured: tuple[FloatArray, FloatArray] | None = None
) -> Chart:
    """How often an attacker can be right about a person, against how often wrong: the bound that epsilon sets.

    Args:
        epsilon: Granted.
        delta: Granted.
        measured: What an attacker saw in many runs with the person and in as many without, to be drawn below the bound.
    """
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
    if measured is not None:
        false, right = attack_curve(*measured)
        figure.add_scatter(
            x=false, y=right, mode="lines", name="one attack, measured",
            line={"color": COLORWAY[2], "dash": "dot", "width": 2.5},
            hovertemplate="%{x:.0%} false alarms: %{y:.1%} caught<extra></extra>",
        )  # fmt: skip
        frame["caught, measured"] = np.interp(at, false, right)
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
    figure.update_xaxes(tickvals=ticks, ticktext=[first_value(column, names[i]) for i in ticks])
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
    step = np.minimum((shade * SHADES).astype(np.int64), SHADES - 1)
    for k in range(SHADES):
        # One outline for all boxes of a shade, with gaps between them: a shape for each would take seconds to make.
        x, y = [], []
        for i in order[step[order] == k]:
            x += [low[i, 0], high[i, 0], high[i, 0], low[i, 0], low[i, 0], None]
            y += [low[i, 1], low[i, 1], high[i, 1], high[i, 1], low[i, 1], None]
        figure.add_scatter(
            x=x, y=y, mode="lines", fill="toself", line={"color": SYNTHETIC, "width": 0.6}, hoverinfo="skip",
            fillcolor=f"rgba(213,94,0,{0.05 + 0.8 * (k + 0.5) / SHADES:.3f})",
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
