"""What a run reports while it works, and what runs have spent on a data set, charge by charge."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.charts.palette import ORIGINAL, REFERENCE
from dpsynth_core.charts.theme import Chart, new_figure, plain
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.progress import Series


def series_chart(line: Series) -> Chart:
    """One line, as far as it is known by now."""
    frame = pd.DataFrame(line.points, columns=[line.along, line.name])
    figure = new_figure(x_title=plain(line.along), y_title=plain(line.name), height=220, showlegend=False)
    figure.add_scatter(x=frame[line.along], y=frame[line.name], mode="lines+markers", line={"color": ORIGINAL})
    x, y = line.points[-1]
    return Chart(figure=figure, table=frame, alt=f"Line of {line.name} by {line.along}. At {x:g} it is {y:.4g}.")


def spending_chart(account: Account) -> Chart:
    """Cumulative epsilon as steps, with the budget as a line."""
    counted = [entry for entry in account.entries if entry.state != "refunded"]
    frame = pd.DataFrame({"charge": range(1, len(counted) + 1), "purpose": [entry.purpose for entry in counted]})
    frame["epsilon"] = [float(entry.budget.epsilon) for entry in counted]
    frame["spent"] = frame["epsilon"].cumsum()
    total = float(account.total.epsilon)
    figure = new_figure(x_title="charge", y_title="epsilon spent", height=240, showlegend=False)
    steps, line = {"x": [0, *frame["charge"]], "y": [0, *frame["spent"]]}, {"color": ORIGINAL, "shape": "hv"}
    figure.add_scatter(line=line, mode="lines+markers", **steps)
    figure.add_hline(y=total, line={"color": REFERENCE, "dash": "dash"})
    label = {"text": "total budget", "showarrow": False, "xanchor": "left", "yanchor": "top"}
    figure.add_annotation(x=0, xref="paper", y=total, **label)
    figure.update_yaxes(range=[0, total * 1.1])
    figure.update_xaxes(dtick=1)
    alt = f"{len(counted)} charges, epsilon {frame['epsilon'].sum():.4g} of {total:.4g} spent."
    return Chart(figure=figure, table=frame, alt=alt)
