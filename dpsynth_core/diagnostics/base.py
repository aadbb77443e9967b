"""What every diagnostic has: a question, a verb, and results that say how to read them.

A result is computed from private rows and is therefore private itself: ``releasable`` is False and cannot be set.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable

Verdict: TypeAlias = Literal["excellent", "good", "fair", "poor", "unknown"]

VERDICTS: tuple[Verdict, ...] = ("excellent", "good", "fair", "unknown", "poor")
"""From best to worst. What could not be computed counts as worse than fair: silence is no evidence of quality."""
NORMAL_QUANTILE = 1.959963984540054
"""Half-width of such an interval in standard errors."""
INTERNAL = "For internal review: computed from the private rows, not for release."


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How to read a number."""

    name: str
    """What is measured."""
    low: float
    """Smallest possible value."""
    high: float
    """Largest possible value; may be infinite."""
    better: Literal["lower", "higher"]
    """Which way is better."""
    good: str
    """What a good value is, in words."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number with all that is needed to read it."""

    name: str
    """Of what: a column, a pair of columns, or the whole table. May hold column names, which are untrusted text."""
    columns: tuple[str, ...] = ()
    """The columns it looks at; none for the whole table."""
    value: float | None
    """The number; None where it cannot be computed."""
    low: float | None = None
    """Lower end of its 95% interval."""
    high: float | None = None
    """Upper end of its 95% interval."""
    reference: float | None = None
    """What the number typically is when a fresh sample of the original takes the synthetic table's place."""
    reference_high: float | None = None
    """What it hardly ever (one time in forty) exceeds then."""
    verdict: Verdict = "unknown"
    """What to make of it."""
    reading: str = ""
    """The same in a sentence."""

    @classmethod
    def failed(cls, name: str, why: str, columns: tuple[str, ...] = ()) -> Self:
        """A number that cannot be computed; it is shown as such and never averaged away."""
        return cls(name=name, columns=columns, value=None, reading=why)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a diagnostic found."""

    key: str
    """The diagnostic's name in the registry."""
    title: str
    """What people call it."""
    scale: Scale
    """How its numbers are read."""
    headline: Measure
    """The number that counts: the worst item, or the whole table's; never an average over columns."""
    items: tuple[Measure, ...] = ()
    """Every column, pair or score, worst first."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how it was computed here."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Details for pictures and downloads, by name."""
    releasable: Literal[False] = field(default=False, init=False)
    """Never: it was computed from private rows."""

    @property
    def verdict(self) -> Verdict:
        """The headline's."""
        return self.headline.verdict


@dataclass(frozen=True, kw_only=True)
class TablePair:
    """Original and synthetic table over the same declared domain."""

    original: PrivateTable
    """The private rows."""
    synthetic: PrivateTable
    """The synthetic rows, read with the same schema."""

    @classmethod
    def of(cls, original: PrivateTable, synthetic: pd.DataFrame, columns: Sequence[str] | None = None) -> Self:
        """Both tables, or only some of their columns."""
        schema = original.schema if columns is None else original.schema.select(columns)
        return cls(original=original.select(schema.names), synthetic=PrivateTable(synthetic, schema))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns compared."""
        return self.original.schema.names

    def counts(self, names: Sequence[str], bins: Mapping[str, int]) -> tuple[IntArray, IntArray]:
        """Rows of either table in every cell that holds rows of one of them, in the same order."""
        both = [table.counts(names, bins=bins) for table in (self.original, self.synthetic)]
        cells = np.concatenate([counted.cells for counted in both])
        distinct, place = np.unique(cells, axis=0, return_inverse=True)
        split = len(both[0].cells)
        out = np.zeros((2, len(distinct)), dtype=np.int64)
        out[0, place[:split]], out[1, place[split:]] = both[0].counts, both[1].counts
        return out[0], out[1]


@dataclass(frozen=True, kw_only=True)
class Diagnostic(ABC):
    """A way to compare a synthetic table with its original: frozen parameters and one verb, ``examine``."""

    key: ClassVar[str]
    """Name in the registry."""
    title: ClassVar[str]
    """What people call it."""
    question: ClassVar[str]
    """What it answers, in a sentence."""
    method: ClassVar[str]
    """How it is computed, for those who ask."""
    scale: ClassVar[Scale]
    """How its numbers are read."""

    @abstractmethod
    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        """Compare. ``rng`` serves bootstraps and permutations only: the same seed gives the same numbers."""

    def unable(self, why: str) -> Result:
        """The result where nothing can be computed."""
        return Result(
            key=self.key, title=self.title, scale=self.scale, headline=Measure.failed(self.title, why), notes=(why,)
        )


def worst_first(items: Iterable[Measure]) -> tuple[Measure, ...]:
    """Items in the order in which a reviewer should look at them: failures first, then by excess over the reference."""
    return tuple(sorted(items, key=lambda item: (item.value is not None, -_excess(item), item.name)))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts; unknown where there are none."""
    return max(verdicts, key=VERDICTS.index, default="unknown")


def _excess(item: Measure) -> float:
    if item.value is None:
        return math.inf
    return item.value - (item.reference or 0.0)


def guarded(name: str, columns: tuple[str, ...], measure: Callable[[], Measure]) -> Measure:
    """One item; where it cannot be computed the reason takes its place, so that the others are still shown."""
    try:
        return measure()
    except DPSynthError as error:
        return Measure.failed(name, str(error), columns)
