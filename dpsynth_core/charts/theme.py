"""One look for every figure."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

# Okabe & Ito's palette: told apart by colour-blind readers and legible on light and dark grounds.
ORIGINAL = "#0072B2"
SYNTHETIC = "#D55E00"
REFERENCE = "#8A8F98"
GOOD, WARNING = "#009E73", "#E69F00"
COLORWAY = [ORIGINAL, SYNTHETIC, "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
SYNTHETIC_PATTERN = "/"
NEUTRAL = "rgba(128,128,128,0.06)"
"""Nothing at all, on light and dark grounds."""
BADNESS = [[0.0, NEUTRAL], [0.5, "#B284BE"], [1.0, "#5B2A86"]]
"""Of heat maps from good to bad."""
SHARES = {"original": [[0.0, NEUTRAL], [1.0, ORIGINAL]], "synthetic": [[0.0, NEUTRAL], [1.0, SYNTHETIC]]}
"""Of heat maps of rows, each in its table's colour."""
CORRELATIONS = [[0.0, "#CC79A7"], [0.5, NEUTRAL], [1.0, "#009E73"]]
"""Of heat maps from -1 to 1."""
DIFFERENCES = [[0.0, ORIGINAL], [0.5, NEUTRAL], [1.0, SYNTHETIC]]
"""Of heat maps to both sides of zero: more in the original, more in the synthetic table."""
FONT_SIZE = 13
MAX_LABEL = 28


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure, the same numbers as a table, and a sentence for those who cannot see it."""

    figure: go.Figure
    """To be drawn."""
    table: pd.DataFrame
    """To be read."""
    alt: str
    """To be spoken: what the figure shows, and its main message."""


def plain(text: object) -> str:
    """Text from a user's file as Plotly will show it literally: its labels understand a subset of HTML."""
    shown = str(text)
    shown = shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "…"
    return html.escape(shown, quote=False)


def new_figure(*, x_title: str, y_title: str, height: int = 260, **layout: Any) -> go.Figure:
    """An empty figure in the common style; axis titles are mandatory."""
    figure = go.Figure()
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
    axis = {"automargin": True, "gridcolor": "rgba(128,128,128,0.25)", "zeroline": False}
    figure.update_xaxes(title={"text": x_title, "standoff": 6}, **axis)
    figure.update_yaxes(title={"text": y_title, "standoff": 6}, **axis)
    return figure
