"""Coefficients of a regression from several sources. Private, like the result they are drawn from."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpsynth_core.charts.theme import COLORWAY, ORIGINAL, REFERENCE, SYNTHETIC, Chart, new_figure, plain
from dpsynth_core.diagnostics.base import Result

SYMBOLS = ("circle", "diamond", "triangle-up", "triangle-down", "square", "cross")
OTHERS = (COLORWAY[5], REFERENCE)
RELEASES = (SYNTHETIC, *COLORWAY[2:5])
GROUP_HEIGHT = 18
"""For every source of every coefficient."""


def coefficient_chart(results: Mapping[str, Result], *, most: int = 12) -> Chart:
    """A forest plot: for every slope a mark and an interval for each source, on one standardised scale.

    Args:
        results: The regression diagnostic for up to four releases, by the releases' names.
        most: Slopes drawn, those that the first release keeps worst first; the table has them all.
    """
    first = next(iter(results.values()))
    table = _gathered(results)
    worst = [item.name for item in first.items][:most]
    sources = list(dict.fromkeys(table["source"]))
    figure = new_figure(
        x_title="standardised slope (with its 95% interval)", y_title="",
        height=140 + GROUP_HEIGHT * max(4, len(worst) * len(sources)),
    )  # fmt: skip
    styles = _styles(sources, len(results))
    for number, source in enumerate(sources):
        rows = table[(table["source"] == source) & table["term"].isin(worst)].set_index("term")
        shown = [term for term in worst if term in rows.index]
        offset = ((number + 1) / (len(sources) + 1) - 0.5) * 0.8
        values = rows.loc[shown, "standardised estimate"]
        colour, symbol = styles[source]
        figure.add_scatter(
            x=values, y=[worst.index(term) + offset for term in shown], mode="markers", name=plain(source),
            marker={"color": colour, "symbol": symbol, "size": 9},
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.5, "width": 3,
                "array": rows.loc[shown, "standardised high"] - values,
                "arrayminus": values - rows.loc[shown, "standardised low"],
            },
            customdata=[[plain(term), f"{rows.loc[term, 'estimate']:.4g}"] for term in shown],
            hovertemplate="%{customdata[0]}: %{x:.3g} standardised, %{customdata[1]} in its own units<extra></extra>",
        )  # fmt: skip
    figure.add_vline(x=0, line={"color": REFERENCE, "dash": "dash", "width": 1})
    figure.update_yaxes(
        tickvals=list(range(len(worst))), ticktext=[plain(term) for term in worst], range=[len(worst) - 0.4, -0.6]
    )
    return Chart(figure=figure, table=table, alt=_told(first, len(worst)))


def _gathered(results: Mapping[str, Result]) -> pd.DataFrame:
    """The coefficients of every release in one table; the original's and the private regressions' once."""
    parts = []
    for place, (label, result) in enumerate(results.items()):
        frame = result.tables["coefficients"]
        synthetic = frame["source"] == "synthetic"
        own = frame[synthetic].assign(source=f"synthetic {label}" if len(results) > 1 else "synthetic")
        parts += [own] if place else [frame[frame["source"] == "original"], own]
    rest = next(iter(results.values())).tables["coefficients"]
    parts.append(rest[~rest["source"].isin(["original", "synthetic"])])
    return pd.concat(parts, ignore_index=True)


def _styles(sources: list[str], releases: int) -> dict[str, tuple[str, str]]:
    """Colour and symbol of every source: original first, then the releases, then the private regressions."""
    colours = (ORIGINAL, *RELEASES[:releases], *OTHERS)
    symbols = (SYMBOLS[0], SYMBOLS[1], *("square", "cross", "x")[: releases - 1], *SYMBOLS[2:4])
    return dict(zip(sources, zip(colours, symbols, strict=True), strict=False))


def _told(result: Result, shown: int) -> str:
    worst = result.headline
    value = "could not be computed" if worst.value is None else f"has an interval gap of {worst.value:.2g}"
    return f"Forest plot of {shown} slopes, original against synthetic. The worst, {worst.name}, {value}."
