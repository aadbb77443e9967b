"""Releases of tables in which two columns have nothing to do with each other: the machinery that all risks share.

A question is a :class:`NullTest`: two columns, and the ordinary test of whether they are related. To add a question,
write a small file with a subclass that says what its test finds in a table of rows (``on_rows``) and, if it can, in
tables of counts (``on_counts``, thousands at once); everything else is here and in the modules beside it:

- ``null_simulators.simulator_of`` gives the quickest :class:`NullSimulator` for a release and a question: by array
  arithmetic (``count_simulator``) or by running the mechanism (``row_simulator``),
- ``simulator.estimate(rng)`` says what the null leaves open (a ``Nuisance``), as far as the release tells,
- ``simulator.run(nuisance, tables, rng)`` draws null tables, releases each by the mechanism itself, and tests it,
- ``plausible_nulls.risk_range(simulator, ...)`` is the range of the test's false-discovery rate.

Only published things are looked at: the synthetic rows, the mechanism, its epsilon, the declared columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import BoolArray, FloatArray
from dpsynth_core.inference.histograms import HistogramLaw
from dpsynth_core.inference.nuisance import Nuisance, rounded_sizes
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.simplex import project_to_simplex
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable

STAGE = "Simulating releases without a difference"
ESTIMATION_ROUNDS, ESTIMATION_RUNS = 3, 6
"""Rounds of the estimation by simulation, and releases in each of them where the mechanism runs."""
MAX_BATCHES = 8
"""Times as many releases as asked for, where few leave something to test."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a test finds in each table, one column for each question."""

    pvalues: FloatArray
    """Of the ordinary test; not a number where there is nothing to test."""
    statistics: FloatArray
    """Whose distribution over null releases calibrates the test; 0 where there is nothing to test."""

    @property
    def tested(self) -> BoolArray:
        """Where there was something to test."""
        return ~np.isnan(self.pvalues)

    def tested_statistics(self, question: int) -> FloatArray:
        """Of the tables that left something to test for one question."""
        return np.asarray(self.statistics[self.tested[:, question], question])

    @classmethod
    def empty(cls, questions: int) -> Findings:
        """Of no table."""
        return cls(pvalues=np.empty((0, questions)), statistics=np.empty((0, questions)))

    @classmethod
    def joined(cls, parts: Sequence[Findings]) -> Findings:
        """Of several batches of tables."""
        return cls(
            pvalues=np.concatenate([part.pvalues for part in parts]),
            statistics=np.concatenate([part.statistics for part in parts]),
        )


@dataclass(frozen=True, kw_only=True)
class CountCells:
    """How counts of shape (tables, groups, values) came about."""

    law: HistogramLaw
    group: Axis
    value: Axis


class NullTest(ABC):
    """One or more questions about a group column and a value column that the null hypothesis makes unrelated."""

    group: Column
    """Its entries are dealt out anew under the null, so that they say nothing about any other column."""
    value: Column
    max_cells: ClassVar[int] = 64
    """Cells of a numeric column in which its distribution is estimated where the mechanism runs on rows."""

    @abstractmethod
    def on_rows(self, table: pd.DataFrame) -> Findings:
        """One entry for each question."""

    def on_positions(self, table: PrivateTable) -> Findings:
        """The same for rows that are encoded already."""
        return self.on_rows(table.rows())

    def on_counts(self, counts: FloatArray, cells: CountCells, rng: np.random.Generator) -> Findings | None:  # noqa: ARG002
        """One line for each released table of counts; None where rows are needed."""
        return None


@dataclass(frozen=True, kw_only=True)
class NullReleases:
    """Simulated releases."""

    counts: FloatArray
    """Released rows by group and value, of shape (tables, groups, values)."""
    found: Findings
    """Arrays of shape (tables, questions)."""


class NullSimulator(ABC):
    """Draws null tables and releases them as the real one was released."""

    test: NullTest
    n: int
    """Rows of the original."""
    observed: FloatArray
    """The real release, as counts by group and value."""
    found: Findings
    """In the real release, one entry for each question."""
    quick: bool
    """Whether thousands of releases take no longer than a second."""
    threshold: int = 1
    """Cells with fewer rows are emptied, so that one that was kept may stand for several, and others may be hidden."""

    @property
    def statistics(self) -> FloatArray:
        """Of the real release, one for each question."""
        return self.found.statistics

    @abstractmethod
    def run(
        self, null: Nuisance, tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> NullReleases:
        """That many releases of tables drawn from one null."""

    @abstractmethod
    def counted(self, table: PrivateTable) -> FloatArray:
        """A table as counts by group and value."""

    @abstractmethod
    def estimate(
        self, rng: np.random.Generator, progress: Progress = no_progress, *, releases: int = ESTIMATION_RUNS
    ) -> Nuisance:
        """The null that the release speaks for; so many releases in each round, where the mechanism must run."""

    @abstractmethod
    def again(self, null: Nuisance, times: int, rng: np.random.Generator) -> Nuisance:
        """What would be estimated from other releases of the same null: how far the estimate can be off."""

    @abstractmethod
    def changed(self, *, factor: int = 1, epsilon: int = 1) -> NullSimulator:
        """With so many times the rows, or so many times the epsilon."""

    def run_each(
        self, nulls: Sequence[Nuisance], tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> Iterator[NullReleases]:
        """That many releases of each null, in turn."""
        for i, null in enumerate(nulls):
            progress(STAGE, i / len(nulls))
            yield self.run(null, tables, rng)

    def run_tested(
        self, null: Nuisance, tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> NullReleases:
        """That many releases of one null; where a release is array arithmetic, several times as many if less than half
        of them leave something to test where the real one does."""
        parts = [self.run(null, tables, rng, progress)]
        wanted = self.found.tested if self.found.tested.any() else np.ones_like(self.found.tested)
        while self.quick and len(parts) < MAX_BATCHES:
            tested = sum(part.found.tested[:, wanted].sum(axis=0) for part in parts)
            if np.min(tested) >= tables / 2:
                break
            parts.append(self.run(null, tables, rng))
        return joined(parts)

    def rates(self, null: Nuisance, tables: int, rng: np.random.Generator, alpha: float) -> FloatArray:
        """Share of null releases that can be tested on which the ordinary test reports a difference, by question."""
        found = self.run(null, tables, rng).found
        return np.asarray((found.pvalues <= alpha).sum(axis=0) / found.tested.sum(axis=0), dtype=np.float64)


def joined(parts: Sequence[NullReleases]) -> NullReleases:
    """Several batches of releases as one."""
    return NullReleases(
        counts=np.concatenate([part.counts for part in parts]),
        found=Findings.joined([part.found for part in parts]),
    )


def shares_of(counts: FloatArray, n: int) -> Nuisance:
    """Sizes and chances as they are in tables of counts."""
    total = counts.sum(axis=(1, 2))
    chances = counts.sum(axis=1) / total[:, None]
    return Nuisance(sizes=rounded_sizes(counts.sum(axis=2) * (n / total)[:, None], n), chances=chances)


def corrected(null: Nuisance, released: FloatArray, simulated: FloatArray, n: int) -> Nuisance:
    """The null moved by what its releases are off: released less simulated shares, back on the simplex."""
    seen, drawn = (counts / counts.sum(axis=(1, 2), keepdims=True) for counts in (released, simulated))
    off = seen - drawn
    shares = project_to_simplex(null.sizes / n + off.sum(axis=2), 1.0)
    chances = project_to_simplex(null.chances + off.sum(axis=1), 1.0)
    return Nuisance(sizes=rounded_sizes(shares * n, n), chances=chances / chances.sum(axis=1, keepdims=True))


def counts_of(table: PrivateTable, group: Axis, value: Axis) -> FloatArray:
    """Rows by group and value."""
    shape = group.size, value.size
    index = np.ravel_multi_index((group.locate(table), value.locate(table)), shape)
    return np.bincount(index, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
