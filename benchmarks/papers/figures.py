"""Which results make which figure of the papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from benchmarks.papers.classification_task import PAPER_MEANS
from benchmarks.papers.diagrams import empty_boxes, outcomes, partition_stages, study
from benchmarks.papers.gaussian_mixtures import BEST_PUBLISHED
from benchmarks.papers.pictures import BoxPanel, LinePanel, Panel, Row, Table, epsilon_lines, value
from dpsynth_core.inference.populations import GROUP, LOWER, UPPER, VALUE
from dpsynth_core.teaching.bin_width import bin_widths
from dpsynth_core.teaching.false_discovery import p_value, replay_false_discovery
from dpsynth_core.teaching.one_row import one_row_moves

CLASSIFIED = ("10", "1", "0.1")
"""The epsilons of the classification task."""
FIGURE_6_SEED = 1
REPLAY_BINS = 33
"""Of the 100, three together: single bins would be hard to see."""
MAX_TITLE = 52
"""Letters that fit above a panel."""
Maker: TypeAlias = Callable[[list[Table]], tuple[Sequence[Panel], int]]
"""From an experiment's tables to panels, and how many of them stand side by side."""


def _named(tables: list[Table], part: str) -> list[Row]:
    """The rows of the first table whose title has that part; none where there is no such table."""
    return next((table["rows"] for table in tables if part in table["title"]), [])


def _titled(panel: LinePanel, title: str, *, log: bool = True) -> LinePanel:
    return replace(panel, title=title, log=log)


def _against_balog(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    rows = _named(tables, "mixtures of Balog")
    panels = []
    for d in BEST_PUBLISHED:
        chosen = [row for row in rows if value(row[f"D{d} eps 1"]) is not None]
        panel = epsilon_lines(chosen, lambda row: str(row["method"]), f"D{d} eps ")
        panels.append(_titled(panel, f"D = {d}: MMD by epsilon"))
    return panels, 2


def _by_points(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    rows = _named(tables, "by number of synthetic rows")
    panels = []
    for column in (key for key in rows[0] if key.startswith("D")):
        lines: dict[str, list[float | None]] = {}
        for row in rows:
            lines.setdefault(row["method"], []).append(value(row[column]))
        d, epsilon = int(column[1]), column.split()[-1]
        best = BEST_PUBLISHED[d][("0.01", "0.1", "1").index(epsilon)]
        sizes = list(dict.fromkeys(row["synthetic rows"] for row in rows))
        lines["Balog alg. 2, its best"] = [best] * len(sizes)
        panels.append(LinePanel(title=f"D = {d}, epsilon {epsilon}: MMD by synthetic rows", x=sizes, lines=lines))
    return panels, 3


def _simple(part: str, name: str, title: str) -> Maker:
    def make(tables: list[Table]) -> tuple[Sequence[Panel], int]:
        return [_titled(epsilon_lines(_named(tables, part), lambda row: str(row[name])), title)], 1

    return make


def _theorems(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    rows = _named(tables, "and its bounds")
    panels: list[Panel] = []
    names = {
        "measured, t = 0": "measured, t = 0",
        "Theorem 3": "bound of Theorem 3",
        "measured, t > 0": "measured, t > 0",
        "Theorem 5": "bound of Theorem 5",
        "Theorem 6": "bound of Theorem 6",
    }
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        lines = {name: [value(row[key]) for row in own] for key, name in names.items()}
        panels.append(LinePanel(title=f"{data}: largest difference", x=[f"{row['eps']:g}" for row in own], lines=lines))
    rate = epsilon_lines(_named(tables, "and its slope"), lambda row: f"{row['grid']} (slope {row['slope']:.2f})")
    return [*panels, _titled(rate, "MMD by epsilon, 100,000 rows")], 2


def _widths(_: list[Table]) -> tuple[Sequence[Panel], int]:
    """Closed forms: they need no result."""
    found = bin_widths(epsilon=1.0, rows=100_000)
    every = range(0, len(found.widths), 6)
    lines: dict[str, list[float | None]] = {
        "KL divergence, 11 uniforms": [float(found.divergence[i]) for i in every],
        "MMD, 11 uniforms": [float(found.distance[i]) for i in every],
        "MMD, 100,000 rows, epsilon 1": [float(found.noisy[i]) for i in every],
    }
    return [LinePanel(title="By width of a bin", x=[f"{found.widths[i]:.2g}" for i in every], lines=lines)], 1


def _row_moves(_: list[Table]) -> tuple[Sequence[Panel], int]:
    found = one_row_moves(rows=5_000, simulations=300, seed=1, cp=0.01)
    lines: dict[str, list[float | None]] = {}
    for tree, moves in found.moves.items():
        ordered = sorted(moves.tolist(), reverse=True)
        lines[tree] = [ordered[i] for i in (0, 1, 2, 5, 10, 20, 50, 100)]
    lines["bound of the paper"] = [1.0] * 8
    ranks = ["1st", "2nd", "3rd", "6th", "11th", "21st", "51st", "101st"]
    return [LinePanel(title="Largest moves of 300, times n", x=ranks, lines=lines)], 1


def _coefficients(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    panels = []
    for coefficient in ("intercept", "slope"):
        rows = [
            row
            for row in _named(tables, f"error of the {coefficient} of")
            if row["bounds"] in ("4 sd", "none") or "bayes (" in row["method"] or row["method"] == "pmse"
        ]
        panels.append(_titled(epsilon_lines(rows, lambda row: str(row["method"])), f"{coefficient}: mean error"))
    return panels, 2


def _boxes(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    panels = []
    for coefficient in ("intercept", "slope"):
        rows = _named(tables, f"error of the {coefficient}, five")
        for epsilon in (0.25, 0.5, 1.0):
            boxes = {
                f"{row['method'].removeprefix('the ')}, {row['bounds']}": [
                    max(row[name], 1e-5) for name in ("least", "first quartile", "median", "third quartile", "largest")
                ]
                for row in rows
                if row["eps"] == epsilon
            }
            panels.append(BoxPanel(title=f"{coefficient}, epsilon {epsilon:g}", boxes=boxes))
    return panels, 2


def _pmse(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    rows, name = [], ""
    for table in tables:
        for row in table["rows"]:
            label = row["method"].strip()
            if label in ("paper",):
                rows.append({**row, "method": f"paper: {name}"})
            elif not row["method"].startswith("  ") and any(value(row[k]) is not None for k in row if "eps" in k):
                name = f"{label}, l = {row['l']}"
                rows.append({**row, "method": name})
    return [_titled(epsilon_lines(rows, lambda row: str(row["method"])), "pMSE of the synthetic table")], 1


def _errors(parts: tuple[str, ...], *, titles: tuple[str, ...]) -> Maker:
    """Type I and Type II by epsilon, one panel for each test and kind of error."""

    def make(tables: list[Table]) -> tuple[Sequence[Panel], int]:
        panels: list[Panel] = []
        for part, title in zip(parts, titles, strict=True):
            rows = _named(tables, part)
            for test in dict.fromkeys(row["test"] for row in rows):
                own = [row for row in rows if row["test"] == test]
                panel = epsilon_lines(own, lambda row: str(row["rows"]))
                panels.append(_titled(panel, f"{title}: {test}"[:52], log=False))
        return panels, 2

    return make


def _labelled_errors(part: str, *, by: str, name: str) -> Maker:
    """The same where a table has both kinds of error in its rows."""

    def make(tables: list[Table]) -> tuple[Sequence[Panel], int]:
        rows, panels = _named(tables, part), []
        for group, error in dict.fromkeys((row[by], row["error"]) for row in rows):
            own = [row for row in rows if (row[by], row["error"]) == (group, error)]
            panel = epsilon_lines(own, lambda row: str(row[name]))
            title = f"{error}: {group}"
            panels.append(_titled(panel, title if len(title) <= MAX_TITLE else title.partition(",")[0], log=False))
        return panels, 2

    return make


def _degradation(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    """Mean AUC over that at the largest epsilon: how much each method loses."""
    panels: list[Panel] = []
    for table in tables:
        if not table["title"].startswith("Mean AUC"):
            continue
        lines: dict[str, list[float | None]] = {}
        for row in table["rows"]:
            if row["AUC from"] == "scores" and row["method"] in ("kd_tree", "dp_merf", "private_pgm"):
                lines[row["method"]] = _over_largest([value(row[f"eps {epsilon}"]) for epsilon in CLASSIFIED])
        lines |= {f"paper, fraud table: {name}": _over_largest(list(means)) for name, means in PAPER_MEANS.items()}
        title = table["title"].split(": ")[-1]
        panels.append(LinePanel(title=title, x=list(reversed(CLASSIFIED)), lines=lines, log=False))
    return panels, 2


def _over_largest(areas: list[float | None]) -> list[float | None]:
    """From the smallest epsilon to the largest, which comes first."""
    return [None if area is None or not areas[0] else area / areas[0] for area in reversed(areas)]


def _groups(part: str, names: tuple[str, str], title: str) -> Maker:
    """Two groups' shares over their bins."""

    def make(tables: list[Table]) -> tuple[Sequence[Panel], int]:
        rows = _named(tables, part)
        lines = {name: [value(row[name]) for row in rows] for name in names}
        marks = [row["from"] if i % 4 == 0 else "" for i, row in enumerate(rows)]
        return [LinePanel(title=title, x=marks, lines=lines, log=False)], 1

    return make


def _bins(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    panels = []
    for table in tables:
        for error in ("Type I", "Type II"):
            own = [row for row in table["rows"] if row["error"] == error]
            keys = [key for key in own[0] if key.endswith(" bins")]
            lines = {f"{row['release']}, {row['setting']}": [value(row[key]) for key in keys] for row in own}
            bounds = table["title"].split("bounds ")[1].split(" (")[0]
            x = [key.removesuffix(" bins") for key in keys]
            panels.append(LinePanel(title=f"{error} by bins, bounds {bounds}", x=x, lines=lines, log=False))
    return panels, 2


def _replay(_: list[Table]) -> tuple[Sequence[Panel], int]:
    """Figure 6: simulated like the lesson in the app, with the seed that it begins with."""
    replay = replay_false_discovery(seed=FIGURE_6_SEED)
    panels: list[Panel] = []
    edges = np.linspace(LOWER, UPPER, REPLAY_BINS + 1)
    for one in (replay.original, replay.perturbed, replay.smoothed):
        lines: dict[str, list[float | None]] = {}
        for group, name in ((False, "first group"), (True, "second group")):
            values = one.table.loc[one.table[GROUP] == group, VALUE]
            lines[name] = [float(share) for share in np.histogram(values, edges)[0] / max(len(values), 1)]
        marks = [f"{edge:.0f}" if i % 5 == 0 else "" for i, edge in enumerate(edges[:-1])]
        title = f"{one.title}: {p_value(one.ordinary.pvalue)}"
        panels.append(LinePanel(title=title, x=marks, lines=lines, log=False))
    return panels, 3


def _test_outcomes(tables: list[Table]) -> tuple[Sequence[Panel], int]:
    """Figure 2, for three releases of 500 rows at epsilon 1."""
    panels: list[Panel] = []
    for test in ("DP-MW on the original", "perturbed histogram", "perturbed histogram, calibrated"):
        shares = []
        for part in ("Figure 4(a)", "Figure 4(b)"):
            rows = [row for row in _named(tables, part) if row["test"] == test and row["rows"] == "n = 500"]
            shares += [value(row["eps 1"]) for row in rows]
        if len(shares) == 2 and None not in shares:
            panels += outcomes(shares[0] or 0.0, shares[1] or 0.0, test)
    return panels, 3


FIGURES: dict[str, tuple[str, Maker]] = {
    "kd_figures_1_7": ("gaussian_mixtures", lambda _: (partition_stages(), 2)),
    "kd_figures_2_8": ("gaussian_mixtures", lambda _: (empty_boxes(), 1)),
    "kd_figure_3_epsilon": ("gaussian_mixtures", _against_balog),
    "kd_figure_3_points": ("gaussian_mixtures", _by_points),
    "kd_figure_3c": ("gaussian_mixtures", _simple("by dimension", "data", "MMD by epsilon and dimension")),
    "kd_figure_4": ("gaussian_mixtures", _theorems),
    "kd_figure_5": ("classification_task", _degradation),
    "kd_figure_6": ("gaussian_mixtures", _widths),
    "kd_figure_9": ("gaussian_mixtures", _simple("by number of rows", "data", "MMD by epsilon and rows, D = 5")),
    "kd_figure_10": ("gaussian_mixtures", _simple("by spread", "data", "MMD by epsilon and spread, D = 10")),
    "pmse_figure_1": ("tree_sensitivity", _row_moves),
    "pmse_figure_2": ("regression_coefficients", _coefficients),
    "pmse_figure_3": ("release_pmse", _pmse),
    "pmse_figure_4": ("regression_coefficients", _boxes),
    "discoveries_figure_1": ("false_discoveries", lambda _: (study(), 1)),
    "discoveries_figure_2": ("false_discoveries", _test_outcomes),
    "discoveries_figure_3a": (
        "antigen_level",
        _groups("Figure 3a", ("low risk", "high risk"), "Share of simulated patients by antigen level"),
    ),
    "discoveries_figure_3b": (
        "body_mass_index",
        _groups("Figure 3b", ("without", "with"), "Share of people by body mass index"),
    ),
    "discoveries_figure_6": ("false_discoveries", _replay),
    "discoveries_figure_7a": ("antigen_level", _labelled_errors("Figure 7a", by="test", name="rows")),
    "discoveries_figure_4": (
        "false_discoveries",
        _errors(("Figure 4(a)", "Figure 4(b)"), titles=("Type I", "Type II")),
    ),
    "discoveries_figure_5": (
        "false_discoveries",
        _errors(("Figure 5(a)", "Figure 5(b)"), titles=("Type I", "Type II")),
    ),
    "discoveries_figures_5_8_gan": (
        "gan_discoveries",
        _labelled_errors("DP GAN", by="rows", name="synthetic rows"),
    ),
    "discoveries_figure_7b": ("body_mass_index", _labelled_errors("Figure 7b", by="test", name="rows")),
    "discoveries_figure_8": ("body_mass_index", _labelled_errors("Figure 8", by="test", name="rows")),
    "discoveries_bins": ("number_of_bins", _bins),
}
"""By file name: the experiment after which it is drawn, and how. What follows from formulas or code needs no result.
Figure 3 of the discoveries paper is on Diagnostics for any table, and its Figure 6 is a lesson in the app as well."""
