"""Stated against true false-discovery risk, a mark for each cell, as SVG: ``python -m docs.pictures.discovery_risk``.

Reads ``discovery_risk.csv`` beside it, in the form that ``python -m benchmarks.discovery_risk --results`` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.discovery_risk import RUN, CellResult, load

HERE = Path(__file__).parent
COLOURS = {"sound": "#2a9d5c", "inflated": "#d6455d", "unknown": "#8a8a8a"}
WIDTH, HEIGHT, LEFT, TOP, PANEL = 1400, 430, 50, 60, 290
STYLE = (
    "<style>text{font:12px sans-serif;fill:#808080}.title{font-weight:bold}.tick{text-anchor:middle}"
    ".grid{stroke:#808080;stroke-opacity:.3;stroke-width:1;fill:none}.equal{stroke:#808080;stroke-dasharray:5 4}"
    ".range{stroke-width:2;stroke-opacity:.75}</style>"
)


def across(rate: float, left: float) -> float:
    """Horizontal position of a true rate."""
    return left + rate * PANEL


def down(rate: float) -> float:
    """Vertical position of a stated rate."""
    return TOP + (1 - rate) * PANEL


def panel(title: str, results: Sequence[CellResult], left: float) -> list[str]:
    """Every cell's stated range as a line above its true rate; the diagonal is where both agree."""
    covered = sum(one.covered for one in results)
    out = [f'<text x="{left:.0f}" y="{TOP - 24}" class="title">{escape(title)}</text>']
    out.append(
        f'<text x="{left:.0f}" y="{TOP - 8}">the range holds the truth in {covered} of {len(results)} cells</text>'
    )
    for tenth in range(0, 11, 2):
        rate = tenth / 10
        out.append(f'<path d="M{left:.0f} {down(rate):.1f}h{PANEL}" class="grid"/>')
        out.append(f'<text x="{left - 26:.0f}" y="{down(rate) + 4:.1f}">{rate:g}</text>')
        out.append(f'<text x="{across(rate, left):.1f}" y="{TOP + PANEL + 18}" class="tick">{rate:g}</text>')
    out.append(f'<path d="M{left:.0f} {down(0):.1f}L{across(1, left):.1f} {down(1):.1f}" class="equal"/>')
    for one in results:
        x, colour = across(one.true, left), COLOURS[one.verdict]
        path = f"M{x:.1f} {down(one.low):.1f}V{down(one.high):.1f}"
        out.append(f'<path d="{path}" class="range" stroke="{colour}"/>')
    out.append(f'<text x="{left + PANEL / 2:.0f}" y="{TOP + PANEL + 38}" class="tick">true rate</text>')
    return out


def main() -> None:
    """Draw one panel for each histogram mechanism, and one for those that run table by table."""
    results = list(load(HERE / "discovery_risk.csv"))
    drawn = []
    by_panel: dict[str, list[CellResult]] = {}
    for one in sorted(results, key=lambda each: (each.mechanism in RUN, each.mechanism)):
        title = "mechanisms run table by table" if one.mechanism in RUN else one.mechanism.replace("_", " ")
        by_panel.setdefault(title, []).append(one)
    for i, (title, own) in enumerate(by_panel.items()):
        drawn += panel(title, own, LEFT + i * (PANEL + 50))
    for i, (verdict, colour) in enumerate(COLOURS.items()):
        x = LEFT + 120 * i
        drawn.append(f'<path d="M{x} {HEIGHT - 14}h24" class="range" stroke="{colour}"/>')
        drawn.append(f'<text x="{x + 30}" y="{HEIGHT - 10}">{verdict}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>Stated range of the false-discovery risk over its true value, one line for each cell</title>"
    (HERE / "discovery_risk.svg").write_text("\n".join([head, title, STYLE, *drawn, "</svg>", ""]), "utf-8")


if __name__ == "__main__":
    main()
