"""Areas under the ROC curve by classifier and training table. Private, like the result they are drawn from."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpsynth_core.charts.palette import ORIGINAL, REFERENCE, RELEASE_COLOURS
from dpsynth_core.charts.theme import Chart, list_names, new_figure, plain
from dpsynth_core.diagnostics.base import Result

MARKS = ("diamond", "square", "cross", "x")
CLASSIFIER_HEIGHT = 34
AREA = "AUC from scores"


def roc_area_chart(results: Mapping[str, Result]) -> Chart:
    """For every classifier a mark and an interval after training on the original and on each of up to four releases."""
    first = next(iter(results.values()))
    table = _gathered(results)
    names = list(dict.fromkeys(first.tables["classifiers"]["classifier"]))
    sources = list(dict.fromkeys(table["trained on"]))
    height = 130 + CLASSIFIER_HEIGHT * max(3, len(names))
    figure = new_figure(x_title="AUC on held-out original rows", y_title="", height=height)
    colours, marks = (ORIGINAL, *RELEASE_COLOURS), ("circle", *MARKS)
    for number, source in enumerate(sources):
        rows = table[table["trained on"] == source].set_index("classifier")
        rows = rows.loc[[name for name in names if name in rows.index]]
        offset = ((number + 1) / (len(sources) + 1) - 0.5) * 0.7
        values = rows[AREA]
        ends = {"array": rows[f"{AREA}: to"] - values, "arrayminus": values - rows[f"{AREA}: from"]}
        figure.add_scatter(
            x=values,
            y=[names.index(name) + offset for name in rows.index],
            mode="markers",
            name=f"trained on {plain(source)}",
            marker={"color": colours[number], "symbol": marks[number], "size": 9},
            error_x={"type": "data", "symmetric": False, **ends, "thickness": 1.5, "width": 3},
            customdata=list(rows.index),
            hovertemplate="%{customdata}: %{x:.3f}<extra></extra>",
        )
    figure.add_vline(x=0.5, line={"color": REFERENCE, "dash": "dash", "width": 1})
    list_names(figure, names)
    worst = first.headline
    lost = "could not be computed" if worst.value is None else f"loses {worst.value:.2f}"
    alt = (
        f"Area under the ROC curve of {len(names)} classifiers, trained on original and on synthetic rows; 0.5 is a "
        f"guess. {worst.name} {lost}."
    )
    return Chart(figure=figure, table=table, alt=alt)


def _gathered(results: Mapping[str, Result]) -> pd.DataFrame:
    """The areas of every release in one table, the original's once."""
    parts = []
    for index, (label, result) in enumerate(results.items()):
        frame = result.tables["classifiers"]
        own = frame["trained on"] == "synthetic"
        named = frame[own].assign(**{"trained on": f"synthetic {label}" if len(results) > 1 else "synthetic"})
        parts += [named] if index else [frame[~own], named]
    return pd.concat(parts, ignore_index=True)
