"""Error over epsilon, one line for each mechanism, as SVG: ``python -m docs.pictures.utility``.

Reads ``utility.json`` beside it, in the form that ``python -m benchmarks.papers utility --json`` prints.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.papers.pictures import COLOURS

HERE = Path(__file__).parent
MEASURE = ": mean total variation of all pairs of columns"
WIDTH, HEIGHT, LEFT, TOP, PANEL = 1060, 450, 44, 40, 330
LINE = 14
"""Height of a label."""
STYLE = (
    "<style>text{font:12px sans-serif;fill:#808080}.title{font-weight:bold}.tick{text-anchor:middle}"
    "path{fill:none;stroke-width:1.6}.thick{stroke-width:3}.constant{stroke-dasharray:5 4}"
    ".grid{stroke:#808080;stroke-opacity:.3;stroke-width:1}</style>"
)


def across(epsilon: float) -> float:
    """Horizontal position of an epsilon from 0.1 to 10, on a logarithmic scale."""
    return (math.log10(epsilon) + 1) / 2 * PANEL


def down(error: float) -> float:
    """Vertical position of an error from 0 to 1."""
    return TOP + (1 - error) * (HEIGHT - TOP - 50)


def panel(table: dict[str, Any], left: float, colours: dict[str, str]) -> list[str]:
    """Axes, lines, and every line's name at its right end, moved apart where names would touch."""
    out = [f'<text x="{left}" y="20" class="title">{escape(table["title"].removesuffix(MEASURE))}</text>']
    for tenth in range(0, 11, 2):
        y = down(tenth / 10)
        out.append(f'<path d="M{left} {y:.1f}h{PANEL}" class="grid"/>')
        out.append(f'<text x="{left - 30}" y="{y + 4:.1f}">{tenth / 10}</text>')
    for epsilon in (0.1, 1, 10):
        out.append(f'<text x="{left + across(epsilon):.1f}" y="{HEIGHT - 14}" class="tick">ε = {epsilon:g}</text>')
    labels = []
    for row in table["rows"]:
        name, colour = row["method"], colours[row["method"]]
        points = [(float(key[4:]), cell["mean"]) for key, cell in row.items() if key.startswith("eps") and cell]
        constant = len(points) == 1 and points[0][0] == 0.1  # not a matter of epsilon
        ends = [(0.1, points[0][1]), (10.0, points[0][1])] if constant else points
        path = "M" + "L".join(f"{left + across(e):.1f} {down(v):.1f}" for e, v in ends)
        kind = "constant" if constant else "thick" if "pgm" in name else "thin"
        out.append(f'<path d="{path}" class="{kind}" stroke="{colour}"/>')
        for e, v in [] if constant else points:
            out.append(f'<circle cx="{left + across(e):.1f}" cy="{down(v):.1f}" r="3" fill="{colour}"/>')
        labels.append((down(ends[-1][1]) + 4, name, colour))
    lowest = -math.inf
    for y, name, colour in sorted(labels):
        lowest = max(y, lowest + LINE)
        out.append(f'<text x="{left + PANEL + 8}" y="{lowest:.1f}" style="fill:{colour}">{escape(name)}</text>')
    return out


def main() -> None:
    """Draw one panel for each table."""
    printed = json.loads((HERE / "utility.json").read_text("utf-8"))
    tables = [table for table in printed if table["title"].endswith(MEASURE)]
    names = list(dict.fromkeys(row["method"] for table in tables for row in table["rows"]))
    colours = dict(zip(names, COLOURS * len(names), strict=False))
    drawn = [line for i, table in enumerate(tables) for line in panel(table, LEFT + i * WIDTH / 2, colours)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>Mean total variation of pairs of columns over epsilon</title>"
    (HERE / "utility.svg").write_text("\n".join([head, title, STYLE, *drawn, "</svg>", ""]), "utf-8")


if __name__ == "__main__":
    main()
