"""Pictures for a reviewer: claims beside their thresholds, epsilon beside its policy, what leaves and what stays."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.theme import FONT_SIZE, GOOD, ORIGINAL, REFERENCE, WARNING, Chart, new_figure

FAILED = "#D33F49"
"""Legible on light and dark grounds; nothing else has it, and its mark differs by shape too."""
CheckState: TypeAlias = Literal["pass", "warn", "open", "fail"]
STATES: tuple[CheckState, ...] = ("pass", "warn", "open", "fail")
"""From best to worst; open is what nobody has looked at."""
MARKS: dict[CheckState, tuple[str, str]] = {
    "pass": (GOOD, "circle"), "warn": (WARNING, "triangle-up"), "open": (REFERENCE, "circle-open"),
    "fail": (FAILED, "x"),
}  # fmt: skip
"""Colour and shape."""
WORDS: dict[CheckState, str] = {"pass": "passed", "warn": "to weigh", "open": "not looked at", "fail": "failed"}
_LEAST, _MOST = 0.02, 50.0
"""Ends of the strip, in thresholds; what lies beyond is drawn at the end."""
_TICKS = {0.1: "a tenth", 1.0: "threshold", 10.0: "ten times"}
_WIDTH = 22
"""Letters on a line of a claim's name."""


@dataclass(frozen=True, kw_only=True)
class MeasuredClaim:
    """Something that is claimed, what is asked of it, and what was measured."""

    title: str
    """The claim, in a few words."""
    asked: str
    """The threshold, in words."""
    measured: str
    """What was found, in words."""
    state: CheckState
    """What follows."""
    limit: float | None = None
    """The threshold as a number, where it is one."""
    value: float | None = None
    """What was measured as a number, on the same scale."""
    low: float | None = None
    """Lower end of its 95% interval."""
    high: float | None = None
    """Upper end of its 95% interval."""


def claims_chart(claims: Sequence[MeasuredClaim]) -> Chart:
    """Each measured claim as a mark on one strip, in units of its own threshold: left of the line is within.

    Args:
        claims: Those with a threshold are drawn; the table has them all.
    """
    table = pd.DataFrame(
        [{"claim": c.title, "asked": c.asked, "measured": c.measured, "verdict": WORDS[c.state]} for c in claims]
    )
    drawn = [claim for claim in claims if claim.limit]
    figure = new_figure(
        x_title="measured, in thresholds (log scale)", y_title="", height=110 + 46 * max(2, len(drawn)), showlegend=True
    )
    figure.add_vrect(x0=1.0, x1=_MOST, fillcolor=FAILED, opacity=0.08, line={"width": 0}, layer="below")
    figure.add_vline(x=1.0, line={"color": REFERENCE, "width": 2})
    for state, (colour, symbol) in MARKS.items():
        mine = [(place, c) for place, c in enumerate(drawn) if c.state == state and c.value is not None]
        if mine:
            _marks(figure, mine, WORDS[state], colour, symbol)
    names = ["<br>".join(html.escape(line, quote=False) for line in textwrap.wrap(c.title, _WIDTH)) for c in drawn]
    figure.update_yaxes(tickvals=list(range(len(drawn))), ticktext=names, range=[len(drawn) - 0.4, -0.6])
    figure.update_xaxes(type="log", range=[-1.85, 1.75], tickvals=list(_TICKS), ticktext=list(_TICKS.values()))
    failed, known = [c for c in drawn if c.state == "fail"], [c for c in drawn if c.value is not None]
    worst = f" Failed: {', '.join(claim.title.lower() for claim in failed)}." if failed else " None failed."
    unknown = f" {len(drawn) - len(known)} not looked at or not known." if len(known) < len(drawn) else ""
    return Chart(
        figure=figure, table=table, alt=f"{len(known)} measured claims beside their thresholds.{worst}{unknown}"
    )


def _marks(figure: go.Figure, mine: Sequence[tuple[int, MeasuredClaim]], name: str, colour: str, symbol: str) -> None:
    xs, lows, highs = [], [], []
    for _, claim in mine:
        limit, value = claim.limit or 1.0, claim.value or 0.0
        x = _within(value / limit)
        xs.append(x)
        lows.append(x - min(x, _within((value if claim.low is None else claim.low) / limit)))
        highs.append(max(x, _within((value if claim.high is None else claim.high) / limit)) - x)
    figure.add_scatter(
        x=xs, y=[place for place, _ in mine], mode="markers", name=name,
        marker={"color": colour, "symbol": symbol, "size": 13, "line": {"width": 1}},
        error_x={"type": "data", "symmetric": False, "array": highs, "arrayminus": lows, "thickness": 1.5, "width": 4},
        customdata=[[html.escape(text, quote=False) for text in (c.title, c.measured, c.asked)] for _, c in mine],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>asked: %{customdata[2]}<extra></extra>",
    )  # fmt: skip


def _within(share: float) -> float:
    return min(max(share, _LEAST), _MOST)


def epsilon_chart(*, earlier: Fraction, this: Fraction, policy: Fraction, total: Fraction | None) -> Chart:
    """A bullet bar: what the data set has lost before, what this release adds, and the policy as a line.

    Args:
        earlier: Epsilon of everything else that was taken from the data set.
        this: Epsilon of this release.
        policy: Most that the reviewer allows together.
        total: The account's total; None where there is no account.
    """
    parts = [("other releases and estimates", earlier, ""), ("this release", this, "/")]
    lines = [("policy", policy, "solid"), *([("account's total", total, "dash")] if total is not None else [])]
    figure = new_figure(x_title="epsilon, added up over the data set", y_title="", height=190, barmode="stack")
    for name, amount, pattern in parts:
        if not amount:
            continue
        figure.add_bar(
            x=[float(amount)], y=["spent"], orientation="h", name=name, width=0.5,
            marker={"color": ORIGINAL, "opacity": 0.55 if not pattern else 1.0, "pattern": {"shape": pattern}},
            hovertemplate=f"{name}: epsilon %{{x:.4g}}<extra></extra>",
        )  # fmt: skip
    for name, amount, dash in lines:
        figure.add_scatter(
            x=[float(amount)] * 2, y=["spent", "spent"], mode="markers", showlegend=True, name=name,
            marker={
                "symbol": "line-ns", "size": 56, "line": {"width": 4 if dash == "solid" else 2, "color":
                WARNING if dash == "solid" else REFERENCE},
            },
            hovertemplate=f"{name}: epsilon %{{x:.4g}}<extra></extra>",
        )  # fmt: skip
    spent = earlier + this
    figure.update_xaxes(range=[0, 1.08 * float(max(spent, *(amount for _, amount, _ in lines)))])
    table = pd.DataFrame(
        [{"what": name, "epsilon": float(amount)} for name, amount, _ in [*parts, *lines]]
        + [{"what": "left of the policy", "epsilon": float(policy - spent)}]
    )
    judged = "within" if spent <= policy else "above"
    return Chart(
        figure=figure, table=table,
        alt=f"Epsilon {float(spent):.4g} spent, of which this release {float(this):.4g}: {judged} the policy of "
        f"{float(policy):.4g}.",
    )  # fmt: skip


_NODES = {
    "Private rows": (0.001, 0.65), "Public facts": (0.001, 0.1), "Mechanism": (0.33, 0.3),
    "Synthetic rows": (0.58, 0.3), "Comparison": (0.74, 0.82), "Release bundle": (0.999, 0.2),
    "Review report": (0.999, 0.82),
}  # fmt: skip
"""Where each stands."""
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


def flow_chart(ink: str | None = None) -> Chart:
    """What leaves the building and what stays, as a flow from left to right.

    Args:
        ink: Colour of the names, which stand on coloured ground; None: as the theme has it.
    """
    place = {name: i for i, name in enumerate(_NODES)}
    # What the comparison has taken in does not come out.
    stays = [target in _INSIDE for _, target, _, _ in _FLOWS]
    ends = {"Release bundle": "<br>(may leave)", "Review report": "<br>(stays inside)"}
    figure = go.Figure()
    figure.update_layout(
        height=300, margin={"l": 8, "r": 8, "t": 16, "b": 24}, font={"size": FONT_SIZE}, paper_bgcolor="rgba(0,0,0,0)"
    )
    figure.add_sankey(
        arrangement="fixed", textfont={"size": FONT_SIZE + 1, "weight": 600, "shadow": "none", "color": ink},
        node={
            "label": [name + ends.get(name, "") for name in _NODES],
            "color": [FAILED if name in _INSIDE else GOOD for name in _NODES],
            "x": [x for x, _ in _NODES.values()], "y": [y for _, y in _NODES.values()],
            "pad": 24, "thickness": 16, "line": {"width": 0}, "hovertemplate": "%{label}<extra></extra>",
        },
        link={
            "source": [place[source] for source, _, _, _ in _FLOWS],
            "target": [place[target] for _, target, _, _ in _FLOWS],
            "value": [size for _, _, size, _ in _FLOWS],
            "color": [f"rgba({'211,63,73' if inside else '0,158,115'},0.35)" for inside in stays],
            "customdata": [words for _, _, _, words in _FLOWS],
            "hovertemplate": "%{source.label} to %{target.label}:<br>%{customdata}<extra></extra>",
        },
    )  # fmt: skip
    table = pd.DataFrame(
        [
            {"from": source, "to": target, "what": words, "where": "stays inside" if inside else "may leave"}
            for (source, target, _, words), inside in zip(_FLOWS, stays, strict=True)
        ]
    )
    return Chart(
        figure=figure, table=table,
        alt="What leaves and what stays: from private rows, noisy counts lead through the mechanism to synthetic rows "
        "and the release bundle, which may leave. The comparison with the original leads to the review report, which "
        "stays inside.",
    )  # fmt: skip
