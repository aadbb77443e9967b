"""Two groups compared: would an analyst of the synthetic table reach the same conclusion?

Montoya Perez et al. (2024). How reliable a low p-value is for a mechanism and an epsilon is in ``inference``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, judge
from dpsynth_core.diagnostics.features import position_values
from dpsynth_core.errors import DPSynthError, check_int
from dpsynth_core.inference.group_comparison import group_labels, ordered
from dpsynth_core.inference.group_test import MAX_LEVELS
from dpsynth_core.inference.mann_whitney import mann_whitney_counts
from dpsynth_core.inference.proportions import NORMAL_QUANTILE, UPPER_TAIL
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

ALPHA = 0.05
LIMITS = 0.05, 0.15
"""Excess over the reference up to which effects are called close, and beyond which far apart."""
MEDIAN_ERROR = 0.6745
"""Of a normal estimate, in standard errors."""


@dataclass(frozen=True, kw_only=True)
class MannWhitneyDiagnostic(Diagnostic):
    """Effect sizes of every ordered column between every two groups of every column that tells a few groups apart."""

    key: ClassVar[str] = "mann_whitney"
    title: ClassVar[str] = "Differences between groups (Mann-Whitney)"
    question: ClassVar[str] = "Would an analyst of the synthetic table find the same differences between two groups?"
    method: ClassVar[str] = (
        "Every column with an order is compared between every two groups of every other column that has a few. The "
        "effect is the chance that a random member of the first group exceeds one of the second (ties count half): "
        "0.5 means no difference. It is U / (n1 n2) of the Mann-Whitney test, whose p-values for original and "
        "synthetic table are in the table. The score is how far the effect moved, with DeLong's standard error; the "
        "reference is how far it moves between two samples of the original, its upper end adjusted for the number of "
        "comparisons. Groups of very few original rows are left out. The headline is the comparison with the worst "
        "verdict."
    )
    scale: ClassVar[Scale] = Scale(name="change of effect", good="no more than between two samples of the original")

    group: str | None = None
    """The column that divides the rows into groups. None: every column that has a few."""
    min_rows: int = 5
    """Rows that the original must have in either group for the question to be asked."""

    def __post_init__(self) -> None:
        check_int("min_rows", self.min_rows, 1, 10**6)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:  # noqa: ARG002
        progress("Comparing groups", 0.0)
        comparisons = list(self._comparisons(pair, progress))
        if not comparisons:
            return self.unable(
                f"This needs a column with an order and another one with two to {MAX_LEVELS} levels, of which two have "
                f"at least {self.min_rows} rows."
            )
        # One fresh sample in forty exceeds this in any of the comparisons (Sidak).
        usual = float(ndtri((1 + UPPER_TAIL ** (1 / len(comparisons))) / 2))
        items = [comparison.measure(pair, usual) for comparison in comparisons]
        columns = list(dict.fromkeys(comparison.group for comparison in comparisons))
        notes = [f"{len(items):,} comparisons, between groups of {', '.join(columns)}."]
        tests = pd.DataFrame([comparison.row() for comparison in comparisons])
        return self.result(items, notes=notes, tables={"tests": tests})

    def _comparisons(self, pair: TablePair, progress: Progress) -> Iterator[_Compared]:
        schema = pair.original.schema
        groups = group_columns(schema) if self.group is None else [self.group]
        labels = {name: group_labels(schema[name]) for name in groups}
        codes = [{name: _group_codes(table, schema[name]) for name in groups} for table in _tables(pair)]
        values = [column.name for column in schema if ordered(column)]
        for step, value in enumerate(values):
            progress("Comparing groups", step / len(values))
            ranks = [_ranks(table, value) for table in _tables(pair)]
            for group in groups:
                if group == value:
                    continue
                counts = [
                    _level_counts(own[group], rank, len(labels[group])) for own, rank in zip(codes, ranks, strict=True)
                ]
                rows = counts[0].sum(axis=1)
                asked = [level for level in range(len(labels[group])) if rows[level] >= self.min_rows]
                for first, second in combinations(asked, 2):
                    effects = [_Effect.of(table[first], table[second]) for table in counts]
                    which = "" if len(labels[group]) == 2 else f": {labels[group][first]} and {labels[group][second]}"
                    yield _Compared(value=value, group=group, which=which, original=effects[0], synthetic=effects[1])


@dataclass(frozen=True, kw_only=True)
class _Effect:
    """What one table says about two groups."""

    effect: float
    statistic: float
    pvalue: float
    rows: tuple[int, int]
    spread: tuple[float, float]
    """Variance of the effect's components over the rows of either group (DeLong et al. 1988)."""
    defined: bool
    """Whether both groups have rows whose values are not all equal."""

    @classmethod
    def of(cls, first: FloatArray, second: FloatArray) -> _Effect:
        """From each group's count of every value, in the values' order."""
        tests = mann_whitney_counts(first[None], second[None], degenerate="one")
        effect, n1, n2 = float(tests.effect[0]), int(first.sum()), int(second.sum())
        below = (np.cumsum(second) - second / 2) / max(n2, 1)
        above = (n1 - np.cumsum(first) + first / 2) / max(n1, 1)
        spread = tuple(
            float(counts @ (share - effect) ** 2) / max(n - 1, 1)
            for counts, share, n in ((first, below, n1), (second, above, n2))
        )
        return cls(
            effect=effect,
            statistic=float(tests.statistic[0]),
            pvalue=float(tests.pvalue[0]),
            rows=(n1, n2),
            spread=(spread[0], spread[1]),
            defined=bool(tests.defined[0]),
        )

    def variance(self, share: float = 1.0) -> float:
        """Of the effect, in a sample with so many rows for each row here; at least that of half a row in one group."""
        n1, n2 = (max(rows * share, 1.0) for rows in self.rows)
        return max(self.spread[0] / n1 + self.spread[1] / n2, (0.5 / min(n1, n2)) ** 2)


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """One value column between two groups, in both tables."""

    value: str
    group: str
    which: str
    """The two groups, where there are more."""
    original: _Effect
    synthetic: _Effect

    @property
    def name(self) -> str:
        return f"{self.value} by {self.group}{self.which}"

    def measure(self, pair: TablePair, usual: float) -> Measure:
        """How far the effect moved; ``usual`` is what a fresh sample hardly ever exceeds, in standard errors."""
        columns, before, after = (self.value, self.group), self.original, self.synthetic
        if not after.defined or not before.defined:
            return Measure.failed(self.name, self._problem(), columns)
        value = abs(after.effect - before.effect)
        doubt = NORMAL_QUANTILE * math.sqrt(before.variance() + after.variance())
        fresh = math.sqrt(before.variance() + before.variance(pair.synthetic.n / pair.original.n))
        reference, reference_high = min(1.0, MEDIAN_ERROR * fresh), min(1.0, usual * fresh)
        return Measure(
            name=self.name,
            columns=columns,
            value=value,
            low=max(0.0, value - doubt),
            high=min(1.0, value + doubt),
            reference=reference,
            reference_high=reference_high,
            verdict=judge(value, reference_high, value - reference, LIMITS),
            reading=_reading(before, after),
        )

    def _problem(self) -> str:
        where = "original" if not self.original.defined else "synthetic table"
        if 0 in (*self.original.rows, *self.synthetic.rows):
            return f"A group of {self.group!r} has no row with a value of {self.value!r} in the {where}."
        return f"All values of {self.value!r} in these groups are equal in the {where}, so the groups cannot differ."

    def row(self) -> dict[str, object]:
        """Both tests, for a table."""
        tests = {"original": self.original, "synthetic": self.synthetic}
        facts: dict[str, object] = {"comparison": self.name}
        for label, test in tests.items():
            facts |= {f"effect, {label}": test.effect, f"U, {label}": test.statistic, f"p, {label}": test.pvalue}
        return facts


def group_columns(schema: Schema) -> list[str]:
    """Columns that tell a few groups apart, those with two levels first."""
    found = [(levels, column.name) for column in schema if 2 <= (levels := _levels(column)) <= MAX_LEVELS]
    return [name for _, name in sorted(found, key=lambda one: one[0] > 2)]


def default_group(schema: Schema) -> str | None:
    """The first column with two levels."""
    return next((c.name for c in schema if not c.is_numeric and len(group_labels(c)) == 2), None)


def default_pair(schema: Schema) -> tuple[str, str] | None:
    """A value and a group column to be tested, from public facts: the first of each kind."""
    group = default_group(schema)
    values = [column.name for column in schema if column.name != group and ordered(column)]
    return (values[0], group) if group is not None and values else None


def _levels(column: Column) -> int:
    try:
        return len(group_labels(column))
    except DPSynthError:
        return 0


def _tables(pair: TablePair) -> tuple[PrivateTable, PrivateTable]:
    return pair.original, pair.synthetic


def _group_codes(table: PrivateTable, column: Column) -> IntArray:
    return codec_for(column).codes(table.positions(column.name))


def _ranks(table: PrivateTable, name: str) -> IntArray:
    """Each row's value as a rank without gaps; -1 where it is missing."""
    values = position_values(table, name)
    known = ~np.isnan(values)
    ranks = np.full(len(values), -1, dtype=np.int64)
    ranks[known] = np.unique(values[known], return_inverse=True)[1]
    return ranks


def _level_counts(codes: IntArray, ranks: IntArray, levels: int) -> FloatArray:
    """Rows of every level with every value; rows without a value or a level are left out."""
    known = (ranks >= 0) & (codes >= 0) & (codes < levels)
    width = int(ranks.max(initial=0)) + 1
    counts = np.bincount(codes[known] * width + ranks[known], minlength=levels * width)
    return counts.reshape(levels, width).astype(np.float64)


def _reading(original: _Effect, synthetic: _Effect) -> str:
    was, now = original.pvalue <= ALPHA, synthetic.pvalue <= ALPHA
    effects = f"The effect was {original.effect:.2f} and is {synthetic.effect:.2f} (0.5: no difference)"
    if was and now and (original.effect > 0.5) != (synthetic.effect > 0.5):
        return f"{effects}: both tables show a difference, but in opposite directions."
    if was != now:
        alone = "original" if was else "synthetic"
        return f"{effects}: only the {alone} table shows a difference at the 5% level."
    return f"{effects}: {'both tables show a difference' if was else 'neither table shows a difference'}."
