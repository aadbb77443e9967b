"""Pictures of the lessons on bin widths and on trees that one row can move."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpsynth_core.charts.palette import COLORWAY, REFERENCE
from dpsynth_core.charts.theme import Chart, new_figure
from dpsynth_core.teaching.bin_width import BinWidths
from dpsynth_core.teaching.one_row import BEST, PAPER_BOUND, PROVEN_BOUND, ROUNDING, RowMoves

FLOOR = 1e-3
"""Where moves of zero are drawn on a logarithmic axis, and smaller ones with them."""
PROVEN = "proven for the best tree, 1/(2n)"


def bin_width_chart(found: BinWidths, epsilon: float) -> Chart:
    """Distance from the normal law against the width of a bin: without noise, and with it."""
    figure = new_figure(x_title="width of a bin (standard deviations)", y_title="distance", height=340)
    lines = (
        ("KL divergence, 11 bins, no noise", found.divergence, COLORWAY[1], "dash"),
        ("MMD, 11 bins, no noise", found.distance, COLORWAY[2], "dot"),
        ("MMD, whole range, with noise", found.noisy, COLORWAY[3], "solid"),
    )
    for name, values, colour, dash in lines:
        hover = f"{name}: %{{y:.3g}} at width %{{x:.2f}}<extra></extra>"
        line = {"color": colour, "dash": dash, "width": 2.5}
        figure.add_scatter(x=found.widths, y=values, mode="lines", name=name, line=line, hovertemplate=hover)
    figure.add_vline(x=found.best, line={"color": REFERENCE, "dash": "dash"})
    figure.update_yaxes(type="log", dtick=1, tickformat="~g")
    frame = pd.DataFrame({"width": found.widths, **{name: values for name, values, _, _ in lines}})
    alt = (
        f"At epsilon {epsilon:g} the distance with noise is least with bins {found.best:.2f} standard deviations wide."
    )
    return Chart(figure=figure, table=frame.round(4), alt=alt)


def row_moves_chart(found: RowMoves) -> Chart:
    """One point for each simulated neighbour: how far the pMSE of a tree moved, beside both bounds."""
    figure = new_figure(x_title="", y_title="move of the pMSE, times n", height=400)
    for i, (tree, moves) in enumerate(found.moves.items()):
        spread = np.linspace(-0.3, 0.3, len(moves))
        beyond = moves > (PROVEN_BOUND if tree == BEST else PAPER_BOUND) + ROUNDING
        figure.add_scatter(
            x=i + spread,
            y=np.maximum(moves, FLOOR),
            mode="markers",
            marker={
                "color": [COLORWAY[3] if far else COLORWAY[0] for far in beyond],
                "symbol": ["x" if far else "circle" for far in beyond],
                "size": 7,
                "opacity": 0.7,
            },
            hovertemplate=f"{tree}: %{{y:.3g}} / n<extra></extra>",
            showlegend=False,
        )
    # In the legend: beside the lines, words would lie on the points.
    for bound, words, dash in ((PAPER_BOUND, "paper's bound, 1/n", "dash"), (PROVEN_BOUND, PROVEN, "dot")):
        line = {"color": REFERENCE, "dash": dash, "width": 2}
        ends = [-0.5, len(found.moves) - 0.5]
        figure.add_scatter(x=ends, y=[bound] * 2, mode="lines", name=words, line=line, hoverinfo="skip")
    top = math.ceil(math.log10(max(found.worst(tree) for tree in found.moves)))
    powers = [10.0**k for k in range(round(math.log10(FLOOR)), max(top, 1) + 1)]
    figure.update_yaxes(type="log", tickvals=powers, ticktext=["0", *(f"{power:g}" for power in powers[1:])])
    names = [tree.replace(", ", ",<br>") for tree in found.moves]
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, tickangle=0)
    frame = pd.DataFrame(
        {
            "tree": list(found.moves),
            "largest move, times n": [round(found.worst(tree), 3) for tree in found.moves],
            "beyond 1/n": [int((moves > PAPER_BOUND + ROUNDING).sum()) for moves in found.moves.values()],
            "beyond 1/(2n)": [int((moves > PROVEN_BOUND + ROUNDING).sum()) for moves in found.moves.values()],
        }
    )
    worst = max((tree for tree in found.moves if tree != BEST), key=found.worst)
    alt = (
        f"Largest move of the pMSE: {found.worst(worst):.3g}/n ({worst}); {found.worst(BEST):.2g}/n for the best tree."
    )
    return Chart(figure=figure, table=frame, alt=alt)
