"""Pictures of a sweep over epsilon. Drawn from the rows: for public and simulated tables only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.cells import axis_title, cell_names, cell_shares
from dpsynth_core.charts.columns import COMPARED_CELLS, add_share_bars, compare_chart, show_ticks
from dpsynth_core.charts.palette import FRESH_SAMPLE, GOOD, REFERENCE, line_style, mechanism_style, rgba
from dpsynth_core.charts.theme import FONT_SIZE, Y_STANDOFF, Chart, add_band, new_figure, new_panels, number, plain
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.results import SweepPoint, SweepResult
from dpsynth_core.teaching.sweep.sizes import SizeSweepResult

PANEL_HEIGHT = 165
PEEK_ROWS, PEEK_COLUMNS = 4, 4
"""Of the synthetic table that is shown when the mouse rests on a point."""
MULTIPLE_CELLS = 24
MULTIPLES_PER_ROW = 4
MAX_GROUP_LINES = 5
MAX_GROUP_ERROR = 1.5
"""Top of the chart of groups, as a multiple of a group's own size."""


def sweep_chart(swept: SweepResult, aspects: Sequence[str]) -> Chart:
    """Several aspects over one axis of epsilon: a line and a band for each mechanism, beside a fresh sample's level."""
    titles = [ASPECTS[aspect].title for aspect in aspects]
    height, spacing = 110 + PANEL_HEIGHT * len(aspects), 0.3 / len(aspects)
    figure = new_panels(len(aspects), 1, titles, height=height, shared_xaxes=True, vertical_spacing=spacing)
    frame = _measured(swept, aspects)
    for row, aspect in enumerate(aspects, start=1):
        for key in swept.config.mechanisms:
            _add_line(figure, swept.line(key, aspect), aspect, row)
        if aspect in swept.references:
            # A line among the others, so that the axis reaches it.
            ends, level = [swept.config.epsilons[0], swept.config.epsilons[-1]], [swept.references[aspect]] * 2
            style = {"line": FRESH_SAMPLE, "mode": "lines", "hoverinfo": "skip", "showlegend": False}
            figure.add_scatter(x=ends, y=level, row=row, col=1, **style)
        _scale(figure, aspect, row)
    # One entry of the legend for each mechanism, however many panels it is in.
    for key in swept.config.mechanisms:
        figure.add_scatter(x=[None], y=[None], name=MECHANISMS[key].title, **mechanism_style(key))
    figure.add_scatter(x=[None], y=[None], mode="lines", name="a fresh sample", line=FRESH_SAMPLE)
    legend = {"y": 1, "yref": "container", "yanchor": "top"}
    figure.update_layout(margin={"t": 96}, hovermode="closest", legend=legend)
    figure.update_annotations(font_size=FONT_SIZE + 1, x=0, xanchor="left")
    figure.update_xaxes(type="log", dtick=1, showticklabels=True)
    figure.update_xaxes(title={"text": "epsilon (log scale)", "standoff": 6}, row=len(aspects), col=1)
    alt = "Against epsilon. " + " ".join(_sentence(swept, aspect) for aspect in aspects)
    return Chart(figure=figure, table=frame, alt=alt)


def _measured(swept: SweepResult, aspects: Sequence[str]) -> pd.DataFrame:
    """Every band, with the number of runs behind it and what a fresh sample would show."""
    return pd.DataFrame(
        {
            "measure": ASPECTS[aspect].title,
            "mechanism": point.title,
            "epsilon": point.epsilon,
            **asdict(point.bands[aspect]),
            "runs": point.analysts if ASPECTS[aspect].simulated else swept.config.repetitions,
            "a fresh sample": swept.references.get(aspect, np.nan),
        }
        for aspect in aspects
        for key in swept.config.mechanisms
        for point in swept.line(key, aspect)
    )


def _add_line(figure: go.Figure, line: Sequence[SweepPoint], aspect: str, row: int) -> None:
    if not line:
        return
    say, style, title = ASPECTS[aspect].say, mechanism_style(line[0].mechanism), line[0].title
    frame = pd.DataFrame([{"epsilon": point.epsilon, **asdict(point.bands[aspect])} for point in line])
    add_band(figure, frame, style["line"]["color"], row=row, col=1)
    texts = [f"{say(b.middle)} ({say(b.low)} to {say(b.high)})" for b in (point.bands[aspect] for point in line)]
    figure.add_scatter(
        x=frame["epsilon"],
        y=frame["middle"],
        name=title,
        showlegend=False,
        customdata=[[p.mechanism, p.epsilon, text, _peek(p.table)] for p, text in zip(line, texts, strict=True)],
        hovertemplate=f"{title}, ε %{{x:g}}: %{{customdata[2]}}<br>%{{customdata[3]}}<extra></extra>",
        row=row,
        col=1,
        **style,
    )


def _peek(table: pd.DataFrame | None) -> str:
    """The first rows of a synthetic table, as text that a figure shows literally."""
    if table is None:
        return ""
    shown = table.iloc[:PEEK_ROWS, :PEEK_COLUMNS]
    lines = [map(plain, shown.columns), *(map(number, row) for row in shown.itertuples(index=False))]
    return "<br>".join(["First synthetic rows:", *(" | ".join(line) for line in lines)])


def _scale(figure: go.Figure, aspect: str, row: int) -> None:
    kind = ASPECTS[aspect]
    scale = {"rangemode": "tozero", "nticks": 4, "tickformat": ".0%" if kind.percent else None}
    figure.update_yaxes(title={"text": kind.unit, "standoff": Y_STANDOFF}, row=row, col=1, **scale)


def _sentence(swept: SweepResult, aspect: str) -> str:
    kind, parts = ASPECTS[aspect], []
    for line in (swept.line(key, aspect) for key in swept.config.mechanisms):
        if line:
            ends = (f"{kind.say(point.bands[aspect].middle)} at {point.epsilon:g}" for point in (line[0], line[-1]))
            parts.append(f"{line[0].title} {', '.join(ends)}")
    if aspect in swept.references:
        parts.append(f"a fresh sample {kind.say(swept.references[aspect])}")
    return f"{kind.title}: {'; '.join(parts)}."


def multiples_chart(
    original: pd.DataFrame, tables: Sequence[tuple[float, pd.DataFrame]], schema: Schema, name: str
) -> Chart:
    """One column of the original and of the synthetic table at each epsilon, small and all on one scale."""
    column = coarse(schema[name], MULTIPLE_CELLS)
    names, first = cell_names(column), cell_shares(original, column)
    shares = {epsilon: cell_shares(table, column) for epsilon, table in tables}
    shown = np.sort(np.argsort(-first, kind="stable")[:MULTIPLE_CELLS])
    shown_names = [names[i] for i in shown]
    cols = min(MULTIPLES_PER_ROW, len(shares))
    rows = -(-len(shares) // cols)
    titles = [f"ε {epsilon:g}" for epsilon in shares]
    grid = {"shared_xaxes": True, "shared_yaxes": True, "horizontal_spacing": 0.03, "vertical_spacing": 0.22 / rows}
    figure = new_panels(rows, cols, titles, height=120 + 170 * rows, **grid)
    for index, share in enumerate(shares.values()):
        where = {"row": index // cols + 1, "col": index % cols + 1, "showlegend": index == 0}
        add_share_bars(figure, {"original": first[shown], "synthetic": share[shown]}, shown_names, **where)
    figure.update_layout(margin={"t": 70}, barmode="group", legend={"y": 1 + 0.35 / rows})
    show_ticks(figure, column, shown_names, max(1, len(shown) // 2))
    top = max(float(share[shown].max()) for share in (first, *shares.values()))
    figure.update_xaxes(tickangle=0, showgrid=False)
    figure.update_yaxes(range=[0, top * 1.05 or 1.0], tickformat=".0%")
    figure.update_xaxes(title={"text": axis_title(column), "standoff": 6}, row=rows, col=1)
    figure.update_yaxes(title={"text": "share of rows", "standoff": Y_STANDOFF}, col=1)
    frame = pd.DataFrame({"value": names, "original": first} | {f"synthetic, ε {e:g}": s for e, s in shares.items()})
    apart = ", ".join(f"{total_variation(first, s):.0%} of rows at epsilon {e:g}" for e, s in shares.items())
    return Chart(figure=figure, table=frame, alt=f"{name} in original and synthetic tables, which differ by {apart}.")


def moving_chart(
    original: pd.DataFrame, tables: Mapping[float, pd.DataFrame], schema: Schema, name: str, epsilon: float
) -> Chart:
    """One column at one epsilon, on the scale of all of them; it moves into the one that replaces it."""
    chart = compare_chart(original, tables[epsilon], schema, name)
    column = coarse(schema[name], COMPARED_CELLS)
    top = max(float(cell_shares(table, column).max()) for table in (original, *tables.values()))
    chart.figure.update_yaxes(range=[0, top * 1.05 or 1.0])
    chart.figure.update_layout(height=300, transition={"duration": 500, "easing": "cubic-in-out"})
    chart.figure.update_xaxes(title_text=f"{axis_title(schema[name])}, at ε {epsilon:g}")
    return chart


def group_error_chart(swept: SweepResult, mechanism: str) -> Chart:
    """The relative error of a group's size against that size, a line for each epsilon: small groups suffer most."""
    points = [point for point in swept.points if point.mechanism == mechanism and point.groups]
    shown = points[:: max(1, -(-len(points) // MAX_GROUP_LINES))]
    figure = new_figure(x_title="rows in the group (log scale)", y_title="typical error of its size", height=380)
    for index, point in enumerate(shown):
        figure.add_scatter(
            x=sorted(point.groups),
            y=[point.groups[size].middle for size in sorted(point.groups)],
            name=f"ε {point.epsilon:g}",
            hovertemplate=f"groups of about %{{x}}: off by %{{y:.0%}}<extra>ε {point.epsilon:g}</extra>",
            **line_style(index),
        )
    fresh = dict(sorted(swept.group_references.items()))
    style = {"mode": "lines", "line": FRESH_SAMPLE, "hoverinfo": "skip"}
    figure.add_scatter(x=list(fresh), y=list(fresh.values()), name="a fresh sample", **style)
    figure.update_xaxes(type="log", dtick=1)
    # Errors beyond the group's own size are cut off; the table has the numbers.
    figure.update_yaxes(tickformat=".0%", range=[0, MAX_GROUP_ERROR])
    frame = pd.DataFrame(
        {"epsilon": point.epsilon, "rows in the group, at least": size, "typical error": band.middle}
        | {"low": band.low, "high": band.high}
        for point in points
        for size, band in sorted(point.groups.items())
    )
    ends = [
        f"at epsilon {point.epsilon:g}, groups of {min(point.groups)} rows are off by "
        f"{point.groups[min(point.groups)].middle:.0%} and groups of {max(point.groups)} by "
        f"{point.groups[max(point.groups)].middle:.0%}"
        for point in shown
    ]
    return Chart(figure=figure, table=frame, alt=f"Small groups suffer most: {'; '.join(ends)}.")


def enough_chart(swept: SizeSweepResult, mechanism: str, aspect: str, target: float) -> Chart:
    """Which pairs of epsilon and number of rows reach a target: a tick where they do."""
    say = ASPECTS[aspect].say
    frame = pd.DataFrame(
        {"rows": one.rows, "epsilon": point.epsilon, "at worst": point.bands[aspect].high}
        for one in swept.sweeps
        for point in one.line(mechanism, aspect)
    )
    frame["enough"] = frame["at worst"] <= target
    figure = new_figure(x_title="epsilon", y_title="rows in the table", height=110 + 75 * len(swept.sweeps))
    cells = {"x": [f"{e:g}" for e in frame["epsilon"]], "y": [f"{n:,}" for n in frame["rows"]]}
    colours = [[0.0, rgba(REFERENCE, 0.18)], [1.0, rgba(GOOD, 0.4)]]
    style = {"colorscale": colours, "showscale": False, "zmin": 0, "zmax": 1, "xgap": 3, "ygap": 3, "hoverinfo": "skip"}
    figure.add_heatmap(z=frame["enough"].astype(int), **cells, **style)
    # Text of its own, so that it takes the page's text colour, light or dark.
    marks = [f"{'✓' if e else '✗'}<br>{say(w)}" for w, e in zip(frame["at worst"], frame["enough"], strict=True)]
    text = {"mode": "text", "text": marks, "textfont": {"size": FONT_SIZE}, "showlegend": False}
    figure.add_scatter(hovertemplate="ε %{x}, %{y} rows: at worst %{text}<extra></extra>", **text, **cells)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    alt = f"Target: at most {say(target)}. {swept.sentence(mechanism, aspect, target)}"
    return Chart(figure=figure, table=frame, alt=alt)
