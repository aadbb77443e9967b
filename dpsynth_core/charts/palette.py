"""Colours, patterns and symbols, the same in every figure."""

from __future__ import annotations

from typing import Any

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
FRESH_SAMPLE = {"color": REFERENCE, "dash": "dash", "width": 1.5}
"""The line at what a fresh sample of the original would show."""
# The first two colours mean original and synthetic everywhere, so lines of mechanisms begin with the third.
_LINE_COLOURS = (*COLORWAY[2:], "#999933", "#A05A00", "#6A51A3", "#4D9221", "#7A0019")
_LINE_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_LINE_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "x", "star", "pentagon", "cross", "hexagon", "bowtie")


def rgba(colour: str, opacity: float) -> str:
    """A colour like ``#0072B2``, made transparent.

    Example:
        >>> rgba(ORIGINAL, 0.5)
        'rgba(0,114,178,0.5)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


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
