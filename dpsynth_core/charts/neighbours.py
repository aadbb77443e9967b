"""What a release reveals about one row: its distributions with the row and without it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.charts.palette import COLORWAY, REFERENCE, SYNTHETIC_PATTERN
from dpsynth_core.charts.theme import Chart, new_figure
from dpsynth_core.teaching.neighbours import STATISTIC, NeighbourDemonstration

BINS = 30


def neighbours_chart(shown: NeighbourDemonstration) -> Chart:
    """Two histograms on one axis, and the event that separates them best."""
    both = np.append(shown.with_row, shown.without)
    low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    frame = pd.DataFrame({"from": edges[:-1], "to": edges[1:]})
    frame["with the row"], frame["without it"] = (
        np.histogram(sample, edges)[0] / len(sample) for sample in (shown.with_row, shown.without)
    )
    figure = new_figure(x_title=STATISTIC, y_title="share of runs", height=300, barmode="overlay")
    for name, colour, pattern in (("with the row", COLORWAY[3], ""), ("without it", REFERENCE, SYNTHETIC_PATTERN)):
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=frame[name],
            name=name,
            opacity=0.6,
            marker={"color": colour, "pattern": {"shape": pattern}},
            width=float(edges[1] - edges[0]),
            hovertemplate="%{x:.3g}: %{y:.1%}<extra>" + name + "</extra>",
        )
    figure.add_vline(x=shown.bound.cut, line={"color": REFERENCE, "dash": "dash"})
    figure.update_yaxes(tickformat=".0%")
    return Chart(figure=figure, table=frame, alt=f"Two histograms of {STATISTIC}. {shown.sentence}")
