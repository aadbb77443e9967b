"""One look for every figure."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpsynth_core.charts.palette import COLORWAY, rgba

FONT_SIZE = 13
LINE_HEIGHT = 17
AXIS_LETTERS = 44
"""Of an axis title in one line, so that it fits under a figure on a narrow screen."""
HALF_AXIS_LETTERS = 24
"""The same under one of two figures side by side."""
SMALL_AXIS_LETTERS = 14
"""The same under one of three small figures side by side."""
TITLE_LETTERS = 60
"""That fit side by side over all panels of a figure on a page at 150% zoom."""
MAX_LABEL = 28
Y_STANDOFF = 12
"""Pixels between the title of a vertical axis and the widest of its labels."""
AXIS: dict[str, Any] = {
    "automargin": True,
    "gridcolor": "rgba(128,128,128,0.25)",
    "zeroline": False,
    # 1,000 and 10,000 beside each other, not 1000 and 10k.
    "separatethousands": True,
    "minexponent": 6,
}
STYLE: dict[str, Any] = {
    "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
    "font": {"size": FONT_SIZE},
    "colorway": COLORWAY,
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "bargap": 0.04,
    "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
}
"""Given to a figure when it is made: to update it afterwards takes Plotly ten times as long, and a page has many."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure, the same numbers as a table, and the same message in words for readers who cannot see it."""

    figure: go.Figure
    table: pd.DataFrame
    alt: str


def plain(text: object) -> str:
    """Text from a user's file as Plotly will show it literally: its labels understand a subset of HTML."""
    shown = str(text)
    shown = shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "…"
    return html.escape(shown, quote=False)


def number(value: object) -> str:
    return plain(f"{value:.4g}" if isinstance(value, float) else value)


def new_figure(*, x_title: str, y_title: str, height: int = 260, **layout: Any) -> go.Figure:
    """An empty figure in the common style; axis titles are mandatory."""
    axes = {
        "xaxis": {**AXIS, "title": {"text": wrapped(x_title, AXIS_LETTERS), "standoff": 10}},
        "yaxis": {**AXIS, "title": {"text": y_title, "standoff": Y_STANDOFF}},
    }
    figure = go.Figure(layout={**STYLE, **axes, "height": height})
    if layout:
        figure.update_layout(**layout)
    return figure


def new_panels(rows: int, cols: int, titles: Sequence[str], *, height: int, **grid: Any) -> go.Figure:
    """Empty panels in the common style; the titles of panels side by side are broken into lines, not run together."""
    broken = [wrapped(title, TITLE_LETTERS // cols) for title in titles] if cols > 1 else list(titles)
    lines = max((title.count("<br>") for title in broken), default=0)
    margin = {**STYLE["margin"], "t": STYLE["margin"]["t"] + lines * LINE_HEIGHT}
    blank = go.Figure(layout={**STYLE, "margin": margin, "height": height})
    figure = make_subplots(rows=rows, cols=cols, subplot_titles=broken, figure=blank, **grid)
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    return figure


def wrapped(title: str, letters: int) -> str:
    """A title in lines of at most so many letters, where its spaces allow.

    Example:
        >>> wrapped("perturbed histogram", 12)
        'perturbed<br>histogram'
    """
    lines = (
        textwrap.wrap(line, letters, break_long_words=False, break_on_hyphens=False) for line in title.split("<br>")
    )
    return "<br>".join("<br>".join(line) for line in lines) or title


def add_band(figure: go.Figure, frame: pd.DataFrame, colour: str, **where: Any) -> None:
    """The area between the columns ``low`` and ``high`` over ``epsilon``, drawn under the line."""
    figure.add_scatter(
        x=[*frame["epsilon"], *frame["epsilon"][::-1]],
        y=[*frame["high"], *frame["low"][::-1]],
        fill="toself",
        fillcolor=rgba(colour, 0.18),
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        **where,
    )


def list_names(figure: go.Figure, names: Sequence[str]) -> None:
    """Name the rows of a chart from top to bottom: the vertical axis holds their indices."""
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=list(names), range=[len(names) - 0.4, -0.6])
