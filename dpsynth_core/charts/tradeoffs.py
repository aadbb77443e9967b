"""Pictures of noise, and of what an attacker can make of a release. For public and simulated tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.charts.cells import axis_title, cell_names
from dpsynth_core.charts.columns import show_ticks
from dpsynth_core.charts.palette import COLORWAY, ORIGINAL, REFERENCE, SYNTHETIC, SYNTHETIC_PATTERN, rgba
from dpsynth_core.charts.theme import HALF_AXIS_LETTERS, Chart, new_figure, number, plain, wrapped
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.neighbours import STATISTIC, NeighbourDemonstration

MAX_BOXES = 1_500
MAX_POINTS = 3_000
"""Rows of the original that are drawn behind the boxes."""
SHADES = 8
"""Steps from an empty box to the fullest one."""
NEIGHBOUR_BINS = 30


def true_positive_rate(false_positive_rate: float, epsilon: float, delta: float = 0.0) -> float:
    """The best that any attacker who tells two neighbouring tables apart can do (Kairouz, Oh & Viswanath 2015).

    Example:
        >>> round(true_positive_rate(0.05, 1.0), 3), true_positive_rate(0.5, 0.0)
        (0.136, 0.5)
    """
    a = false_positive_rate
    return min(1.0, math.exp(epsilon) * a + delta, 1 - math.exp(-epsilon) * (1 - delta - a))


def attack_curve(with_row: FloatArray, without: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shares of runs at or above every threshold: without the person (false alarms) and with (caught).

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
    # The bound is two straight lines, which meet where they are equal, and ends at one.
    bend = (1 - delta) / (1 + math.exp(epsilon))
    at = sorted({0.0, 1.0, bend, 1 - delta, *np.linspace(0, 1, 21).tolist()})
    bound = [true_positive_rate(a, epsilon, delta) for a in at]
    frame = pd.DataFrame({"false alarms": at, "caught at most": bound, "guessing": at})
    figure = new_figure(x_title="share of false alarms", y_title="share of people caught", height=320)

    def add_line(x: Any, y: Any, name: str, colour: str, dash: str) -> None:
        hover = f"{name}: %{{x:.0%}} false alarms, %{{y:.1%}} caught<extra></extra>"
        line = {"color": colour, "dash": dash, "width": 2.5}
        figure.add_scatter(x=x, y=y, mode="lines", name=name, line=line, hovertemplate=hover)

    add_line(at, bound, "the best possible attacker", COLORWAY[3], "solid")
    add_line([0, 1], [0, 1], "guessing", REFERENCE, "dash")
    if measured is not None:
        false, right = attack_curve(*measured)
        frame["caught, measured"] = np.interp(at, false, right)
        add_line(false, right, "one attack, measured", COLORWAY[2], "dot")
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    caught = true_positive_rate(0.05, epsilon, delta)
    alt = f"At epsilon {epsilon:g} an attacker with 5% false alarms finds at most {caught:.1%} of the people."
    return Chart(figure=figure, table=frame, alt=alt)


def neighbours_chart(shown: NeighbourDemonstration) -> Chart:
    """Two histograms on one axis, and the event that separates them best."""
    both = np.append(shown.with_row, shown.without)
    low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, high if high > low else low + 1.0, NEIGHBOUR_BINS + 1)
    frame = pd.DataFrame({"from": edges[:-1], "to": edges[1:]})
    frame["with the row"], frame["without it"] = (
        np.histogram(sample, edges)[0] / len(sample) for sample in (shown.with_row, shown.without)
    )
    figure = new_figure(
        x_title=wrapped(STATISTIC, HALF_AXIS_LETTERS), y_title="share of runs", height=300, barmode="overlay"
    )
    for name, colour, pattern in (("with the row", COLORWAY[3], ""), ("without it", REFERENCE, SYNTHETIC_PATTERN)):
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=frame[name],
            name=name,
            opacity=0.6,
            marker={"color": colour, "pattern": {"shape": pattern}},
            width=float(edges[1] - edges[0]),
            hovertemplate="%{x:.3g}: %{y:.1%}<extra>" + name + "</extra>",
        )
    cut = {"color": REFERENCE, "dash": "dash"}
    figure.add_vline(x=shown.bound.cut, line=cut)
    figure.add_scatter(x=[None], y=[None], mode="lines", name="where an attacker draws the line", line=cut)
    figure.update_yaxes(tickformat=".0%")
    return Chart(figure=figure, table=frame, alt=f"Two histograms of {STATISTIC}. {shown.sentence}")


def noisy_counts_chart(true: IntArray, noisy: IntArray, column: Column, epsilon: float) -> Chart:
    """Rows in each cell of one column, before and after noise."""
    names = cell_names(column)
    figure = new_figure(x_title=axis_title(column), y_title="rows", height=300, barmode="overlay")
    cells: dict[str, Any] = {"x": list(range(len(names))), "customdata": [plain(name) for name in names]}
    marker = {"color": SYNTHETIC, "pattern": {"shape": SYNTHETIC_PATTERN}}
    hover = "%{customdata}: %{y}<extra>with noise</extra>"
    figure.add_bar(y=noisy, name="with noise", marker=marker, hovertemplate=hover, **cells)
    line = {"color": ORIGINAL, "shape": "hvh"}
    style = {"mode": "lines+markers", "line": line, "marker": {"symbol": "line-ew-open", "size": 8}}
    hover = "%{customdata}: %{y}<extra>true</extra>"
    figure.add_scatter(y=true, name="true counts", hovertemplate=hover, **style, **cells)
    show_ticks(figure, column, names, max(1, len(names) // 5))
    error, fullest = float(np.abs(true - noisy).mean()), int(true.max(initial=0))
    frame = pd.DataFrame({"value": names, "true count": true, "noisy count": noisy})
    alt = f"{column.name} at epsilon {epsilon:g}: counts are off by {error:.1f} rows on average; "
    return Chart(figure=figure, table=frame, alt=f"{alt}the fullest cell holds {fullest}.")


def _add_points(figure: Any, model: PartitionModel, original: pd.DataFrame) -> None:
    """Rows of the original where the boxes have them: in the middle of their slots, missing ones beyond the last."""
    axes = model.axes[:2]
    rows = PrivateTable(original.iloc[:MAX_POINTS], Schema(columns=tuple(axis.column for axis in axes)))
    x, y = ((axis.locate(rows) + 0.5) / axis.size for axis in axes)
    marker = {"color": ORIGINAL, "size": 3.5, "opacity": 0.55}
    figure.add_scatter(x=x, y=y, mode="markers", marker=marker, name="rows of the original", hoverinfo="skip")


def partition_chart(model: PartitionModel, epsilon: float, original: pd.DataFrame | None = None) -> Chart:
    """The boxes that a tree made of two columns, darker where it believes that more rows lie.

    Args:
        model: The tree's boxes.
        epsilon: At which it was grown.
        original: Rows to be drawn behind the boxes; they must be public or simulated.
    """
    axes = model.axes[:2]
    titles = [axis_title(axis.column) for axis in axes]
    figure = new_figure(x_title=titles[0], y_title=titles[1], height=360, showlegend=False)
    sizes = np.array([axis.size for axis in axes], dtype=np.float64)
    low, high = model.low[:, :2] / sizes, model.high[:, :2] / sizes
    density = model.weights / np.prod(high - low, axis=1)
    shade = np.minimum((np.sqrt(density / density.max()) * SHADES).astype(np.int64), SHADES - 1)
    largest = np.argsort(-model.weights)[:MAX_BOXES]
    if original is not None:
        _add_points(figure, model, original)
    for k in range(SHADES):
        # One outline for all boxes of a shade, with gaps between them: a shape for each would take seconds to make.
        boxes = largest[shade[largest] == k]
        (x0, y0), (x1, y1), gap = low[boxes].T, high[boxes].T, np.full(len(boxes), np.nan)
        figure.add_scatter(
            x=np.column_stack([x0, x1, x1, x0, x0, gap]).ravel(),
            y=np.column_stack([y0, y0, y1, y1, y0, gap]).ravel(),
            mode="lines",
            fill="toself",
            line={"color": SYNTHETIC, "width": 0.6},
            hoverinfo="skip",
            fillcolor=rgba(SYNTHETIC, 0.05 + 0.8 * (k + 0.5) / SHADES),
        )
    x, y = (low[largest] + high[largest]).T / 2
    texts = [f"about {weight:.3g} rows" for weight in model.weights[largest]]
    marker = {"opacity": 0, "size": 6}
    figure.add_scatter(x=x, y=y, mode="markers", marker=marker, text=texts, hovertemplate="%{text}<extra></extra>")
    for axis, update in zip(axes, (figure.update_xaxes, figure.update_yaxes), strict=True):
        ends = [number(end) for end in axis.describe(0, axis.slots)]
        update(range=[0, 1], tickvals=[0, 1], ticktext=ends, showgrid=False)
    behind = "" if original is None else " The points behind them are rows of the original."
    alt = f"At epsilon {epsilon:g} the tree cut the plane into {len(model.weights)} boxes that are not empty.{behind}"
    return Chart(figure=figure, table=model.leaves(), alt=alt)
