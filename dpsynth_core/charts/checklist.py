"""Pictures for a reviewer: claims beside their thresholds, epsilon beside its policy, what leaves and what stays."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.palette import GOOD, ORIGINAL, REFERENCE, WARNING, rgba
from dpsynth_core.charts.theme import FONT_SIZE, Chart, list_names, new_figure

FAILED = "#D33F49"
"""Legible on light and dark backgrounds; nothing else has it, and its mark differs by shape too."""
CheckState: TypeAlias = Literal["pass", "warn", "open", "fail"]
STATES: tuple[CheckState, ...] = get_args(CheckState)
"""From best to worst; open is what nobody has looked at."""
MARKS: dict[CheckState, tuple[str, str]] = {
    "pass": (GOOD, "circle"),
    "warn": (WARNING, "triangle-up"),
    "open": (REFERENCE, "circle-open"),
    "fail": (FAILED, "x"),
}
WORDS: dict[CheckState, str] = {"pass": "passed", "warn": "to weigh", "open": "not looked at", "fail": "failed"}
_MIN, _MAX = 0.02, 50.0
"""Ends of the strip, in thresholds; values beyond are drawn at the end."""
_TICKS = {0.1: "a tenth", 1.0: "threshold", 10.0: "ten times"}
_WIDTH = 22
"""Characters on a line of a claim's title."""


@dataclass(frozen=True, kw_only=True)
class MeasuredClaim:
    """Something that is claimed, what is asked of it, and what was measured."""

    title: str
    asked: str
    """The threshold, in words."""
    measured: str
    state: CheckState
    limit: float | None = None
    """The threshold as a number, if it is one."""
    value: float | None = None
    """What was measured, on the same scale, with the ends of its 95% interval."""
    low: float | None = None
    high: float | None = None


def claims_chart(claims: Sequence[MeasuredClaim]) -> Chart:
    """Each measured claim as a mark on one strip, in units of its own threshold: left of the line is within.

    Args:
        claims: Those with a threshold are drawn; the table has them all.
    """
    records = [(claim.title, claim.asked, claim.measured, WORDS[claim.state]) for claim in claims]
    table = pd.DataFrame(records, columns=["claim", "asked", "measured", "verdict"])
    drawn = [claim for claim in claims if claim.limit]
    title, height = "measured, in thresholds (log scale)", 110 + 46 * max(2, len(drawn))
    figure = new_figure(x_title=title, y_title="", height=height, showlegend=True)
    figure.add_vrect(x0=1.0, x1=_MAX, fillcolor=FAILED, opacity=0.08, line={"width": 0}, layer="below")
    figure.add_vline(x=1.0, line={"color": REFERENCE, "width": 2})
    for state in MARKS:
        own = {row: claim for row, claim in enumerate(drawn) if claim.state == state and claim.value is not None}
        if own:
            _add_marks(figure, own, state)
    list_names(figure, ["<br>".join(map(_literal, textwrap.wrap(claim.title, _WIDTH))) for claim in drawn])
    figure.update_xaxes(type="log", range=[-1.85, 1.75], tickvals=list(_TICKS), ticktext=list(_TICKS.values()))
    failed, known = [c for c in drawn if c.state == "fail"], [c for c in drawn if c.value is not None]
    worst = f" Failed: {', '.join(claim.title.lower() for claim in failed)}." if failed else " None failed."
    unknown = f" {len(drawn) - len(known)} not looked at or not known." if len(known) < len(drawn) else ""
    alt = f"{len(known)} measured claims beside their thresholds.{worst}{unknown}"
    return Chart(figure=figure, table=table, alt=alt)


def _add_marks(figure: go.Figure, claims: Mapping[int, MeasuredClaim], state: CheckState) -> None:
    """Marks of claims in one state, by their row; each has a value and a limit."""
    ends = [[c.value if end is None else end for end in (c.value, c.low, c.high)] for c in claims.values()]
    shares = np.array(ends) / np.array([[claim.limit] for claim in claims.values()])
    x, low, high = np.clip(shares, _MIN, _MAX).T
    below, above = np.maximum(x - low, 0), np.maximum(high - x, 0)
    colour, symbol = MARKS[state]
    interval = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    figure.add_scatter(
        x=x,
        y=list(claims),
        mode="markers",
        name=WORDS[state],
        marker={"color": colour, "symbol": symbol, "size": 13, "line": {"width": 1}},
        error_x={**interval, "thickness": 1.5, "width": 4},
        customdata=[[_literal(text) for text in (c.title, c.measured, c.asked)] for c in claims.values()],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>asked: %{customdata[2]}<extra></extra>",
    )


def _literal(text: str) -> str:
    return html.escape(text, quote=False)


def epsilon_chart(*, earlier: Fraction, this: Fraction, policy: Fraction, total: Fraction | None) -> Chart:
    """A bullet bar: what the data set has lost before, what this release adds, and the policy as a line.

    Args:
        earlier: Epsilon of everything else that was taken from the data set.
        this: Epsilon of this release.
        policy: Most that the reviewer allows together.
        total: The account's total; None where there is no account.
    """
    parts = [("other releases and estimates", earlier, ""), ("this release", this, "/")]
    lines = [("policy", policy, 4, WARNING), *([("account's total", total, 2, REFERENCE)] if total is not None else [])]
    figure = new_figure(x_title="epsilon, added up over the data set", y_title="", height=190, barmode="stack")
    for name, amount, pattern in parts:
        if amount:
            style = {"color": ORIGINAL, "opacity": 1.0 if pattern else 0.55, "pattern": {"shape": pattern}}
            hover = f"{name}: epsilon %{{x:.4g}}<extra></extra>"
            bar = {"x": [float(amount)], "y": ["privacy loss"], "orientation": "h", "width": 0.5}
            figure.add_bar(name=name, marker=style, hovertemplate=hover, **bar)
    for name, amount, width, colour in lines:
        ends = {"x": [float(amount)] * 2, "y": ["privacy loss"] * 2}
        style = {"symbol": "line-ns", "size": 56, "line": {"width": width, "color": colour}}
        hover = f"{name}: epsilon %{{x:.4g}}<extra></extra>"
        figure.add_scatter(mode="markers", name=name, marker=style, hovertemplate=hover, showlegend=True, **ends)
    spent = earlier + this
    amounts = {name: amount for name, amount, *_ in [*parts, *lines]}
    figure.update_xaxes(range=[0, 1.08 * float(max(spent, *amounts.values()))])
    amounts["left of the policy"] = policy - spent
    table = pd.DataFrame({"what": name, "epsilon": float(amount)} for name, amount in amounts.items())
    alt = f"A privacy loss of epsilon {float(spent):.4g}, of which this release {float(this):.4g}: "
    alt += f"{'within' if spent <= policy else 'above'} the policy of {float(policy):.4g}."
    return Chart(figure=figure, table=table, alt=alt)


_NODES = {
    "Private rows": (0.001, 0.65),
    "Public facts": (0.001, 0.1),
    "Mechanism": (0.32, 0.3),
    "Synthetic rows": (0.6, 0.36),
    "Comparison": (0.7, 0.62),
    "Release bundle": (0.999, 0.14),
    "Review report": (0.999, 0.84),
}
_INSIDE = frozenset({"Private rows", "Comparison", "Review report"})
_FLOWS = (
    ("Private rows", "Mechanism", 2, "counts, only with noise that was paid for"),
    ("Public facts", "Mechanism", 1, "bounds, categories, unit of protection"),
    ("Mechanism", "Synthetic rows", 3, "rows drawn from the noisy summary"),
    ("Synthetic rows", "Release bundle", 2, "CSV and Parquet"),
    ("Public facts", "Release bundle", 1, "schema, configuration, data card, metadata"),
    ("Private rows", "Comparison", 2, "every row, for the diagnostics"),
    ("Synthetic rows", "Comparison", 1, "every row, for the diagnostics"),
    ("Comparison", "Review report", 3, "scores, pictures, checklist, decision"),
)


def flow_chart() -> Chart:
    """What leaves the building and what stays, as a flow from left to right."""
    index, (x, y) = {name: i for i, name in enumerate(_NODES)}, zip(*_NODES.values(), strict=True)
    table = pd.DataFrame(_FLOWS, columns=["from", "to", "size", "what"])
    # What the comparison has taken in does not come out.
    inside = table["to"].isin(_INSIDE)
    ends = {"Release bundle": "<br>(may leave)", "Review report": "<br>(stays inside)"}
    figure = go.Figure()
    margin = {"l": 8, "r": 8, "t": 16, "b": 24}
    figure.update_layout(height=300, margin=margin, font={"size": FONT_SIZE}, paper_bgcolor="rgba(0,0,0,0)")
    figure.add_sankey(
        arrangement="fixed",
        textfont={"size": FONT_SIZE + 1, "weight": 600, "shadow": "none"},
        node={
            "label": [name + ends.get(name, "") for name in _NODES],
            "color": [FAILED if name in _INSIDE else GOOD for name in _NODES],
            "x": x,
            "y": y,
            "pad": 24,
            "thickness": 16,
            "line": {"width": 0},
            "hovertemplate": "%{label}<extra></extra>",
        },
        link={
            "source": table["from"].map(index),
            "target": table["to"].map(index),
            "value": table["size"],
            "color": [rgba(FAILED if stays else GOOD, 0.35) for stays in inside],
            "customdata": table["what"],
            "hovertemplate": "%{source.label} to %{target.label}:<br>%{customdata}<extra></extra>",
        },
    )
    table = table.drop(columns="size").assign(where=np.where(inside, "stays inside", "may leave"))
    alt = "What leaves and what stays: from private rows, noisy counts lead through the mechanism to synthetic rows "
    alt += "and the release bundle, which may leave. The comparison with the original leads to the review report, "
    return Chart(figure=figure, table=table, alt=f"{alt}which stays inside.")
