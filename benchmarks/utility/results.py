"""One line for each release that was measured, kept in a file so that a run can be interrupted and continued."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.utility.methods import REFERENCES

ERRORS = ("one_equal", "two_equal", "three_equal", "one_quantile", "two_quantile", "three_quantile")
SHOWN = (*ERRORS, "auc_logistic", "auc_boosting", "cpu_seconds")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One release, measured."""

    table: str
    rows: int
    columns: int
    epsilon: str
    """As typed; empty for a reference."""
    delta: str
    method: str
    rep: int
    one_equal: float
    """Mean total variation of single columns, numbers in equal ranges."""
    two_equal: float
    three_equal: float
    one_quantile: float
    """The same with ranges that hold equally many of the original's rows."""
    two_quantile: float
    three_quantile: float
    auc_logistic: float
    auc_boosting: float
    cpu_seconds: float
    """Processor time of making the rows, over all threads."""
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.table, self.epsilon, self.delta, self.method, self.rep


def read_lines(file: Path) -> list[Line]:
    """What a results file holds so far; nothing if there is none."""
    if not file.exists():
        return []
    kinds = {field.name: field.type for field in fields(Line)}
    convert = {"int": int, "float": float, "str": str}
    with file.open(encoding="utf-8", newline="") as stream:
        return [
            Line(**{name: convert[str(kinds[name])](text) for name, text in row.items()})
            for row in csv.DictReader(stream)
        ]


def append_line(file: Path, line: Line) -> None:
    fresh = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=[field.name for field in fields(Line)])
        if fresh:
            writer.writeheader()
        writer.writerow(asdict(line))


def summary(lines: Iterable[Line], *, unit: str = "aim") -> str:
    """A table in markdown: means over repetitions, and pairs' error as a multiple of one method's."""
    groups: dict[tuple[str, str, str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.table, line.epsilon, line.delta, line.method), []).append(line)
    names = ("table", "epsilon", "delta", "method", "reps", *SHOWN, f"two_equal / {unit}", "note")
    out = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for (table, epsilon, delta, method), group in sorted(groups.items(), key=lambda item: _order(item[0])):
        rival = groups.get((table, epsilon, delta, unit)) if epsilon else None
        ratio = _mean(group, "two_equal") / _mean(rival, "two_equal") if rival else math.nan
        cells = [table, epsilon, delta, method, str(len(group)), *(_shown(_mean(group, name), name) for name in SHOWN)]
        notes = ", ".join(sorted({line.note for line in group if line.note}))
        out.append(f"| {' | '.join([*cells, '' if math.isnan(ratio) else f'{ratio:.2f}', notes])} |")
    return "\n".join(out)


def _order(key: tuple[str, str, str, str]) -> tuple[object, ...]:
    table, epsilon, delta, method = key
    return table, delta, float(epsilon or 0), REFERENCES.index(method) if method in REFERENCES else 9, method


def rising_errors(lines: Sequence[Line], *, tolerance: float = 0.02) -> Iterator[str]:
    """Where more epsilon made a method's pairs worse by more than this share."""
    means: dict[tuple[str, str, str], dict[float, list[float]]] = {}
    for line in lines:
        if line.epsilon:
            by_epsilon = means.setdefault((line.table, line.delta, line.method), {})
            by_epsilon.setdefault(float(line.epsilon), []).append(line.two_equal)
    for (table, delta, method), by_epsilon in means.items():
        ordered = [(epsilon, float(np.mean(values))) for epsilon, values in sorted(by_epsilon.items())]
        for (less, before), (more, after) in pairwise(ordered):
            if after > before * (1 + tolerance):
                yield f"{method} on {table}, delta {delta}: {before:.4f} at {less:g}, {after:.4f} at {more:g}"


def _mean(group: Sequence[Line], name: str) -> float:
    return float(np.mean([getattr(line, name) for line in group]))


def _shown(value: float, name: str) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.1f}" if name == "cpu_seconds" else f"{value:.4f}" if name in ERRORS else f"{value:.3f}"
