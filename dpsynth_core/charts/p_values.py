"""How reliable p-values are: the false-discovery risk of a release, and the groups in original and synthetic tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.charts.cells import axis_title, cell_codes, cell_names
from dpsynth_core.charts.columns import show_ticks
from dpsynth_core.charts.palette import GOOD, ORIGINAL, REFERENCE, SYNTHETIC
from dpsynth_core.charts.theme import Y_STANDOFF, Chart, new_figure, new_panels, plain
from dpsynth_core.diagnostics.total_variation import coarse
from dpsynth_core.inference.comparison_power import ComparisonPower
from dpsynth_core.inference.discovery_risk import DiscoveryRisk
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.mann_whitney import MannWhitney
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.inference.stated_risk import of_100
from dpsynth_core.teaching.false_discovery import FALSE_DISCOVERY, FalseDiscoveryReplay, p_value

GROUP_CELLS = 100


def risk_chart(risk: DiscoveryRisk) -> Chart:
    """The range of the risk on this release, and the range that each remedy would give, beside the level."""
    lines = [("this release", risk.low, risk.high)]
    lines += [(advice.short, advice.low, advice.high) for advice in risk.advice]
    figure = new_figure(
        x_title="of 100 analysts, those who report a difference that does not exist",
        y_title="",
        height=100 + 30 * len(lines),
    )
    table = pd.DataFrame(lines, columns=["what", "low", "high"])
    for i, (title, low, high) in enumerate(lines):
        colour = SYNTHETIC if i == 0 else GOOD if high < risk.high else REFERENCE
        figure.add_scatter(
            x=[100 * low, 100 * high],
            y=[plain(title)] * 2,
            mode="lines+markers",
            line={"color": colour, "width": 6},
            marker={"size": 10, "symbol": "line-ns-open", "color": colour},
            hovertemplate=f"{of_100(low, high)} of 100<extra></extra>",
            showlegend=False,
        )
    figure.add_vline(x=100 * ALPHA, line={"color": REFERENCE, "dash": "dash"})
    label = {"text": f"a sound test: {100 * ALPHA:g}", "showarrow": False, "xanchor": "left", "yanchor": "bottom"}
    figure.add_annotation(x=100 * ALPHA, y=1, yref="paper", **label)
    figure.update_xaxes(range=[-2, 102])
    figure.update_yaxes(autorange="reversed", automargin=True)
    figures = "; ".join(f"{title}: {of_100(low, high)} of 100" for title, low, high in lines)
    return Chart(figure=figure, table=table, alt=f"Analysts who report a difference that does not exist. {figures}.")


def power_chart(power: ComparisonPower) -> Chart:
    """The chance to find a difference by the private test and by a synthetic table at the same epsilon, beside it."""
    tests = [("private test on the original", ORIGINAL, "diamond", power.private)]
    if power.released is not None:
        tests.append((f"calibrated test on a release ({power.mechanism})", SYNTHETIC, "circle", power.released))
    figure = new_figure(
        x_title="analysts of 100 who would find the difference", y_title="", height=70 + 55 * len(tests)
    )
    for name, colour, symbol, chance in tests:
        least, most = 100 * (chance.estimate - chance.low), 100 * (chance.high - chance.estimate)
        figure.add_scatter(
            x=[100 * chance.estimate],
            y=[name],
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 12},
            error_x={"type": "data", "symmetric": False, "array": [most], "arrayminus": [least], "color": colour},
            hovertemplate=f"{name}<br>%{{x:.0f}} of 100<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(range=[-2, 102])
    figure.update_yaxes(automargin=True, range=[len(tests) - 0.5, -0.5])
    rows = [
        {"test": name, "finds it, of 100": 100 * c.estimate, "low": 100 * c.low, "high": 100 * c.high, "runs": c.reps}
        for name, _, _, c in tests
    ]
    return Chart(figure=figure, table=pd.DataFrame(rows), alt=power.sentence)


def groups_chart(original: pd.DataFrame | None, synthetic: pd.DataFrame, comparison: GroupComparison) -> Chart:
    """The two groups' distributions with the test on each table: Figure 3 of Montoya Perez et al. for any table.

    The panel of the original is private: for internal review.
    """
    tables = {"synthetic": synthetic} if original is None else {"original": original, "synthetic": synthetic}
    tests = {name: comparison.test_if_any(table) for name, table in tables.items()}
    colours = {"original": ORIGINAL, "synthetic": SYNTHETIC}
    chart = _group_panels([(name, colours[name], table) for name, table in tables.items()], comparison)
    return _with_tests(chart, list(tests.values()), tests_sentence(comparison, tests))


def tests_sentence(comparison: GroupComparison, tests: Mapping[str, MannWhitney | None]) -> str:
    """What an analyst of each table would report, at the usual level."""
    found = []
    for name, test in tests.items():
        if test is None:
            found.append(f"In the {name} table there is nothing to test.")
        else:
            verdict = "a difference" if test.pvalue <= FALSE_DISCOVERY else "no significant difference"
            found.append(f"The {name} table shows {verdict} (U = {test.statistic:,.1f}, {p_value(test.pvalue)}).")
    first, second = comparison.levels
    value, group = comparison.value.name, comparison.group.name
    return f"Compared are {value} where {group} is {first} and where it is {second}. {' '.join(found)}"


def replay_chart(replay: FalseDiscoveryReplay) -> Chart:
    """The original without a difference and its two releases: Figure 6 of Montoya Perez et al."""
    schema = replay.schema
    comparison = GroupComparison.of(schema, value=schema.names[1], group=schema.names[0])
    tables = (replay.original, replay.perturbed, replay.smoothed)
    panels = [(one.title, ORIGINAL if one is replay.original else SYNTHETIC, one.table) for one in tables]
    return _with_tests(_group_panels(panels, comparison), [one.ordinary for one in tables], replay.sentence)


def _with_tests(chart: Chart, tests: Sequence[MannWhitney | None], sentence: str) -> Chart:
    """The p-value and what it means under each panel."""
    for column, test in enumerate(tests, start=1):
        found = "nothing to test"
        if test is not None:
            verdict = "a difference" if test.pvalue <= FALSE_DISCOVERY else "not significant"
            found = f"<b>{p_value(test.pvalue)}</b>: {verdict}"
        axis = "" if column == 1 else str(column)
        place = {"x": 0.5, "y": -0.32, "xref": f"x{axis} domain", "yref": f"y{axis} domain", "yanchor": "top"}
        chart.figure.add_annotation(text=found, showarrow=False, **place)
    chart.figure.update_layout(height=360, margin_b=40, legend={"y": -0.48})
    return Chart(figure=chart.figure, table=chart.table, alt=f"{chart.alt} {sentence}")


def _group_panels(panels: Sequence[tuple[str, str, pd.DataFrame]], comparison: GroupComparison) -> Chart:
    """One panel for each table, on one scale; groups differ by line and fill, tables by colour."""
    column = coarse(comparison.value, GROUP_CELLS)
    names = cell_names(column)[: column.levels]
    titles, cells = [title for title, _, _ in panels], [plain(name) for name in names]
    axes = {"shared_xaxes": "all", "shared_yaxes": True, "horizontal_spacing": 0.04}
    figure = new_panels(1, len(panels), titles, height=300, **axes)
    frames = []
    for col, (title, colour, table) in enumerate(panels, start=1):
        for level, share, dash in zip(comparison.levels, _shares(table, comparison), ("solid", "dot"), strict=True):
            frames.append(pd.DataFrame({"table": title, "group": str(level), "value": names, "share": share}))
            label = plain(f"{comparison.group.name} = {level}")
            line = {"color": colour, "dash": dash, "shape": "hvh", "width": 2}
            style = {"mode": "lines", "line": line, "fill": "tozeroy" if dash == "solid" else None, "opacity": 0.9}
            hover = f"%{{customdata}}<br>%{{y:.1%}}<extra>{title}<br>{label}</extra>"
            named = {"name": label, "showlegend": col == 1, "customdata": cells, "hovertemplate": hover}
            figure.add_scatter(x=list(range(len(names))), y=share, row=1, col=col, **style, **named)
    frame = pd.concat(frames, ignore_index=True)
    show_ticks(figure, column, names, max(1, len(names) // 5))
    figure.update_xaxes(title={"text": axis_title(column), "standoff": 6})
    figure.update_yaxes(tickformat=".0%", range=[0, frame["share"].max() * 1.05 or 1.0])
    figure.update_yaxes(title={"text": "share of the group", "standoff": Y_STANDOFF}, col=1)
    figure.update_layout(legend={"y": -0.3, "yanchor": "top"})
    alt = f"Distributions of {comparison.value.name} in the two groups of {comparison.group.name}: {', '.join(titles)}."
    return Chart(figure=figure, table=frame, alt=alt)


def _shares(table: pd.DataFrame, comparison: GroupComparison) -> list[FloatArray]:
    """Share of each group's rows in each drawn cell, missing values left out."""
    column = coarse(comparison.value, GROUP_CELLS)
    cells, groups = (cell_codes(table, axis) for axis in (column, comparison.group))
    counts = [np.bincount(cells[groups == code], minlength=column.size)[: column.levels] for code in comparison.codes]
    return [count / max(float(count.sum()), 1.0) for count in counts]
