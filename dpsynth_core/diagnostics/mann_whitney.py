"""Two groups compared: would an analyst of the synthetic table reach the same conclusion?

Montoya Perez et al. (2024). How reliable a low p-value is for a mechanism and an epsilon is in ``inference``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, judge, measure_each, some_rows
from dpsynth_core.errors import DPSynthError, check_int
from dpsynth_core.inference.group_comparison import GroupComparison, group_labels, ordered
from dpsynth_core.inference.mann_whitney import MannWhitney, effect_size
from dpsynth_core.inference.proportions import UPPER_TAIL
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.schema import Schema

ALPHA = 0.05
LIMITS = 0.05, 0.15
"""Excess over the reference up to which effects are called close, and beyond which far apart."""


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
    scale: ClassVar[Scale] = Scale(name="change of effect", good="no more than between two samples of the original")

    group: str | None = None
    """The column that divides the rows into groups. None: the first with two levels."""
    draws: int = 100
    """Bootstrap samples behind every interval."""
    max_rows: int = 5_000
    """Rows of a group that take part in the bootstrap."""

    def __post_init__(self) -> None:
        check_int("draws", self.draws, 20, 100_000)
        check_int("max_rows", self.max_rows, 10, 10**6)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        progress("Comparing groups", 0.0)
        schema = pair.original.schema
        group = self.group or default_group(schema)
        values = [column.name for column in schema if column.name != group and ordered(column)]
        if group is None or not values:
            return self.unable("This needs a column with two levels and another one with an order.")
        groups = {name: GroupComparison.of(schema, value=name, group=group) for name in values}
        original, synthetic = pair.original.rows(), pair.synthetic.rows()
        items = measure_each(
            [(name, (name, group)) for name in values],
            lambda name, _: self._measure(groups[name], original, synthetic, rng),
            progress,
            "Comparing groups",
        )
        tests = pd.DataFrame([{"column": name, **_tests(groups[name], original, synthetic)} for name in values])
        return self.result(items, notes=[f"Groups: {group}."], tables={"tests": tests})

    def _measure(
        self, groups: GroupComparison, original: pd.DataFrame, synthetic: pd.DataFrame, rng: np.random.Generator
    ) -> Measure:
        tests = groups.test(original), groups.test(synthetic)
        value = abs(tests[1].effect - tests[0].effect)
        ours, theirs = (
            [side[some_rows(len(side), self.max_rows, rng)] for side in groups.split(table)]
            for table in (original, synthetic)
        )
        first, second, other = (self._bootstrap(sides, rng) for sides in (ours, ours, theirs))
        signed = np.quantile(other - first, (1 - UPPER_TAIL, UPPER_TAIL))
        fresh = np.abs(second - first)
        reference, usual = float(np.median(fresh)), float(np.quantile(fresh, UPPER_TAIL))
        return Measure(
            name=groups.value.name,
            columns=(groups.value.name, groups.group.name),
            value=value,
            low=0.0 if signed[0] <= 0 <= signed[1] else float(np.abs(signed).min()),
            high=min(1.0, float(np.abs(signed).max())),
            reference=reference,
            reference_high=usual,
            verdict=judge(value, usual, value - reference, LIMITS),
            reading=_reading(*tests),
        )

    def _bootstrap(self, sides: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
        """Effects of samples drawn with replacement within both groups."""
        return np.array(
            [effect_size(*(side[rng.integers(0, len(side), len(side))] for side in sides)) for _ in range(self.draws)]
        )


def default_group(schema: Schema) -> str | None:
    """The first column with two levels."""
    return next((c.name for c in schema if not c.is_numeric and len(group_labels(c)) == 2), None)


def default_pair(schema: Schema) -> tuple[str, str] | None:
    """A value and a group column to be tested, from public facts: the first of each kind."""
    group = default_group(schema)
    values = [column.name for column in schema if column.name != group and ordered(column)]
    return (values[0], group) if group is not None and values else None


def _tests(groups: GroupComparison, original: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for label, table in (("original", original), ("synthetic", synthetic)):
        try:
            test = groups.test(table)
            row |= {f"effect, {label}": test.effect, f"U, {label}": test.statistic, f"p, {label}": test.pvalue}
        except DPSynthError as error:
            row["problem"] = str(error)
    return row


def _reading(original: MannWhitney, synthetic: MannWhitney) -> str:
    was, now = original.pvalue <= ALPHA, synthetic.pvalue <= ALPHA
    effects = f"The effect was {original.effect:.2f} and is {synthetic.effect:.2f} (0.5: no difference)"
    if was and now and (original.effect > 0.5) != (synthetic.effect > 0.5):
        return f"{effects}: both tables show a difference, but in opposite directions."
    if was != now:
        lost = "the difference in the original is lost" if was else "the synthetic table shows one that is not there"
        return f"{effects}: {lost}, at the 5% level."
    return f"{effects}: {'both tables show a difference' if was else 'neither table shows a difference'}."
