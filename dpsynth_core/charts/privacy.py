"""Pictures of what epsilon costs, from public facts only: drawn before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from dpsynth_core.charts.columns import axis_title
from dpsynth_core.charts.theme import COLORWAY, ORIGINAL, REFERENCE, WARNING, Chart, new_figure, plain
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.table.schema import Schema

PATTERNS = ("", "/", "x", ".", "\\")
MOST_LINES = 200


def attacker_certainty(epsilon: float, prior: float = 0.5) -> float:
    """How sure an attacker can become at most that a given person's row is a given one: Bayes with odds times e^eps.

    Example:
        >>> round(attacker_certainty(1.0), 3)
        0.731
    """
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def split_chart(plan: Plan) -> Chart:
    """How epsilon is shared out between the paid steps."""
    total = float(sum((stage.epsilon for stage in plan.stages), Fraction(0)))
    frame = pd.DataFrame(
        {
            "step": [stage.label for stage in plan.stages],
            "epsilon": [float(stage.epsilon) for stage in plan.stages],
            "share": [float(stage.epsilon) / total for stage in plan.stages],
        }
    )
    figure = new_figure(x_title="epsilon", y_title="", height=176, barmode="stack", showlegend=True)
    # On a narrow screen the names take several lines.
    figure.update_layout(margin={"t": 62})
    for i, row in enumerate(frame.itertuples()):
        figure.add_bar(
            x=[row.epsilon], y=["epsilon"], orientation="h", name=row.step,
            marker={"color": COLORWAY[i % len(COLORWAY)], "pattern": {"shape": PATTERNS[i % len(PATTERNS)]}},
            hovertemplate=f"{row.step}<br>%{{x:.4g}} ({row.share:.0%})<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(showticklabels=False)
    return Chart(figure=figure, table=frame, alt=f"Epsilon is shared out: {split_words(plan)}.")


def split_words(plan: Plan) -> str:
    """The shares of epsilon in a sentence."""
    total = sum((stage.epsilon for stage in plan.stages), Fraction(0))
    if not plan.stages:
        return "nothing is paid for, because nothing is protected"
    return ", ".join(f"{float(stage.epsilon / total):.0%} for {stage.label}" for stage in plan.stages)


def error_chart(plans: Mapping[float, Plan], epsilon: float, rows: int) -> Chart:
    """Expected error of one cell's count by epsilon, beside the rows that a cell holds on average."""
    frame = pd.DataFrame({"epsilon": list(plans), "error": [plan.count_error for plan in plans.values()]})
    here = plans[epsilon]
    typical = rows / here.cells
    figure = new_figure(x_title="epsilon (log scale)", y_title="rows (log scale)", height=260)
    figure.add_scatter(x=frame["epsilon"], y=frame["error"], name="expected error of a count", line={"color": ORIGINAL})
    figure.add_scatter(
        x=[epsilon], y=[here.count_error], mode="markers", name="your epsilon",
        marker={"color": WARNING, "size": 13, "symbol": "diamond"},
    )  # fmt: skip
    figure.add_hline(y=typical, line={"color": REFERENCE, "dash": "dash"})
    figure.add_annotation(
        x=0, xref="paper", y=math.log10(typical), text="rows in an average cell", showarrow=False, xanchor="left",
        yanchor="bottom",
    )  # fmt: skip
    # One label for each power of ten: the digits between them are too small to read.
    ends = [math.log10(value) for value in (*frame["error"], typical)]
    figure.update_xaxes(type="log", dtick=1)
    figure.update_yaxes(type="log", dtick=1, range=[min(ends) - 0.4, max(ends) + 0.4])
    return Chart(
        figure=figure,
        table=frame,
        alt=f"At epsilon {epsilon:g} a count is off by about {here.count_error:.3g} rows; "
        f"an average cell holds {typical:.3g}.",
    )


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
    return Chart(
        figure=figure,
        table=frame,
        alt=f"A true count of {count} comes out within {width} of the truth in about 95% of runs.",
    )


def domain_chart(schema: Schema, cuts: Sequence[int]) -> Chart:
    """The cells that the parameters imply over two columns of the declared domain, numeric ones first; no data."""
    frame = pd.DataFrame({"column": list(schema.names), "cells": list(cuts)})
    sides = sorted(zip(schema, cuts, strict=True), key=lambda side: not side[0].is_numeric)[:2]
    drawn = [Axis.fine(column) for column, _ in sides]
    titles = [axis_title(axis.column) for axis in drawn]
    figure = new_figure(x_title=titles[0], y_title=titles[1] if len(drawn) > 1 else "", height=280, showlegend=False)
    for side, (_, cells) in enumerate(sides):
        for edge in np.linspace(0, 1, min(cells, MOST_LINES) + 1):
            line = (
                {"x0": edge, "x1": edge, "y0": 0, "y1": 1} if side == 0 else {"x0": 0, "x1": 1, "y0": edge, "y1": edge}
            )
            figure.add_shape(type="line", line={"color": REFERENCE, "width": 1}, **line)
    figure.update_xaxes(range=[-0.01, 1.01], tickvals=[0, 1], ticktext=_ends(drawn[0]))
    figure.update_yaxes(range=[-0.01, 1.01], tickvals=[0, 1], ticktext=_ends(drawn[1]) if len(drawn) > 1 else ["", ""])
    spoken = " by ".join(f"{cells} cells of {column.name}" for column, cells in sides)
    return Chart(figure=figure, table=frame, alt=f"The declared domain cut into {spoken}.")


def _ends(axis: Axis) -> list[str]:
    first, last = axis.describe(0, axis.slots)
    return [plain(f"{value:.6g}" if isinstance(value, float) else value) for value in (first, last)]
