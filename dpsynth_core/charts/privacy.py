"""Pictures of what epsilon costs, from public facts only: drawn before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from dpsynth_core.charts.cells import axis_title
from dpsynth_core.charts.palette import COLORWAY, ORIGINAL, REFERENCE, WARNING
from dpsynth_core.charts.theme import Chart, new_figure, number
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.table.schema import Schema

PATTERNS = ("", "/", "x", ".", "\\")
MAX_LINES = 200
SMALLEST = 1e-9
"""Rows: anything less is drawn as this much."""


def attacker_certainty(epsilon: float, prior: float = 0.5) -> float:
    """How sure an attacker can become at most that a given person's row is a given one: Bayes with odds times e^eps.

    Example:
        >>> round(attacker_certainty(1.0), 3)
        0.731
    """
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def split_chart(plan: Plan) -> Chart:
    """How epsilon is divided between the paid steps."""
    total = float(sum((stage.epsilon for stage in plan.stages), Fraction(0)))
    frame = pd.DataFrame(
        {"step": stage.label, "epsilon": float(stage.epsilon), "share": float(stage.epsilon) / total}
        for stage in plan.stages
    )
    figure = new_figure(x_title="epsilon", y_title="", height=176, barmode="stack", showlegend=True)
    # On a narrow screen the names take several lines.
    figure.update_layout(margin={"t": 62})
    for i, row in enumerate(frame.itertuples()):
        hover = f"{row.step}<br>%{{x:.4g}} ({row.share:.0%})<extra></extra>"
        style = {"color": COLORWAY[i % len(COLORWAY)], "pattern": {"shape": PATTERNS[i % len(PATTERNS)]}}
        bar = {"x": [row.epsilon], "y": ["epsilon"], "orientation": "h"}
        figure.add_bar(name=row.step, marker=style, hovertemplate=hover, **bar)
    figure.update_yaxes(showticklabels=False)
    return Chart(figure=figure, table=frame, alt=f"How epsilon is divided: {split_words(plan)}.")


def split_words(plan: Plan) -> str:
    total = sum((stage.epsilon for stage in plan.stages), Fraction(0))
    if not plan.stages:
        return "nothing is paid for, because nothing is protected"
    return ", ".join(f"{float(stage.epsilon / total):.0%} for {stage.label}" for stage in plan.stages)


def error_chart(plans: Mapping[float, Plan], epsilon: float, rows: int) -> Chart:
    """Expected error of one cell's count by epsilon, beside the rows that a cell holds on average."""
    frame = pd.DataFrame({"epsilon": list(plans), "error": [plan.count_error for plan in plans.values()]})
    error, typical = plans[epsilon].count_error, max(rows / plans[epsilon].cells, SMALLEST)
    # At a huge epsilon the error is too small for a float, and a logarithm has no place for zero.
    drawn, marked = frame["error"].clip(lower=SMALLEST), max(error, SMALLEST)
    figure = new_figure(x_title="epsilon (log scale)", y_title="rows (log scale)", height=260)
    figure.add_scatter(x=frame["epsilon"], y=drawn, name="expected error of a count", line={"color": ORIGINAL})
    mark = {"color": WARNING, "size": 13, "symbol": "diamond"}
    figure.add_scatter(x=[epsilon], y=[marked], mode="markers", name="your epsilon", marker=mark)
    figure.add_hline(y=typical, line={"color": REFERENCE, "dash": "dash"})
    # The curve falls: where it ends below the line, its place above the line is free at that end.
    side = "right" if drawn.iloc[-1] < typical else "left"
    label = {"text": "rows in an average cell", "showarrow": False, "xanchor": side, "yanchor": "bottom"}
    figure.add_annotation(x=float(side == "right"), xref="paper", y=math.log10(typical), **label)
    # One label for each power of ten: the digits between them are too small to read.
    ends = [math.log10(value) for value in (*drawn, typical)]
    figure.update_xaxes(type="log", dtick=1)
    figure.update_yaxes(type="log", dtick=1, range=[min(ends) - 0.4, max(ends) + 0.4])
    alt = f"At epsilon {epsilon:g} a count is off by about {error:.3g} rows; an average cell holds {typical:.3g}."
    return Chart(figure=figure, table=frame, alt=alt)


def noise_chart(scale: float, count: int) -> Chart:
    """The chances of each noisy value of one count."""
    reach = max(3, math.ceil(5 * scale))
    step = max(1, reach // 100)
    values = np.arange(count - reach, count + reach + 1, step)
    a = math.exp(-1 / scale)
    chance = (1 - a) / (1 + a) * a ** np.abs(values - count)
    frame = pd.DataFrame({"noisy count": values, "chance": chance})
    figure = new_figure(x_title="noisy count", y_title="chance", height=220, showlegend=False)
    figure.add_bar(x=values, y=chance, marker={"color": ORIGINAL}, hovertemplate="%{x}: %{y:.2%}<extra></extra>")
    figure.add_vline(x=count, line={"color": REFERENCE, "dash": "dash"})
    figure.update_yaxes(tickformat=".1%")
    width = math.ceil(scale * math.log(20))
    alt = f"A true count of {count} comes out within {width} of the truth in about 95% of runs."
    return Chart(figure=figure, table=frame, alt=alt)


def domain_chart(schema: Schema, cuts: Sequence[int]) -> Chart:
    """The cells that the parameters imply over two columns of the declared domain, numeric ones first; no data."""
    frame = pd.DataFrame({"column": list(schema.names), "cells": list(cuts)})
    sides = sorted(zip(schema, cuts, strict=True), key=lambda side: not side[0].is_numeric)[:2]
    drawn = [Axis.fine(column) for column, _ in sides]
    titles = [axis_title(axis.column) for axis in drawn]
    figure = new_figure(x_title=titles[0], y_title=titles[1] if len(drawn) > 1 else "", height=280, showlegend=False)
    for side, (_, cells) in enumerate(sides):
        edges = np.linspace(0, 1, min(cells, MAX_LINES) + 1)
        # One broken line for all: a shape for each would take seconds where there are hundreds.
        across, along = np.repeat(edges, 3), np.tile([0.0, 1.0, np.nan], len(edges))
        x, y = (across, along) if side == 0 else (along, across)
        figure.add_scatter(x=x, y=y, mode="lines", line={"color": REFERENCE, "width": 1}, hoverinfo="skip")
    for axis, update in zip(drawn, (figure.update_xaxes, figure.update_yaxes), strict=False):
        update(tickvals=[0, 1], ticktext=[number(end) for end in axis.describe(0, axis.slots)])
    figure.update_xaxes(range=[-0.01, 1.01])
    figure.update_yaxes(range=[-0.01, 1.01], showticklabels=len(drawn) > 1)
    words = " by ".join(f"{cells} cells of {column.name}" for column, cells in sides)
    return Chart(figure=figure, table=frame, alt=f"The declared domain cut into {words}.")
