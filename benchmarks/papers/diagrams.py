"""The papers' drawings: how a plane is cut, which boxes of a tree are empty, what is tested, and how a test can err.

Cuts, trees and shares come from the code that the pictures are about, not from a drawing program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd

from benchmarks.papers.pictures import COLOURS, PANEL_HEIGHT, PANEL_WIDTH, DrawnPanel
from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.examples.base import numeric
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

BLUE, ORANGE, GREEN, RED = COLOURS[:4]
STAGES = (2, 4, 7, 14)
"""Halvings after which the partition is shown, the last of them where the tree stops by itself."""
SHOWN_ROWS = 200
FREE, LAST = 2, 5
"""Levels of the drawn tree (h and h')."""
TREE_ROWS = (0.03, 0.04, 0.10, 0.11, 0.12, 0.36, 0.55, 0.56, 0.57, 0.58, 0.60)
"""Rows of the drawn tree, in [0, 1)."""
FEWEST_TO_SPLIT = 2


def _text(x: float, y: float, words: str, style: str = "tick") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{escape(words)}</text>'


def _rectangle(x: float, y: float, width: float, height: float, colour: str, *, opacity: float = 0.0) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}" stroke="{colour}"/>'
    )


def _line(x: float, y: float, to_x: float, to_y: float, colour: str = "#808080") -> str:
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{colour}"/>'


# --------------------------------------------------------------------------------------------- cutting the plane


def partition_stages() -> list[DrawnPanel]:
    """A KD tree on simulated clusters, stopped after more and more halvings (Figures 1 and 7 of the KD-tree paper)."""
    rng = np.random.default_rng(2023)
    centres = np.array([[0.3, 0.7], [0.72, 0.3], [0.8, 0.8]])
    points = np.clip(centres[rng.integers(0, 3, 20_000)] + rng.normal(0, 0.05, (20_000, 2)), 0, 1)
    facts = [numeric(name, 0.0, 1.0, bins=32, origin="public knowledge") for name in ("x", "y")]
    table = PrivateTable(pd.DataFrame(points, columns=["x", "y"]), Schema.from_dict({"columns": facts}))
    return [_stage(table, points, halvings) for halvings in STAGES]


def _stage(table: PrivateTable, points: FloatArray, halvings: int) -> DrawnPanel:
    tree = KDTree(free_levels=2, max_levels=halvings, leaf_threshold=1, stand_out=0)
    model = tree.fit(table, SeededNoise(Budget.of(1), 7))
    sizes = np.array([axis.size for axis in model.axes])
    low, high = model.low / sizes, model.high / sizes
    height = PANEL_HEIGHT
    # One path for all boxes: hundreds of elements would make a large file.
    boxes = "".join(
        f"M{height * a[0]:.1f} {height * (1 - b[1]):.1f}h{height * (b[0] - a[0]):.1f}v{height * (b[1] - a[1]):.1f}"
        f"h{height * (a[0] - b[0]):.1f}z"
        for a, b in zip(low, high, strict=True)
    )
    shapes = [f'<path d="{boxes}" stroke="{BLUE}" style="stroke-width:.8"/>']
    shapes += [
        f'<circle cx="{height * x:.1f}" cy="{height * (1 - y):.1f}" r="1" fill="{ORANGE}"/>'
        for x, y in points[:SHOWN_ROWS]
    ]
    title = f"After up to {halvings} halvings: {len(low)} boxes kept"
    return DrawnPanel(title=title, shapes=tuple(shapes))


# --------------------------------------------------------------------------------------------------- empty boxes


@dataclass(frozen=True, kw_only=True)
class _Node:
    depth: int
    place: int
    """Among the boxes of its depth, from the left."""
    rows: int
    leaf: bool

    @property
    def x(self) -> float:
        return PANEL_WIDTH * (self.place + 0.5) / 2**self.depth

    @property
    def y(self) -> float:
        return 10 + (PANEL_HEIGHT - 20) * self.depth / LAST


def _nodes(depth: int = 0, place: int = 0) -> Iterator[_Node]:
    """Every box of the tree: halved freely up to h, then where it has rows enough, up to h'. No noise."""
    low, high = place / 2**depth, (place + 1) / 2**depth
    rows = sum(low <= row < high for row in TREE_ROWS)
    split = depth < FREE or (depth < LAST and rows >= FEWEST_TO_SPLIT)
    yield _Node(depth=depth, place=place, rows=rows, leaf=not split)
    if split:
        yield from _nodes(depth + 1, 2 * place)
        yield from _nodes(depth + 1, 2 * place + 1)


def empty_boxes() -> list[DrawnPanel]:
    """Which boxes of a tree hold no row and must be drawn at random (Figures 2 and 8 of the KD-tree paper)."""
    nodes = {(node.depth, node.place): node for node in _nodes()}
    edges = [
        _line(parent.x, parent.y, node.x, node.y)
        for node in nodes.values()
        if node.depth and (parent := nodes[node.depth - 1, node.place // 2])
    ]
    marks = []
    for node in nodes.values():
        colour = BLUE if node.rows else "#808080"
        filled = 'fill-opacity="1"' if node.leaf else 'fill-opacity="0"'
        marks.append(f'<circle cx="{node.x:.1f}" cy="{node.y:.1f}" r="5" fill="{colour}" stroke="{colour}" {filled}/>')
    empty = sum(node.leaf and not node.rows for node in nodes.values())
    full = sum(node.leaf and bool(node.rows) for node in nodes.values())
    title = f"h = {FREE}, h' = {LAST}: {full} boxes with rows, {empty} without"
    return [DrawnPanel(title=title, shapes=(*edges, *marks))]


# ----------------------------------------------------------------------------------------- the tests of the study


def study() -> list[DrawnPanel]:
    """What is compared (Figure 1 of the discoveries paper)."""
    boxes = {
        "original": (0, 85, "original rows", "private"),
        "mechanism": (105, 20, "mechanism", "epsilon"),
        "synthetic": (210, 20, "synthetic rows", "public"),
        "private test": (105, 150, "private test", "epsilon"),
        "answer": (210, 150, "p-value", "is it right?"),
    }
    shapes = []
    for x, y, first, second in boxes.values():
        shapes += [_rectangle(x, y, 90, 46, BLUE, opacity=0.12), _text(x + 45, y + 20, first)]
        shapes.append(_text(x + 45, y + 36, second, "small"))
    shapes += [
        _line(90, 100, 105, 50),
        _line(195, 43, 210, 43),
        _line(255, 66, 255, 150),
        _line(90, 116, 105, 165),
        _line(195, 173, 210, 173),
        _text(248, 104, "ordinary or", "side"),
        _text(248, 118, "calibrated test", "side"),
    ]
    return [DrawnPanel(title="Two ways to a p-value", shapes=tuple(shapes))]


def outcomes(type_one: float, type_two: float, about: str) -> list[DrawnPanel]:
    """How a test can end, with measured shares (Figure 2 of the discoveries paper)."""
    cells: Sequence[tuple[str, float, str]] = (
        ("alike", 1 - type_one, "right"),
        ("alike", type_one, "Type I error"),
        ("differ", type_two, "Type II error"),
        ("differ", 1 - type_two, "right: power"),
    )
    shapes = [_text(44, 14, "groups", "side"), _text(110, 14, "nothing reported"), _text(235, 14, "reported")]
    for i, (truth, share, name) in enumerate(cells):
        x, y = 50 + 125 * (i % 2), 24 + 95 * (i // 2)
        shapes.append(_rectangle(x, y, 118, 86, GREEN if "right" in name else RED, opacity=0.35 * share))
        shapes += [_text(x + 59, y + 40, f"{share:.0%}", "title tick"), _text(x + 59, y + 58, name)]
        if i % 2 == 0:
            shapes.append(_text(44, y + 46, truth, "side"))
    return [DrawnPanel(title=f"Outcomes: {about}", shapes=tuple(shapes))]
