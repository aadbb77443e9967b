"""A series of points that a mechanism reports while it runs."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.charts.palette import ORIGINAL
from dpsynth_core.charts.theme import Chart, new_figure, plain
from dpsynth_core.progress import Series


def series_chart(line: Series) -> Chart:
    """One line, as far as it is known by now."""
    frame = pd.DataFrame(line.points, columns=[line.along, line.name])
    figure = new_figure(x_title=plain(line.along), y_title=plain(line.name), height=220, showlegend=False)
    figure.add_scatter(x=frame[line.along], y=frame[line.name], mode="lines+markers", line={"color": ORIGINAL})
    x, y = line.points[-1]
    return Chart(figure=figure, table=frame, alt=f"Line of {line.name} by {line.along}. At {x:g} it is {y:.4g}.")
