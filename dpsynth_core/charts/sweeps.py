"""Pictures of a sweep over epsilon. Drawn from the rows: for public and simulated tables only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpsynth_core.arrays import FloatArray
from dpsynth_core.charts.cells import cell_names, drawable
from dpsynth_core.charts.columns import COMPARED_CELLS, axis_title, compare_chart, first_value
from dpsynth_core.charts.theme import (
    COLORWAY,
    FONT_SIZE,
    ORIGINAL,
    REFERENCE,
    SYNTHETIC,
    SYNTHETIC_PATTERN,
    Chart,
    new_figure,
    plain,
)
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep import ASPECTS, SizeSweepResult, SweepPoint, SweepResult

# The first two colours stand for original and synthetic everywhere, so lines of mechanisms begin with the third.
LINES = (
    (COLORWAY[2], "solid", "circle"),
    (COLORWAY[3], "dash", "square"),
    (COLORWAY[4], "dot", "triangle-up"),
    (COLORWAY[5], "dashdot", "diamond"),
    (REFERENCE, "longdash", "x"),
    ("#A05A00", "longdashdot", "star"),
    ("#6A51A3", "solid", "pentagon"),
    ("#4D9221", "dash", "cross"),
    ("#7A0019", "dashdot", "hexagon"),
)
PANEL = 165
"""Height of one panel."""
PEEK_ROWS, PEEK_COLUMNS = 4, 4
"""Of the synthetic table that is shown where the mouse rests on a point."""
MULTIPLE_CELLS = 24
MULTIPLES_PER_ROW = 4
MOST_EPSILONS = 5
"""Lines in the picture of groups."""
GROUP_ERROR_SHOWN = 1.5
"""Of a group's own size, at the top of that picture."""


def sweep_chart(found: SweepResult, aspects: Sequence[str]) -> Chart:
    """Several aspects over one axis of epsilon: a line and a band for each mechanism, beside a fresh sample's level."""
    figure = make_subplots(
        rows=len(aspects), cols=1, shared_xaxes=True, vertical_spacing=0.3 / len(aspects),
        subplot_titles=[ASPECTS[aspect].short for aspect in aspects],
    )  # fmt: skip
    rows = []
    peeks = {(point.mechanism, point.epsilon): _peek(point.table) for point in found.points}
    for place, aspect in enumerate(aspects, start=1):
        for turn, key in enumerate(found.config.mechanisms):
            line = found.line(key, aspect)
            if line:
                drawn = _line(figure, line, aspect, LINES[turn % len(LINES)], place, peeks)
                rows.append(drawn.assign(**_grounds(found, line, aspect)))
        _level(figure, found, aspect, place)
        _scale(figure, aspect, rows[-1] if rows else None, place)
    _legend(figure, found)
    figure.update_layout(
        height=110 + PANEL * len(aspects), margin={"l": 8, "r": 8, "t": 96, "b": 8}, font={"size": FONT_SIZE},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", hovermode="closest",
        legend={"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "traceorder": "normal"},
    )  # fmt: skip
    figure.update_annotations(font_size=FONT_SIZE + 1, x=0, xanchor="left")
    grid = {"automargin": True, "gridcolor": "rgba(128,128,128,0.25)", "zeroline": False}
    figure.update_xaxes(type="log", dtick=1, showticklabels=True, **grid)
    figure.update_yaxes(**grid)
    figure.update_xaxes(title={"text": "epsilon (log scale)", "standoff": 6}, row=len(aspects), col=1)
    return Chart(
        figure=figure,
        table=pd.concat(rows, ignore_index=True),
        alt="Against epsilon. " + " ".join(_spoken(found, aspect) for aspect in aspects),
    )


def _line(  # noqa: PLR0917  the order of arguments is that of the caller's
    figure: go.Figure, line: Sequence[SweepPoint], aspect: str, style: tuple[str, str, str], place: int,
    peeks: Mapping[tuple[str, float], str],
) -> pd.DataFrame:  # fmt: skip
    """One mechanism in one panel, and its numbers."""
    kind, title = ASPECTS[aspect], line[0].title
    colour, dash, symbol = style
    frame = pd.DataFrame(
        {
            "measure": kind.short, "mechanism": title, "epsilon": [point.epsilon for point in line],
            **{end: [getattr(point.bands[aspect], end) for point in line] for end in ("low", "middle", "high")},
        }
    )  # fmt: skip
    _band(figure, frame, colour, place)
    marks = [(point.mechanism, point.epsilon) for point in line]
    said = [f"{kind.say(b.middle)} ({kind.say(b.low)} to {kind.say(b.high)})" for b in (s.bands[aspect] for s in line)]
    figure.add_scatter(
        x=frame["epsilon"], y=frame["middle"], mode="lines+markers", name=title, showlegend=False,
        line={"color": colour, "dash": dash, "width": 2.5}, marker={"symbol": symbol, "size": 10},
        customdata=[[*mark, text, peeks[mark]] for mark, text in zip(marks, said, strict=True)],
        hovertemplate=f"{title}, ε %{{x:g}}: %{{customdata[2]}}<br>%{{customdata[3]}}<extra></extra>",
        row=place, col=1,
    )  # fmt: skip
    return frame


def _grounds(found: SweepResult, line: Sequence[SweepPoint], aspect: str) -> dict[str, Any]:
    """What each number rests on, and what it is to be held against."""
    times = [point.analysts if ASPECTS[aspect].simulated else found.config.repetitions for point in line]
    return {"runs": times, "a fresh sample": found.references.get(aspect, np.nan)}


def _peek(table: pd.DataFrame | None) -> str:
    """The first rows of a synthetic table, as text that a figure shows literally."""
    if table is None:
        return ""
    shown = table.iloc[:PEEK_ROWS, :PEEK_COLUMNS]
    lines = [" | ".join(plain(name) for name in shown.columns)]
    lines += [
        " | ".join(plain(f"{value:.4g}" if isinstance(value, float) else value) for value in row)
        for row in shown.itertuples(index=False)
    ]
    return "<br>".join(["First synthetic rows:", *lines])


def _legend(figure: go.Figure, found: SweepResult) -> None:
    """One entry for each mechanism, however many panels it is in."""
    for turn, key in enumerate(found.config.mechanisms):
        colour, dash, symbol = LINES[turn % len(LINES)]
        figure.add_scatter(
            x=[None], y=[None], mode="lines+markers", name=MECHANISMS[key].title,
            line={"color": colour, "dash": dash, "width": 2.5}, marker={"symbol": symbol, "size": 10},
        )  # fmt: skip
    figure.add_scatter(
        x=[None], y=[None], mode="lines", name="a fresh sample", line={"color": REFERENCE, "dash": "dash", "width": 1.5}
    )


def _band(figure: go.Figure, frame: pd.DataFrame, colour: str, place: int) -> None:
    """The range of the repetitions, drawn under the line."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(
        x=[*frame["epsilon"], *frame["epsilon"][::-1]], y=[*frame["high"], *frame["low"][::-1]], fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.18)", line={"width": 0}, mode="lines", hoverinfo="skip",
        showlegend=False, row=place, col=1,
    )  # fmt: skip


def _level(figure: go.Figure, found: SweepResult, aspect: str, place: int) -> None:
    """What a fresh sample would show: a line among the others, so that the axis reaches it."""
    at, ends = found.references.get(aspect), [found.config.epsilons[0], found.config.epsilons[-1]]
    if at is not None:
        figure.add_scatter(
            x=ends, y=[at, at], mode="lines", line={"color": REFERENCE, "dash": "dash", "width": 1.5}, showlegend=False,
            hoverinfo="skip", row=place, col=1,
        )  # fmt: skip


def _scale(figure: go.Figure, aspect: str, frame: pd.DataFrame | None, place: int) -> None:
    kind = ASPECTS[aspect]
    title = {"text": kind.unit, "standoff": 6}
    # A ratio runs over powers of ten, so its axis does too.
    if aspect == "pmse" and frame is not None and float(frame["low"].min()) > 0:
        figure.update_yaxes(title=title, type="log", dtick=1, row=place, col=1)
    else:
        form = {"tickformat": ".0%"} if kind.percent else {}
        figure.update_yaxes(title=title, rangemode="tozero", nticks=4, row=place, col=1, **form)


def _spoken(found: SweepResult, aspect: str) -> str:
    kind, lines = ASPECTS[aspect], []
    for key in found.config.mechanisms:
        line = found.line(key, aspect)
        if line:
            ends = (f"{kind.say(point.bands[aspect].middle)} at {point.epsilon:g}" for point in (line[0], line[-1]))
            lines.append(f"{MECHANISMS[key].title} {', '.join(ends)}")
    fresh = found.references.get(aspect)
    if fresh is not None:
        lines.append(f"a fresh sample {kind.say(fresh)}")
    return f"{kind.short}: {'; '.join(lines)}."


def multiples_chart(
    original: pd.DataFrame, tables: Sequence[tuple[float, pd.DataFrame]], schema: Schema, name: str
) -> Chart:
    """One column of the original and of the synthetic table at each epsilon, small and all on one scale."""
    column = drawable(schema[name], most=MULTIPLE_CELLS)
    names = cell_names(column)
    first = _shares(original, column)
    made = [(epsilon, _shares(table, column)) for epsilon, table in tables]
    kept = np.sort(np.argsort(-first, kind="stable")[:MULTIPLE_CELLS])
    across = min(MULTIPLES_PER_ROW, len(made))
    down = -(-len(made) // across)
    figure = make_subplots(
        rows=down, cols=across, shared_xaxes=True, shared_yaxes=True, horizontal_spacing=0.03,
        vertical_spacing=0.22 / down, subplot_titles=[f"ε {epsilon:g}" for epsilon, _ in made],
    )  # fmt: skip
    top = max(float(share[kept].max()) for share in (first, *(share for _, share in made)))
    for place, (_, share) in enumerate(made):
        row, col = place // across + 1, place % across + 1
        for label, shares, colour, shape in (
            ("original", first, ORIGINAL, ""), ("synthetic", share, SYNTHETIC, SYNTHETIC_PATTERN),
        ):  # fmt: skip
            figure.add_bar(
                x=list(range(len(kept))), y=shares[kept], name=label, showlegend=place == 0, row=row, col=col,
                marker={"color": colour, "pattern": {"shape": shape}}, customdata=[plain(names[i]) for i in kept],
                hovertemplate="%{customdata}<br>%{y:.1%}<extra>" + label + "</extra>",
            )  # fmt: skip
    figure.update_layout(
        height=120 + 170 * down, margin={"l": 8, "r": 8, "t": 70, "b": 8}, font={"size": FONT_SIZE}, bargap=0.04,
        barmode="group", paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "x": 0, "y": 1 + 0.35 / down, "yanchor": "bottom", "traceorder": "normal"},
    )  # fmt: skip
    figure.update_annotations(font_size=FONT_SIZE)
    ticks = list(range(0, len(kept), max(1, len(kept) // 2)))
    figure.update_xaxes(
        tickvals=ticks, ticktext=[first_value(column, names[kept[i]]) for i in ticks], tickangle=0, automargin=True
    )
    figure.update_yaxes(
        range=[0, top * 1.05 or 1.0], tickformat=".0%", automargin=True, gridcolor="rgba(128,128,128,0.25)"
    )
    figure.update_xaxes(title={"text": axis_title(column), "standoff": 6}, row=down, col=1)
    figure.update_yaxes(title={"text": "share of rows", "standoff": 6}, col=1)
    apart = [float(np.abs(first - share).sum() / 2) for _, share in made]
    frame = pd.DataFrame(
        {"value": names, "original": first, **{f"synthetic, ε {e:g}": share for e, share in made}}
    )  # fmt: skip
    spoken = ", ".join(f"{gap:.0%} at epsilon {epsilon:g}" for gap, (epsilon, _) in zip(apart, made, strict=True))
    return Chart(figure=figure, table=frame, alt=f"{name} in original and synthetic tables, which differ by {spoken}.")


def _shares(table: pd.DataFrame, column: Column) -> FloatArray:
    codec = codec_for(column)
    codes = codec.codes(codec.positions(table[column.name]))
    return np.asarray(np.bincount(codes, minlength=column.size) / len(table))


def moving_chart(
    original: pd.DataFrame, tables: Mapping[float, pd.DataFrame], schema: Schema, name: str, epsilon: float
) -> Chart:
    """One column at one epsilon, on the scale of all of them; it moves into the next where that replaces it."""
    chart = compare_chart(original, tables[epsilon], schema, name)
    column = drawable(schema[name], most=COMPARED_CELLS)
    top = max(float(_shares(table, column).max()) for table in (original, *tables.values()))
    chart.figure.update_yaxes(range=[0, top * 1.05 or 1.0])
    chart.figure.update_layout(height=300, transition={"duration": 500, "easing": "cubic-in-out"})
    chart.figure.update_xaxes(title_text=f"{axis_title(schema[name])}, at ε {epsilon:g}")
    return chart


def group_error_chart(found: SweepResult, mechanism: str) -> Chart:
    """By how much a group's size is off against that size, a line for each epsilon: small groups pay most."""
    points = [point for point in found.points if point.mechanism == mechanism and point.groups]
    shown = points[:: max(1, -(-len(points) // MOST_EPSILONS))]
    rows = [
        {"epsilon": point.epsilon, "rows in the group, at least": size, "typical error": band.middle,
         "low": band.low, "high": band.high}
        for point in points for size, band in sorted(point.groups.items())
    ]  # fmt: skip
    figure = new_figure(x_title="rows in the group (log scale)", y_title="typical error of its size", height=380)
    for place, point in enumerate(shown):
        colour, dash, symbol = LINES[place % len(LINES)]
        sizes = sorted(point.groups)
        figure.add_scatter(
            x=sizes, y=[point.groups[size].middle for size in sizes], mode="lines+markers", name=f"ε {point.epsilon:g}",
            line={"color": colour, "dash": dash, "width": 2.5}, marker={"symbol": symbol, "size": 9},
            hovertemplate="groups of about %{x}: off by %{y:.0%}<extra>" + f"ε {point.epsilon:g}" + "</extra>",
        )  # fmt: skip
    sizes = sorted(found.group_references)
    figure.add_scatter(
        x=sizes, y=[found.group_references[size] for size in sizes], mode="lines", name="a fresh sample",
        line={"color": REFERENCE, "dash": "dash", "width": 1.5}, hoverinfo="skip",
    )  # fmt: skip
    figure.update_xaxes(type="log", dtick=1)
    # Beyond all rows of the group more is not worse; the table tells the numbers.
    figure.update_yaxes(tickformat=".0%", range=[0, GROUP_ERROR_SHOWN])
    ends = [
        f"at epsilon {point.epsilon:g} groups of {min(point.groups)} rows are off by "
        f"{point.groups[min(point.groups)].middle:.0%}, groups of {max(point.groups)} by "
        f"{point.groups[max(point.groups)].middle:.0%}"
        for point in shown
    ]
    return Chart(figure=figure, table=pd.DataFrame(rows), alt=f"Small groups pay most: {'; '.join(ends)}.")


def enough_chart(found: SizeSweepResult, mechanism: str, aspect: str, target: float) -> Chart:
    """Which pairs of epsilon and number of rows reach a target: a tick where they do."""
    kind = ASPECTS[aspect]
    cells = [
        (sweep.rows, point.epsilon, point.bands[aspect].high) for sweep in found.sweeps
        for point in sweep.line(mechanism, aspect)
    ]  # fmt: skip
    frame = pd.DataFrame(cells, columns=["rows", "epsilon", "at worst"])
    frame["enough"] = frame["at worst"] <= target
    figure = new_figure(x_title="epsilon", y_title="rows in the table", height=110 + 75 * len(found.sweeps))
    x, y = [f"{e:g}" for e in frame["epsilon"]], [f"{n:,}" for n in frame["rows"]]
    figure.add_heatmap(
        x=x, y=y, z=frame["enough"].astype(int), showscale=False, zmin=0, zmax=1, xgap=3, ygap=3, hoverinfo="skip",
        colorscale=[[0.0, "rgba(128,128,128,0.18)"], [1.0, "rgba(0,158,115,0.4)"]],
    )  # fmt: skip
    # Text of its own, so that it takes the page's colour of letters, light or dark.
    said = [f"{'✓' if ok else '✗'}<br>{kind.say(value)}" for _, _, value, ok in frame.itertuples(index=False)]
    figure.add_scatter(
        x=x, y=y, mode="text", text=said, textfont={"size": FONT_SIZE}, showlegend=False,
        hovertemplate="ε %{x}, %{y} rows: at worst %{text}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    alt = f"Target: at most {kind.say(target)}. {found.sentence(mechanism, aspect, target)}"
    return Chart(figure=figure, table=frame, alt=alt)
