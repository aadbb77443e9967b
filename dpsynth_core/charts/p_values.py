"""Pictures of what a p-value is worth: errors over epsilon, and the groups in original and synthetic tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.arrays import FloatArray
from dpsynth_core.charts.cells import cell_names, drawable
from dpsynth_core.charts.columns import axis_title
from dpsynth_core.charts.theme import GOOD, ORIGINAL, REFERENCE, SYNTHETIC, WARNING, Chart, new_figure, plain
from dpsynth_core.inference import ErrorRates, GroupComparison, Proportion, Reliability
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.teaching.false_discovery import FalseDiscoveryReplay

Error = Literal["false", "missed"]
_CURVES = (
    ("ordinary", "ordinary test on the release", SYNTHETIC, "solid", "circle"),
    ("calibrated", "calibrated test on the release", GOOD, "dash", "square"),
    ("reference", "private test on the original", ORIGINAL, "dot", "triangle-up"),
)
_PANELS = 0.04


def reliability_chart(worth: Reliability, error: Error) -> Chart:
    """Chance of a false or of a missed discovery over epsilon, with 95% bands and today's epsilon marked."""
    title = "differences reported that do not exist" if error == "false" else "differences missed"
    figure = new_figure(x_title="epsilon (log scale)", y_title=title, height=320)
    frames = []
    for key, name, colour, dash, symbol in _CURVES:
        rates: tuple[ErrorRates, ...] = getattr(worth, key)
        if not rates:
            continue
        frame = _frame(rates, error)
        frames.append(frame.assign(test=name))
        _band(figure, frame, colour)
        figure.add_scatter(
            x=frame["epsilon"], y=frame["share"], name=name, mode="lines+markers",
            line={"color": colour, "dash": dash}, marker={"symbol": symbol, "size": 8},
            customdata=frame[["low", "high"]],
            hovertemplate="epsilon %{x:g}<br>%{y:.1%} (%{customdata[0]:.1%} to %{customdata[1]:.1%})<extra>"
            + name + "</extra>",
        )  # fmt: skip
    today = worth.at_today(worth.ordinary)
    if today is not None:
        share = _share(today, error)
        figure.add_scatter(
            x=[today.epsilon], y=[share.estimate], mode="markers", name="your epsilon",
            marker={"color": WARNING, "size": 14, "symbol": "diamond", "line": {"color": "black", "width": 1}},
        )  # fmt: skip
    if error == "false":
        alpha = worth.ordinary[0].alpha
        figure.add_hline(y=alpha, line={"color": REFERENCE, "dash": "dash"})
        figure.add_annotation(
            x=0, xref="paper", y=alpha, text=f"acceptable: {alpha:.0%}", showarrow=False, xanchor="left",
            yanchor="bottom",
        )  # fmt: skip
    figure.update_xaxes(type="log", dtick=1)
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%")
    table = pd.concat(frames, ignore_index=True)[["test", "epsilon", "share", "low", "high"]]
    return Chart(figure=figure, table=table, alt=_spoken(worth, error, title))


def _share(rates: ErrorRates, error: Error) -> Proportion:
    return rates.type_one if error == "false" else rates.type_two


def _frame(rates: Sequence[ErrorRates], error: Error) -> pd.DataFrame:
    shares = [_share(one, error) for one in rates]
    return pd.DataFrame(
        {
            "epsilon": [one.epsilon for one in rates],
            "share": [share.estimate for share in shares],
            "low": [share.low for share in shares],
            "high": [share.high for share in shares],
        }
    )


def _band(figure: go.Figure, frame: pd.DataFrame, colour: str) -> None:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(
        x=[*frame["epsilon"], *frame["epsilon"][::-1]], y=[*frame["high"], *frame["low"][::-1]], fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.18)", line={"width": 0}, mode="lines", hoverinfo="skip",
        showlegend=False,
    )  # fmt: skip


def _spoken(worth: Reliability, error: Error, title: str) -> str:
    ends = worth.ordinary[0], worth.ordinary[-1]
    course = " and ".join(f"{_share(one, error).estimate:.0%} at epsilon {one.epsilon:g}" for one in ends)
    spoken = f"Share of {title} by an ordinary test on the release: {course}."
    today = worth.at_today(worth.ordinary)
    if today is not None:
        spoken += f" At your epsilon {today.epsilon:g}: {_share(today, error).estimate:.0%}."
    return spoken


def groups_chart(original: pd.DataFrame | None, synthetic: pd.DataFrame, comparison: GroupComparison) -> Chart:
    """The two groups' distributions, side by side for the original (private: for internal review) and the synthetic."""
    panels = [("synthetic", SYNTHETIC, synthetic)]
    if original is not None:
        panels.insert(0, ("original", ORIGINAL, original))
    return _panels(panels, comparison)


def replay_chart(replay: FalseDiscoveryReplay) -> Chart:
    """The original without a difference and its two releases: Figure 6 of Montoya Perez et al."""
    schema = replay.schema
    comparison = GroupComparison.of(schema, value=schema.names[1], group=schema.names[0])
    panels = [("original", ORIGINAL, replay.original.table)]
    panels += [(one.title, SYNTHETIC, one.table) for one in (replay.perturbed, replay.smoothed)]
    chart = _panels(panels, comparison)
    return Chart(figure=chart.figure, table=chart.table, alt=f"{chart.alt} {replay.sentence}")


def _panels(panels: Sequence[tuple[str, str, pd.DataFrame]], comparison: GroupComparison) -> Chart:
    """One panel for each table, on one scale; groups differ by line and fill, tables by colour."""
    column = drawable(comparison.value, most=100)
    names = cell_names(column)
    names = names[:-1] if column.nullable else names
    figure = new_figure(x_title=axis_title(column), y_title="share of the group", height=300)
    width = (1 - _PANELS * (len(panels) - 1)) / len(panels)
    frames, largest = [], 0.0
    for i, (title, colour, table) in enumerate(panels):
        axis = "" if i == 0 else str(i + 1)
        left = i * (width + _PANELS)
        shared = {} if i == 0 else {"matches": "x", "anchor": "y"}
        common = figure.layout.xaxis.to_plotly_json()
        figure.update_layout({f"xaxis{axis}": {**common, "domain": [left, left + width], **shared}})
        figure.add_annotation(
            x=left + width / 2, xref="paper", y=1, yref="paper", text=title, showarrow=False, yanchor="bottom"
        )
        for level, share, dash in zip(comparison.levels, _shares(table, comparison), ("solid", "dot"), strict=True):
            largest = max(largest, float(share.max(initial=0.0)))
            frames.append(pd.DataFrame({"table": title, "group": str(level), "value": names, "share": share}))
            label = plain(f"{comparison.group.name} = {level}")
            figure.add_scatter(
                x=list(range(len(names))), y=share, xaxis=f"x{axis}", mode="lines", name=label, showlegend=i == 0,
                line={"color": colour, "dash": dash, "shape": "hvh", "width": 2},
                fill="tozeroy" if dash == "solid" else None, opacity=0.9, customdata=[plain(name) for name in names],
                hovertemplate="%{customdata}<br>%{y:.1%}<extra>" + f"{title}<br>{label}" + "</extra>",
            )  # fmt: skip
    ticks = list(range(0, len(names), max(1, len(names) // 5)))
    texts = [plain(names[i].split(" to ")[0] if column.is_numeric else names[i]) for i in ticks]
    figure.update_xaxes(tickvals=ticks, ticktext=texts)
    figure.update_yaxes(tickformat=".0%", range=[0, largest * 1.05 or 1.0])
    figure.update_layout(legend={"y": -0.3, "yanchor": "top"})
    spoken = ", ".join(title for title, _, _ in panels)
    return Chart(
        figure=figure,
        table=pd.concat(frames, ignore_index=True),
        alt=f"Distributions of {comparison.value.name} in the two groups of {comparison.group.name}: {spoken}.",
    )


def _shares(table: pd.DataFrame, comparison: GroupComparison) -> tuple[FloatArray, FloatArray]:
    """Share of each group's rows in each drawn cell, missing values left out."""
    column = drawable(comparison.value, most=100)
    codec, groups = codec_for(column), codec_for(comparison.group)
    cell = codec.codes(codec.positions(table[column.name]))
    code = groups.codes(groups.positions(table[comparison.group.name]))
    out = []
    for level in comparison.codes:
        rows = np.bincount(cell[code == level], minlength=column.size)[: column.levels].astype(np.float64)
        out.append(rows / max(float(rows.sum()), 1.0))
    return out[0], out[1]
