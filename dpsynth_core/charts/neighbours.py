"""What a release tells about one row: its distributions with the row and without it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.charts.theme import COLORWAY, REFERENCE, SYNTHETIC_PATTERN, Chart, new_figure
from dpsynth_core.teaching.neighbours import STATISTIC, NeighbourDemonstration

BINS = 30


def neighbours_chart(shown: NeighbourDemonstration) -> Chart:
    """Two histograms on one axis, and the event that tells them apart best."""
    both = np.append(shown.with_row, shown.without)
    low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    shares = [np.histogram(sample, edges)[0] / len(sample) for sample in (shown.with_row, shown.without)]
    figure = new_figure(x_title=STATISTIC, y_title="share of runs", height=300, barmode="overlay")
    middles = (edges[:-1] + edges[1:]) / 2
    for name, share, colour, pattern in (
        ("with the row", shares[0], COLORWAY[3], ""), ("without it", shares[1], REFERENCE, SYNTHETIC_PATTERN),
    ):  # fmt: skip
        figure.add_bar(
            x=middles, y=share, name=name, opacity=0.6, marker={"color": colour, "pattern": {"shape": pattern}},
            width=float(edges[1] - edges[0]), hovertemplate="%{x:.3g}: %{y:.1%}<extra>" + name + "</extra>",
        )  # fmt: skip
    figure.add_vline(x=shown.bound.cut, line={"color": REFERENCE, "dash": "dash"})
    figure.update_yaxes(tickformat=".0%")
    table = pd.DataFrame({"from": edges[:-1], "to": edges[1:], "with the row": shares[0], "without it": shares[1]})
    return Chart(figure=figure, table=table, alt=f"Two histograms of {STATISTIC}. {shown.sentence}")
