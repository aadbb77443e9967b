"""Coefficients of a regression from several sources. Private, like the result they are drawn from."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpsynth_core.charts.palette import COLORWAY, ORIGINAL, REFERENCE, RELEASE_COLOURS
from dpsynth_core.charts.theme import Chart, list_names, new_figure, plain
from dpsynth_core.diagnostics.base import Result
from dpsynth_core.diagnostics.regression import COMPARATORS

SYMBOLS = ("diamond", "square", "cross", "x")
SOURCE_HEIGHT = 18
MAX_SLOPES = 12
"""Drawn, starting with those that the first release gets most wrong; the table has them all."""


def coefficient_chart(results: Mapping[str, Result]) -> Chart:
    """A forest plot: for every slope a mark and an interval for each source, on one standardised scale.

    Takes the regression diagnostic for up to four releases, by the releases' names.
    """
    first = next(iter(results.values()))
    table = _gathered(results)
    terms = [item.name for item in first.items][:MAX_SLOPES]
    sources = list(dict.fromkeys(table["source"]))
    height = 140 + SOURCE_HEIGHT * max(4, len(terms) * len(sources))
    x_title = "standardised slope (with its 95% interval"
    x_title += "; of private regressions, 95% of their runs)" if set(COMPARATORS) & set(sources) else ")"
    figure = new_figure(x_title=x_title, y_title="", height=height)
    styles = _styles(sources, len(results))
    for number, source in enumerate(sources):
        rows = table[(table["source"] == source) & table["term"].isin(terms)].set_index("term")
        rows = rows.loc[[term for term in terms if term in rows.index]]
        offset = ((number + 1) / (len(sources) + 1) - 0.5) * 0.8
        values, low, high = (rows[f"standardised {which}"] for which in ("estimate", "low", "high"))
        interval = {"type": "data", "symmetric": False, "array": high - values, "arrayminus": values - low}
        figure.add_scatter(
            x=values,
            y=[terms.index(term) + offset for term in rows.index],
            mode="markers",
            name=plain(source),
            marker={**styles[source], "size": 9},
            error_x={**interval, "thickness": 1.5, "width": 3},
            customdata=[[plain(term), f"{own:.4g}"] for term, own in rows["estimate"].items()],
            hovertemplate="%{customdata[0]}: %{x:.3g} standardised, %{customdata[1]} in its own units<extra></extra>",
        )
    figure.add_vline(x=0, line={"color": REFERENCE, "dash": "dash", "width": 1})
    list_names(figure, [plain(term) for term in terms])
    worst = first.headline
    value = "could not be computed" if worst.value is None else f"has an interval gap of {worst.value:.2g}"
    alt = f"Forest plot of {len(terms)} slopes, original against synthetic. The worst, {worst.name}, {value}."
    return Chart(figure=figure, table=table, alt=alt)


def _gathered(results: Mapping[str, Result]) -> pd.DataFrame:
    """The coefficients of every release in one table; the original's and the private regressions' once."""
    parts = []
    for index, (label, result) in enumerate(results.items()):
        frame = result.tables["coefficients"]
        synthetic = frame["source"] == "synthetic"
        own = frame[synthetic].assign(source=f"synthetic {label}" if len(results) > 1 else "synthetic")
        parts += [own] if index else [frame[frame["source"] == "original"], own]
    rest = next(iter(results.values())).tables["coefficients"]
    parts.append(rest[~rest["source"].isin(["original", "synthetic"])])
    return pd.concat(parts, ignore_index=True)


def _styles(sources: list[str], releases: int) -> dict[str, dict[str, str]]:
    """Colour and symbol of every source: original first, then the releases, then the private regressions."""
    colours = (ORIGINAL, *RELEASE_COLOURS[:releases], COLORWAY[5], REFERENCE)
    symbols = ("circle", *SYMBOLS[:releases], "triangle-up", "triangle-down")
    styles = ({"color": colour, "symbol": symbol} for colour, symbol in zip(colours, symbols, strict=True))
    return dict(zip(sources, styles, strict=False))
