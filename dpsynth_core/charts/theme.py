"""One look for every figure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpsynth_core.mechanisms import MECHANISMS

# Okabe & Ito's palette: colour-blind readers can distinguish it, on light and dark backgrounds.
ORIGINAL = "#0072B2"
SYNTHETIC = "#D55E00"
REFERENCE = "#8A8F98"
GOOD, WARNING = "#009E73", "#E69F00"
COLORWAY = [ORIGINAL, SYNTHETIC, "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
SYNTHETIC_PATTERN = "/"
TABLES = (("original", ORIGINAL, ""), ("synthetic", SYNTHETIC, SYNTHETIC_PATTERN))
"""Name, colour and pattern of the two tables wherever they are compared."""
SYMBOLS = ("circle", "diamond", "square", "cross")
RELEASE_COLOURS = (SYNTHETIC, *COLORWAY[2:5])
"""Of up to four releases: the first has the colour that synthetic rows have everywhere."""
NEUTRAL = "rgba(128,128,128,0.06)"
"""Nothing at all, on light and dark backgrounds."""
BADNESS = [[0.0, NEUTRAL], [0.5, "#B284BE"], [1.0, "#5B2A86"]]
"""Of heat maps from good to bad."""
SHARES = {"original": [[0.0, NEUTRAL], [1.0, ORIGINAL]], "synthetic": [[0.0, NEUTRAL], [1.0, SYNTHETIC]]}
"""Of heat maps of rows, each in its table's colour."""
CORRELATIONS = [[0.0, "#CC79A7"], [0.5, NEUTRAL], [1.0, "#009E73"]]
"""Of heat maps from -1 to 1."""
DIFFERENCES = [[0.0, ORIGINAL], [0.5, NEUTRAL], [1.0, SYNTHETIC]]
"""Of heat maps on both sides of zero: more in the original, more in the synthetic table."""
FONT_SIZE = 13
MAX_LABEL = 28
AXIS = {"automargin": True, "gridcolor": "rgba(128,128,128,0.25)", "zeroline": False}
FRESH_SAMPLE = {"color": REFERENCE, "dash": "dash", "width": 1.5}
"""The line at what a fresh sample of the original would show."""
# The first two colours mean original and synthetic everywhere, so lines of mechanisms begin with the third.
_LINE_COLOURS = (*COLORWAY[2:], REFERENCE, "#A05A00", "#6A51A3", "#4D9221", "#7A0019")
_LINE_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_LINE_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "x", "star", "pentagon", "cross", "hexagon", "bowtie")


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
    """A value of a table as a short label."""
    return plain(f"{value:.4g}" if isinstance(value, float) else value)


def rgba(colour: str, opacity: float) -> str:
    """A colour like ``#0072B2``, made transparent.

    Example:
        >>> rgba(ORIGINAL, 0.5)
        'rgba(0,114,178,0.5)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def new_figure(*, x_title: str, y_title: str, height: int = 260, **layout: Any) -> go.Figure:
    """An empty figure in the common style; axis titles are mandatory."""
    figure = _styled(go.Figure(), height, **layout)
    figure.update_xaxes(title={"text": x_title, "standoff": 6})
    figure.update_yaxes(title={"text": y_title, "standoff": 6})
    return figure


def new_panels(rows: int, cols: int, titles: Sequence[str], *, height: int, **grid: Any) -> go.Figure:
    """Empty panels in the common style."""
    figure = _styled(make_subplots(rows=rows, cols=cols, subplot_titles=list(titles), **grid), height)
    figure.update_annotations(font_size=FONT_SIZE)
    return figure


def _styled(figure: go.Figure, height: int, **layout: Any) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        font={"size": FONT_SIZE},
        colorway=COLORWAY,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        bargap=0.04,
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        **layout,
    )
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    return figure


def line_style(index: int) -> dict[str, Any]:
    """How a scatter trace draws the line with this index: the first 90 differ, the first 30 even without colour."""
    colour, dash, symbol = (kinds[index % len(kinds)] for kinds in (_LINE_COLOURS, _LINE_DASHES, _LINE_SYMBOLS))
    return {
        "mode": "lines+markers",
        "line": {"color": colour, "dash": dash, "width": 2.5},
        "marker": {"symbol": symbol, "size": 10},
    }


def mechanism_style(key: str) -> dict[str, Any]:
    """A mechanism's line, the same in every chart: it follows from the registry."""
    return line_style(list(MECHANISMS).index(key))


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
