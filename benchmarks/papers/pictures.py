"""The papers' figures as SVG, drawn from the results of the experiments.

Plain lines and boxes in colours that stand out from white as from black; text is grey for the same reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

COLOURS = (
    "#3b86d1",
    "#e07b00",
    "#2a9d5c",
    "#d6455d",
    "#9a6fd0",
    "#a8744f",
    "#d65fa8",
    "#8a8a8a",
    "#8f9a1f",
    "#17a2b8",
    "#c0563b",
    "#5c8f8f",
)
"""Of middling lightness, so that they stand out from white as from black; text is grey for the same reason."""
PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP, LEGEND = 300, 220, 58, 34, 40, 16
STYLE = (
    "<style>text{font:11px sans-serif;fill:#808080}.title{font-weight:bold;font-size:12px}.tick{text-anchor:middle}"
    ".side{text-anchor:end}.left{text-anchor:start}.small{text-anchor:middle;font-size:8px}path{fill:none;stroke-width:1.8}.grid{stroke:#808080;stroke-opacity:.3;stroke-width:1}"
    ".dash{stroke-dasharray:5 4}</style>"
)
Row: TypeAlias = dict[str, Any]
Table: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LinePanel:
    """Lines over one axis."""

    title: str
    x: Sequence[str]
    """Names of the positions, evenly spaced."""
    lines: dict[str, list[float | None]]
    log: bool = True
    """Whether the vertical axis is logarithmic; otherwise it is a share, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class BoxPanel:
    """Five numbers for each box."""

    title: str
    boxes: dict[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class DrawnPanel:
    """Shapes of its own."""

    title: str
    shapes: tuple[str, ...]
    """SVG elements, from 0 to the panel's width and height."""


Panel: TypeAlias = LinePanel | BoxPanel | DrawnPanel


def value(cell: Any) -> float | None:
    """The number in a cell: a mean, a plain number, or nothing."""
    if isinstance(cell, dict):
        return float(cell["mean"])
    return float(cell) if isinstance(cell, int | float) else None


def svg(panels: Sequence[Panel], *, across: int = 2) -> str:
    """All panels in rows, one legend for all lines below."""
    names = list(dict.fromkeys(name for panel in panels for name in _names(panel)))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    across = min(across, len(panels))
    rows = math.ceil(len(panels) / across)
    columns = 2 if names and max(map(len, names)) < 48 else 1
    height = rows * (TOP + PANEL_HEIGHT + GAP) + LEGEND * math.ceil(len(names) / columns) + 10
    width = across * (LEFT + PANEL_WIDTH + 20)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">', STYLE]
    for i, panel in enumerate(panels):
        left = (i % across) * (LEFT + PANEL_WIDTH + 20) + LEFT
        top = (i // across) * (TOP + PANEL_HEIGHT + GAP) + TOP
        out.append(f'<text x="{left}" y="{top - 14}" class="title">{escape(panel.title)}</text>')
        if isinstance(panel, DrawnPanel):
            out += [f'<g transform="translate({left} {top})">', *panel.shapes, "</g>"]
        else:
            out += _lines(panel, left, top, colours) if isinstance(panel, LinePanel) else _boxes(panel, left, top)
    below = rows * (TOP + PANEL_HEIGHT + GAP)
    for i, name in enumerate(names):
        x, y = LEFT + (i % columns) * width / columns, below + LEGEND * (i // columns) + 8
        out.append(f'<path d="M{x:.0f} {y - 4:.0f}h18" stroke="{colours[name]}"/>')
        out.append(f'<text x="{x + 24:.0f}" y="{y:.0f}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>\n"])


def _names(panel: Panel) -> list[str]:
    """What the legend explains: lines by colour, boxes by number."""
    if isinstance(panel, LinePanel):
        return list(panel.lines)
    if isinstance(panel, DrawnPanel):
        return []
    return [f"{i}: {name}" for i, name in enumerate(panel.boxes, 1)]


def _scale(values: Iterable[float], *, log: bool) -> tuple[Callable[[float], float], list[float]]:
    """From a value to a share of the height, and the ticks."""
    known = [v for v in values if math.isfinite(v)]
    if log:
        positive = [v for v in known if v > 0] or [1.0]
        low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)) + 1e-9)
        high = max(high, low + 1)
        ticks = [10.0**k for k in range(low, high + 1)]
        return lambda v: (math.log10(max(v, 10.0**low)) - low) / (high - low), ticks
    top = max(known, default=1.0)
    ticks = [0.0, 0.05, 0.1, 0.15, 0.2] if 0 < top <= 0.2 else [0.2 * i for i in range(max(5, math.ceil(5 * top)) + 1)]
    return lambda v: v / ticks[-1], ticks


def _axis(left: float, top: float, place: Callable[[float], float], ticks: Sequence[float]) -> list[str]:
    out = []
    for tick in ticks:
        y = top + PANEL_HEIGHT * (1 - place(tick))
        out.append(f'<path d="M{left} {y:.1f}h{PANEL_WIDTH}" class="grid"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" class="side">{tick:g}</text>')
    return out


def _lines(panel: LinePanel, left: float, top: float, colours: dict[str, str]) -> list[str]:
    values = [v for line in panel.lines.values() for v in line if v is not None]
    place, ticks = _scale(values, log=panel.log)
    out = _axis(left, top, place, ticks)
    step = PANEL_WIDTH / max(len(panel.x) - 1, 1)
    for i, name in enumerate(panel.x):
        x, y = left + i * step, top + PANEL_HEIGHT + 16
        out.append(f'<text x="{x:.1f}" y="{y}" class="tick">{escape(name)}</text>')
    for name, line in panel.lines.items():
        points = [(left + i * step, top + PANEL_HEIGHT * (1 - place(v))) for i, v in enumerate(line) if v is not None]
        if not points:
            continue
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        kind = ' class="dash"' if name.startswith(("paper", "Balog", "bound")) else ""
        out.append(f'<path d="{path}" stroke="{colours[name]}"{kind}/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colours[name]}"/>' for x, y in points]
    return out


def _boxes(panel: BoxPanel, left: float, top: float) -> list[str]:
    place, ticks = _scale([v for box in panel.boxes.values() for v in box if v > 0], log=True)
    out = _axis(left, top, place, ticks)
    step = PANEL_WIDTH / len(panel.boxes)

    def y(v: float) -> float:
        return top + PANEL_HEIGHT * (1 - place(v))

    for i, (least, first, median, third, largest) in enumerate(panel.boxes.values()):
        x, half, colour = left + (i + 0.5) * step, step * 0.3, COLOURS[i % len(COLOURS)]
        out.append(f'<path d="M{x:.1f} {y(least):.1f}V{y(largest):.1f}" stroke="{colour}"/>')
        out.append(
            f'<rect x="{x - half:.1f}" y="{y(third):.1f}" width="{2 * half:.1f}" '
            f'height="{max(y(first) - y(third), 1):.1f}" fill="{colour}" fill-opacity=".35" stroke="{colour}"/>'
        )
        out.append(f'<path d="M{x - half:.1f} {y(median):.1f}h{2 * half:.1f}" stroke="{colour}"/>')
        out.append(f'<text x="{x:.1f}" y="{top + PANEL_HEIGHT + 16}" class="small">{i + 1}</text>')
    return out


def epsilon_lines(rows: Iterable[Row], name: Callable[[Row], str], prefix: str = "eps ") -> LinePanel:
    """One line for each row over the columns that begin with a prefix."""
    found = list(rows)
    keys = [key for key in found[0] if key.startswith(prefix)]
    lines = {name(row): [value(row[key]) for key in keys] for row in found}
    return LinePanel(title="", x=[key.removeprefix(prefix) for key in keys], lines=lines)


def draw_all(results: Path, pictures: Path) -> list[Path]:
    """Every figure whose results are there; returns what was drawn."""
    from benchmarks.papers.figures import FIGURES  # noqa: PLC0415  it needs what is above

    pictures.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, (experiment, make) in FIGURES.items():
        source = results / f"{experiment}.json"
        if source.exists():
            panels, across = make(json.loads(source.read_text(encoding="utf-8")))
            path = pictures / f"{name}.svg"
            path.write_text(svg(panels, across=across), encoding="utf-8")
            drawn.append(path)
    return drawn
