"""What has been spent on a data set, charge by charge."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.charts.palette import ORIGINAL, REFERENCE
from dpsynth_core.charts.theme import Chart, new_figure
from dpsynth_core.ledger.accounts import Account


def spending_chart(account: Account) -> Chart:
    """Cumulative epsilon as steps, with the budget as a line."""
    counted = [entry for entry in account.entries if entry.state != "refunded"]
    frame = pd.DataFrame({"charge": range(1, len(counted) + 1), "purpose": [entry.purpose for entry in counted]})
    frame["epsilon"] = [float(entry.budget.epsilon) for entry in counted]
    frame["spent"] = frame["epsilon"].cumsum()
    total = float(account.total.epsilon)
    figure = new_figure(x_title="charge", y_title="epsilon spent", height=240, showlegend=False)
    figure.add_scatter(
        x=[0, *frame["charge"]], y=[0, *frame["spent"]], line={"color": ORIGINAL, "shape": "hv"}, mode="lines+markers"
    )
    figure.add_hline(y=total, line={"color": REFERENCE, "dash": "dash"})
    figure.add_annotation(
        x=0, xref="paper", y=total, text="total budget", showarrow=False, xanchor="left", yanchor="top"
    )
    figure.update_yaxes(range=[0, total * 1.1])
    figure.update_xaxes(dtick=1)
    return Chart(
        figure=figure,
        table=frame,
        alt=f"{len(counted)} charges, epsilon {frame['epsilon'].sum():.4g} of {total:.4g} spent.",
    )
