"""Two groups compared: would an analyst of the synthetic table reach the same conclusion?

Montoya Perez et al. (2024). What a low p-value is worth for a mechanism and an epsilon is in ``inference``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.base import (
    Diagnostic,
    Measure,
    Result,
    Scale,
    TablePair,
    Verdict,
    guarded,
    worst_first,
)
from dpsynth_core.errors import DPSynthError, check_int
from dpsynth_core.inference.group_comparison import GroupComparison, group_labels, ordered
from dpsynth_core.inference.mann_whitney import MannWhitney
from dpsynth_core.inference.proportions import CONFIDENCE
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.schema import Schema

ALPHA = 0.05
CLOSE, VISIBLE = 0.05, 0.15
"""Excess over the yardstick up to which effects are called close, and beyond which far apart."""


@dataclass(frozen=True, kw_only=True)
class MannWhitneyDiagnostic(Diagnostic):
    """Effect sizes of every ordered column between two groups."""

    key: ClassVar[str] = "mann_whitney"
    title: ClassVar[str] = "Differences between groups (Mann-Whitney)"
    question: ClassVar[str] = "Would an analyst of the synthetic table find the same differences between two groups?"
    method: ClassVar[str] = (
        "For every column with an order, the effect is the chance that a random member of the first group exceeds one "
        "of the second (ties count half): 0.5 means no difference. It is U / (n1 n2) of the Mann-Whitney test, whose "
        "p-values for original and synthetic table are in the table. The score is how far the effect moved; its "
        "interval is a bootstrap within groups, and the reference is how far it moves between two samples of the "
        "original. The headline is the column whose effect moved most."
    )
    scale: ClassVar[Scale] = Scale(
        name="change of effect",
        low=0.0,
        high=1.0,
        better="lower",
        good="no more than between two samples of the original",
    )

    group: str | None = None
    """The column that tells the groups apart. None: the first with two levels."""
    draws: int = 100
    """Bootstrap samples behind every interval."""
    most_rows: int = 5_000
    """Rows of a group that take part in the bootstrap."""

    def __post_init__(self) -> None:
        check_int("draws", self.draws, 20, 100_000)
        check_int("most_rows", self.most_rows, 10, 10**6)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        """Every ordered column, the effect that moved most first."""
        progress("Comparing groups", 0.0)
        schema = pair.original.schema
        group = self.group or default_group(schema)
        values = [column.name for column in schema if column.name != group and ordered(column)]
        if group is None or not values:
            return self.unable("This needs a column with two levels and another one with an order.")
        tables = pair.original.rows(), pair.synthetic.rows()
        items, rows = [], []
        for place, name in enumerate(values):
            progress("Comparing groups", place / len(values))
            groups = GroupComparison.of(schema, value=name, group=group)
            items.append(guarded(name, (name, group), lambda groups=groups: self._measure(groups, tables, rng)))  # type: ignore[misc]
            rows.append({"column": name, **_tests(groups, tables)})
        ordered_items = worst_first(items)
        return Result(
            key=self.key,
            title=self.title,
            scale=self.scale,
            headline=ordered_items[0],
            items=ordered_items,
            notes=(f"Groups: {group}.",),
            tables={"tests": pd.DataFrame(rows)},
        )

    def _measure(
        self, groups: GroupComparison, tables: tuple[pd.DataFrame, pd.DataFrame], rng: np.random.Generator
    ) -> Measure:
        original, synthetic = (groups.test(table) for table in tables)
        value = abs(synthetic.effect - original.effect)
        parts = [[_some(side, self.most_rows, rng) for side in groups.split(table)] for table in tables]
        first = np.array([_effect(*_again(parts[0], rng)) for _ in range(self.draws)])
        second = np.array([_effect(*_again(parts[0], rng)) for _ in range(self.draws)])
        other = np.array([_effect(*_again(parts[1], rng)) for _ in range(self.draws)])
        tail = (1 - CONFIDENCE) / 2
        signed = np.quantile(other - first, (tail, 1 - tail))
        low = 0.0 if signed[0] <= 0 <= signed[1] else float(np.abs(signed).min())
        fresh = np.abs(second - first)
        reference, usual = float(np.median(fresh)), float(np.quantile(fresh, 1 - tail))
        verdict = _verdict(value, reference, usual)
        return Measure(
            name=groups.value.name,
            columns=(groups.value.name, groups.group.name),
            value=value,
            low=low,
            high=min(1.0, float(np.abs(signed).max())),
            reference=reference,
            reference_high=usual,
            verdict=verdict,
            reading=_reading(original, synthetic),
        )


def default_group(schema: Schema) -> str | None:
    """The first column with two levels."""
    for column in schema:
        if not column.is_numeric and len(group_labels(column)) == 2:
            return column.name
    return None


def _tests(groups: GroupComparison, tables: tuple[pd.DataFrame, pd.DataFrame]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for label, table in zip(("original", "synthetic"), tables, strict=True):
        try:
            test = groups.test(table)
            row |= {f"effect, {label}": test.effect, f"U, {label}": test.statistic, f"p, {label}": test.pvalue}
        except DPSynthError as error:
            row["problem"] = str(error)
    return row


def _again(sides: list[FloatArray], rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    first, second = (side[rng.integers(0, len(side), len(side))] for side in sides)
    return first, second


def _some(side: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    return side if len(side) <= most else side[rng.choice(len(side), most, replace=False)]


def _effect(first: FloatArray, second: FloatArray) -> float:
    """U / (n1 n2), ties as half."""
    second = np.sort(second)
    below, upto = np.searchsorted(second, first, "left"), np.searchsorted(second, first, "right")
    return float((below + upto).mean() / (2 * len(second)))


def _verdict(value: float, reference: float, usual: float) -> Verdict:
    if value <= usual:
        return "excellent"
    return "good" if value - reference < CLOSE else "fair" if value - reference < VISIBLE else "poor"


def _reading(original: MannWhitney, synthetic: MannWhitney) -> str:
    was, now = original.pvalue <= ALPHA, synthetic.pvalue <= ALPHA
    effects = f"The effect was {original.effect:.2f} and is {synthetic.effect:.2f} (0.5: no difference)"
    if was and now and (original.effect > 0.5) != (synthetic.effect > 0.5):
        return f"{effects}: both tables show a difference, but in opposite directions."
    if was != now:
        lost = "the difference in the original is lost" if was else "the synthetic table shows one that is not there"
        return f"{effects}: {lost}, at the 5% level."
    return f"{effects}: {'both tables show a difference' if was else 'neither table shows a difference'}."
