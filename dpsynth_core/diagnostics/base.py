"""What every diagnostic has: a question, a verb, and results that say how to read them.

A result is computed from private rows and is therefore private itself: ``releasable`` is False and cannot be set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_rows import CellCounts, DeclaredCells
from dpsynth_core.table.private_table import PrivateTable

Verdict: TypeAlias = Literal["excellent", "good", "fair", "poor", "unknown"]

VERDICTS: tuple[Verdict, ...] = ("excellent", "good", "fair", "unknown", "poor")
"""From best to worst. A missing number counts as worse than fair: silence is no evidence of quality."""
INTERNAL = "For internal review: computed from the private rows, not for release."


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How to read a number."""

    name: str
    good: str
    """What a good value is, in words."""
    low: float = 0.0
    high: float = 1.0
    """May be infinite."""
    better: Literal["lower", "higher"] = "lower"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number with all that is needed to read it."""

    name: str
    """A column, a pair of columns, or the whole table. May hold column names, which are untrusted text."""
    columns: tuple[str, ...] = ()
    value: float | None
    """None where it cannot be computed."""
    low: float | None = None
    """Lower end of its 95% interval."""
    high: float | None = None
    reference: float | None = None
    """What the number typically is for a fresh sample of the original instead of the synthetic table."""
    reference_high: float | None = None
    """What it hardly ever (one time in forty) exceeds for such a sample."""
    verdict: Verdict = "unknown"
    reading: str = ""
    """The verdict in a sentence."""

    @classmethod
    def failed(cls, name: str, why: str, columns: tuple[str, ...] = ()) -> Self:
        """A number that cannot be computed; it is shown as such and never averaged away."""
        return cls(name=name, columns=columns, value=None, reading=why)


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of a diagnostic. Private, like the rows that it was computed from."""

    key: str
    title: str
    scale: Scale
    headline: Measure
    """The item with the worst verdict, of several the largest; or the whole table's. Never an average over columns."""
    items: tuple[Measure, ...] = ()
    """Every column, pair or score, worst first."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how it was computed here."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Details for pictures and downloads, by name."""
    releasable: Literal[False] = field(default=False, init=False)

    @property
    def verdict(self) -> Verdict:
        return self.headline.verdict


@dataclass(frozen=True, kw_only=True)
class TablePair:
    """Original and synthetic table over the same declared domain."""

    original: PrivateTable
    synthetic: PrivateTable

    @classmethod
    def of(cls, original: PrivateTable, synthetic: pd.DataFrame, columns: Sequence[str] | None = None) -> Self:
        schema = original.schema if columns is None else original.schema.select(columns)
        return cls(original=original.select(schema.names), synthetic=PrivateTable(synthetic, schema))

    @property
    def names(self) -> tuple[str, ...]:
        return self.original.schema.names

    def counts(self, sets: Sequence[Sequence[Column]]) -> list[tuple[IntArray, IntArray]]:
        """For each set of columns, rows of either table in every cell that holds any, in the same order.

        Every row is counted, of a long table as well, in one pass for all sets.
        """
        cells = {column: DeclaredCells(column=column) for columns in sets for column in columns}
        asked = [[cells[column] for column in columns] for columns in sets]
        both = [table.every_row.histograms(asked) for table in (self.original, self.synthetic)]
        shapes = [[column.size for column in columns] for columns in sets]
        return [_aligned(first, second, shape) for first, second, shape in zip(*both, shapes, strict=True)]


def _aligned(first: CellCounts, second: CellCounts, shape: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Two tables' counts over the cells that hold rows of either."""
    keys = np.ravel_multi_index(tuple(np.concatenate([first[0], second[0]]).T), tuple(shape))
    distinct, index = np.unique(keys, return_inverse=True)
    split = len(first[0])
    out = np.zeros((2, len(distinct)), dtype=np.int64)
    out[0, index[:split]], out[1, index[split:]] = first[1], second[1]
    return out[0], out[1]


@dataclass(frozen=True, kw_only=True)
class Diagnostic(ABC):
    """A way to compare a synthetic table with its original: frozen parameters and one verb, ``examine``."""

    key: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    """What it answers, in a sentence."""
    method: ClassVar[str]
    """How it is computed, for those who ask."""
    scale: ClassVar[Scale]
    counted: ClassVar[str] = ""
    """What of it is a matter of counts, so that every row of a long table is taken into account; the rest, or all of it
    where nothing is said, is computed on a sample."""

    def basis(self, pair: TablePair) -> tuple[str, ...]:
        """On how many rows of a long original its numbers are computed, in a sentence; nothing for any other."""
        sample = pair.original.basis
        if not sample:
            return ()
        if not self.counted or pair.original.every_row.n < pair.original.rows_in_all:
            return (f"{sample[0].upper()}{sample[1:]}, drawn at random by position.",)
        every = f"{self.counted} computed on all {pair.original.rows_in_all:,} rows"
        return (f"{every}, the rest {sample}, drawn at random by position.",)

    @abstractmethod
    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        """Compare. ``rng`` serves bootstraps and permutations only: the same seed gives the same numbers."""

    def result(
        self,
        items: Iterable[Measure],
        *,
        headline: Measure | None = None,
        notes: Sequence[str] = (),
        tables: Mapping[str, pd.DataFrame] | None = None,
    ) -> Result:
        """The result with these measures, worst first; the worst verdict is the headline unless another is given."""
        ordered = worst_first(items)
        return Result(
            key=self.key,
            title=self.title,
            scale=self.scale,
            headline=headline or worst_verdict(ordered),
            items=ordered,
            notes=tuple(notes),
            tables=tables or {},
        )

    def unable(self, why: str) -> Result:
        return self.result((), headline=Measure.failed(self.title, why), notes=(why,))


def worst_first(items: Iterable[Measure]) -> tuple[Measure, ...]:
    """Items in the order in which a reviewer should look at them: failures, then by verdict, then by size."""

    def rank(item: Measure) -> tuple[bool, int, float, str]:
        return item.value is not None, -VERDICTS.index(item.verdict), -(item.value or 0.0), item.name

    return tuple(sorted(items, key=rank))


def worst_verdict(items: Iterable[Measure]) -> Measure:
    """The measure with the worst verdict; among equals, the one with the largest value."""
    return max(items, key=lambda item: (VERDICTS.index(item.verdict), item.value or 0.0))


def judge(value: float, reference_high: float, excess: float, limits: tuple[float, float]) -> Verdict:
    """Excellent if a fresh sample could score the same; else by how far the excess goes beyond the two limits.

    So a difference counts only if it is beyond chance, and then by its size alone: with more rows chance shrinks, but
    the same difference keeps the same name.
    """
    if value <= reference_high:
        return "excellent"
    close, visible = limits
    return "good" if excess < close else "fair" if excess < visible else "poor"


def measure_each(
    columns: Sequence[tuple[str, tuple[str, ...]]], measure: Callable[..., Measure], progress: Progress, stage: str
) -> list[Measure]:
    """The measure of each named set of columns, or why it cannot be computed, so that the others are shown."""
    measures = []
    for index, (name, chosen) in enumerate(columns):
        progress(stage, index / len(columns))
        try:
            measures.append(measure(*chosen))
        except DPSynthError as error:
            measures.append(Measure.failed(name, str(error), chosen))
    return measures


def some_rows(rows: int, max_rows: int, rng: np.random.Generator) -> IntArray:
    """Indices of all rows, or of a random part of them."""
    return np.arange(rows) if rows <= max_rows else rng.choice(rows, max_rows, replace=False)
