"""Releases of tables in which two columns have nothing to do with each other: the machinery that all risks share.

A question is a :class:`NullTest`: two columns, and the ordinary test of whether they are related. To add a question,
write a small file with a subclass that says what its test finds in a table of rows (``on_rows``) and, if it can, in
tables of counts (``on_counts``, thousands at once); everything else is here and in ``plausible_nulls``:

- :func:`simulator_of` gives the quickest :class:`NullSimulator` for a release and a question,
- ``simulator.estimate(rng)`` says what the null leaves open (a ``Nuisance``), as far as the release tells,
- ``simulator.run(nuisance, tables, rng)`` draws null tables, releases each by the mechanism itself, and tests it,
- ``plausible_nulls.risk_range(simulator, ...)`` is the range of the test's false-discovery rate.

Only published things are looked at: the synthetic rows, the mechanism, its epsilon, the declared columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.histograms import HISTOGRAMS, HistogramLaw, SmoothedCounts, law_of
from dpsynth_core.inference.nuisance import Nuisance, rounded_sizes
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.mechanisms.simplex import project_to_simplex
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release, run_mechanism
from dpsynth_core.runs.workers import run_all
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

STAGE = "Simulating releases without a difference"
RUNS_PER_TASK = 4
MAX_CELLS = 64
"""Cells of a numeric column in which its distribution is estimated where the mechanism runs on rows."""
TABLES_AT_ONCE = 2_000_000
"""Cells and rows of simulated tables that are held at a time."""
ESTIMATION_ROUNDS, ESTIMATION_RUNS, _COUNT_RUNS = 3, 6, 40
"""Rounds of the estimation by simulation, and releases in each of them, by the mechanism and by array arithmetic."""


class NotSimulatedError(DPSynthError):
    """The null cannot be simulated for this release; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a test finds in each table, one column for each question."""

    pvalues: FloatArray
    """Of the ordinary test; not a number where there is nothing to test."""
    statistics: FloatArray
    """Whose distribution over null releases calibrates the test; 0 where there is nothing to test."""


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

    @abstractmethod
    def on_rows(self, table: pd.DataFrame) -> Findings:
        """One entry for each question."""

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
    statistics: FloatArray
    """Of the real release, one for each question."""
    quick: bool
    """Whether thousands of releases take no longer than a second."""
    hides_cells: bool = False
    """Whether cells below a threshold are emptied, so that a single cell that was kept may stand for several."""

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

    def rates(self, null: Nuisance, tables: int, rng: np.random.Generator, alpha: float) -> FloatArray:
        """Share of null releases on which the ordinary test reports a difference, for each question."""
        pvalues = self.run(null, tables, rng).found.pvalues
        return np.asarray((pvalues <= alpha).mean(axis=0), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class CountSimulator(NullSimulator):
    """By array arithmetic, where a release is known by its counts."""

    test: NullTest
    mechanism: Mechanism
    schema: Schema
    epsilon: Fraction
    """Per row."""
    n: int
    observed: FloatArray
    quick = True

    @cached_property
    def statistics(self) -> FloatArray:  # type: ignore[override]
        found = self.test.on_counts(self.observed[None], self.cells, np.random.default_rng(0))
        assert found is not None  # noqa: S101  else this simulator would not have been chosen
        return np.asarray(found.statistics[0])

    @property
    def hides_cells(self) -> bool:  # type: ignore[override]
        return not self.cells.law.undoes_noise

    @cached_property
    def cells(self) -> CountCells:
        cells = count_cells_of(self.mechanism, self.schema, self.test, self.n, self.epsilon)
        assert cells is not None  # noqa: S101  else this simulator would not have been chosen
        return cells

    def run(
        self, null: Nuisance, tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> NullReleases:
        parts = []
        for start in range(0, tables, self._at_once):
            progress(STAGE, start / tables)
            parts.append(self._released(null, min(self._at_once, tables - start), rng))
        return _joined(parts)

    def run_each(
        self, nulls: Sequence[Nuisance], tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> Iterator[NullReleases]:
        step = max(1, self._at_once // tables)
        for start in range(0, len(nulls), step):
            progress(STAGE, start / len(nulls))
            part = nulls[start : start + step]
            together = Nuisance(
                sizes=np.concatenate([null.sizes for null in part]),
                chances=np.concatenate([null.chances for null in part]),
            )
            drawn = self._released(together, tables, rng)
            for i in range(len(part)):
                lines = slice(i * tables, (i + 1) * tables)
                found = Findings(pvalues=drawn.found.pvalues[lines], statistics=drawn.found.statistics[lines])
                yield NullReleases(counts=drawn.counts[lines], found=found)

    def counted(self, table: PrivateTable) -> FloatArray:
        return _counted(table, self.cells.group, self.cells.value)

    @property
    def _at_once(self) -> int:
        return max(1, TABLES_AT_ONCE // max(self.cells.law.rows, math.prod(self.cells.law.shape)))

    def _released(self, nulls: Nuisance, tables: int, rng: np.random.Generator) -> NullReleases:
        counts = self.cells.law.run(nulls.draw(tables, rng), rng)
        found = self.test.on_counts(counts, self.cells, rng)
        assert found is not None  # noqa: S101  else this simulator would not have been chosen
        return NullReleases(counts=counts, found=found)

    def estimate(
        self,
        rng: np.random.Generator,
        progress: Progress = no_progress,
        *,
        releases: int = ESTIMATION_RUNS,  # noqa: ARG002  array arithmetic needs no fewer
    ) -> Nuisance:
        progress(STAGE, 0.0)
        return self._estimated(self.observed[None], rng)

    def again(self, null: Nuisance, times: int, rng: np.random.Generator) -> Nuisance:
        return self._estimated(self.cells.law.run(null.draw(times, rng), rng), rng)

    def changed(self, *, factor: int = 1, epsilon: int = 1) -> CountSimulator:
        return replace(self, n=self.n * factor, epsilon=self.epsilon * epsilon)

    def _estimated(self, released: FloatArray, rng: np.random.Generator) -> Nuisance:
        law = self.cells.law
        start = law.nuisance(released)
        if law.undoes_noise:
            return start

        def mean(null: Nuisance) -> FloatArray:
            drawn = law.run(null.draw(_COUNT_RUNS, rng), rng)
            return np.asarray(drawn.reshape(len(released), _COUNT_RUNS, *law.shape).sum(axis=1))

        null = start
        for _ in range(ESTIMATION_ROUNDS):
            null = corrected(null, released, mean(null), law.n)
        return null


@dataclass(frozen=True, kw_only=True)
class RowSimulator(NullSimulator):
    """By running the mechanism itself, on rows of the synthetic table that are drawn and dealt to groups anew."""

    test: NullTest
    mechanism: Mechanism
    schema: Schema
    budget: Budget
    base: PrivateTable
    """The synthetic table."""
    group: Axis
    value: Axis
    n: int
    rows: int
    """Of each release."""
    workers: int | None = None
    """Processes to use. None: as many as pay."""
    quick = False

    @cached_property
    def statistics(self) -> FloatArray:  # type: ignore[override]
        return self.test.on_rows(self.base.rows()).statistics

    @cached_property
    def observed(self) -> FloatArray:  # type: ignore[override]
        return self.counted(self.base)

    def counted(self, table: PrivateTable) -> FloatArray:
        return _counted(table, self.group, self.value)

    @cached_property
    def _members(self) -> tuple[tuple[IntArray, ...], tuple[IntArray, ...]]:
        """Synthetic rows in each cell of the group and of the value column."""
        axes = (self.group, self.value)
        codes = [axis.locate(self.base) for axis in axes]
        return tuple(  # type: ignore[return-value]
            tuple(np.flatnonzero(code == cell) for cell in range(axis.size))
            for axis, code in zip(axes, codes, strict=True)
        )

    def run(
        self, null: Nuisance, tables: int, rng: np.random.Generator, progress: Progress = no_progress
    ) -> NullReleases:
        seeds = [int(seed) for seed in rng.integers(0, 2**62, tables)]
        tasks = [(null, seeds[start : start + RUNS_PER_TASK]) for start in range(0, tables, RUNS_PER_TASK)]
        done = run_all(self._repeated, tasks, stage=STAGE, progress=progress, workers=self.workers)
        return _joined(done)

    def _repeated(self, task: tuple[Nuisance, Sequence[int]]) -> NullReleases:
        null, seeds = task
        return _joined([self._one(null, np.random.default_rng(seed)) for seed in seeds])

    def _one(self, null: Nuisance, rng: np.random.Generator) -> NullReleases:
        drawn, seed = self._null_table(null, rng), int(rng.integers(2**62))
        table = run_mechanism(drawn, self.mechanism, self.budget, seed=seed).sample(self.rows)
        pair = PrivateTable(table, self.schema.select([self.test.group.name, self.test.value.name]))
        found = self.test.on_rows(table)
        return NullReleases(
            counts=self.counted(pair)[None],
            found=Findings(pvalues=found.pvalues[None], statistics=found.statistics[None]),
        )

    def _null_table(self, null: Nuisance, rng: np.random.Generator) -> PrivateTable:
        groups, values = self._members
        chances = np.where([len(rows) > 0 for rows in values], null.chances[0], 0.0)
        if not chances.sum() > 0:
            chances = np.array([float(len(rows)) for rows in values])
        sizes = null.sizes[0]
        rows = _some(values, rng.multinomial(self.n, chances / chances.sum()), rng)
        rng.shuffle(rows)
        return self.base.resampled(rows, {self.test.group.name: self._dealt(groups, sizes, rng)})

    def _dealt(self, members: Sequence[IntArray], sizes: IntArray, rng: np.random.Generator) -> Positions:
        """The group column's positions, so many in each cell; as rows are in no order, nor need these be."""
        axis = self.group
        cells = np.repeat(np.arange(axis.size), sizes)
        missing = None if axis.missing is None else cells == axis.missing
        if axis.column.is_numeric and axis.slots != axis.column.points:
            known = np.where([len(rows) > 0 for rows in members], sizes, 0)
            if missing is not None:
                known[-1] = 0
            wanted = rng.multinomial(len(cells) - int(sizes[axis.slots :].sum()), known / max(known.sum(), 1))
            values = self.base.positions(axis.column.name).values[_some(members, wanted, rng)]
            values = np.concatenate([values, np.zeros(len(cells) - len(values), dtype=values.dtype)])
        else:
            values = np.minimum(cells, axis.slots - 1)
        return Positions(values=values, missing=missing)

    def estimate(
        self, rng: np.random.Generator, progress: Progress = no_progress, *, releases: int = ESTIMATION_RUNS
    ) -> Nuisance:
        """What gives releases like the real one on average, found step by step (indirect inference)."""
        released = self.observed[None]
        null = shares_of(released, self.n)
        for step in range(ESTIMATION_ROUNDS):
            progress(STAGE, step / ESTIMATION_ROUNDS)
            null = corrected(null, released, self.run(null, releases, rng).counts.sum(axis=0)[None], self.n)
        return null

    def again(self, null: Nuisance, times: int, rng: np.random.Generator) -> Nuisance:
        """To first order: what the release was off, the estimate is off."""
        released = self.run(null, times, rng).counts
        return corrected(null, released, released.sum(axis=0)[None], self.n)

    def changed(self, *, factor: int = 1, epsilon: int = 1) -> RowSimulator:
        rows = self.rows * factor if self.mechanism.rows is None else self.rows
        budget = Budget.of(self.budget.epsilon * epsilon, self.budget.delta)
        return replace(self, n=self.n * factor, rows=rows, budget=budget)

    @property
    def seconds(self) -> float:
        """Expected for one release."""
        budget = self.budget.per_row(self.schema.rows_per_person)
        return self.mechanism.plan(self.schema, self.n, budget).seconds_again

    def by(self, mechanism: Mechanism) -> RowSimulator:
        """The same tables released by another mechanism."""
        return replace(self, mechanism=mechanism, rows=mechanism.rows or self.n)


def _some(members: Sequence[IntArray], sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """So many members of each, drawn with replacement."""
    drawn = [rows[rng.integers(0, len(rows), size)] for rows, size in zip(members, sizes, strict=True) if size]
    return np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.int64)


def _joined(parts: Sequence[NullReleases]) -> NullReleases:
    return NullReleases(
        counts=np.concatenate([part.counts for part in parts]),
        found=Findings(
            pvalues=np.concatenate([part.found.pvalues for part in parts]),
            statistics=np.concatenate([part.found.statistics for part in parts]),
        ),
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


def simulator_of(
    release: Release, test: NullTest, synthetic: pd.DataFrame, *, workers: int | None = None
) -> NullSimulator:
    """The quickest simulator that draws what the release's mechanism would."""
    by_counts = count_simulator(release, test, synthetic)
    return by_counts or replace(row_simulator(release, test, synthetic), workers=workers)


def count_simulator(release: Release, test: NullTest, synthetic: pd.DataFrame) -> CountSimulator | None:
    """None where counts do not suffice: another mechanism, other columns that share its noise, or another test."""
    mechanism, schema, budget = release.mechanism, release.schema, release.budget
    if budget is None or len(synthetic) != (mechanism.rows or release.n):
        return None
    epsilon = budget.per_row(schema.rows_per_person).epsilon
    cells = count_cells_of(mechanism, schema, test, release.n, epsilon)
    if cells is None:
        return None
    table = PrivateTable(synthetic, schema.select([test.group.name, test.value.name]))
    observed = _counted(table, cells.group, cells.value)
    if test.on_counts(observed[None], cells, np.random.default_rng(0)) is None:
        return None
    return CountSimulator(
        test=test, mechanism=mechanism, schema=schema, epsilon=epsilon, n=release.n, observed=observed
    )


def count_cells_of(
    mechanism: Mechanism, schema: Schema, test: NullTest, n: int, epsilon: Fraction
) -> CountCells | None:
    """The law of a histogram mechanism on the test's two columns; None where other columns share its noise."""
    if not isinstance(mechanism, HISTOGRAMS):
        return None
    grid = Grid.of(schema, mechanism.bins)
    axes = {axis.column.name: axis for axis in grid.axes}
    group, value = axes[test.group.name], axes[test.value.name]
    shape = group.size, value.size
    law = law_of(mechanism, shape, n, epsilon, group_first=schema.names[0] == group.column.name)
    if isinstance(law, SmoothedCounts):
        # Summed over the other columns, each cell of these two gets the constants of all cells that it is made of.
        law = replace(law, alpha=law.alpha * (grid.cells // math.prod(shape)))
    elif law is None or len(schema.columns) != 2:
        return None
    return CountCells(law=law, group=group, value=value)


def _counted(table: PrivateTable, group: Axis, value: Axis) -> FloatArray:
    shape = group.size, value.size
    index = np.ravel_multi_index((group.locate(table), value.locate(table)), shape)
    return np.bincount(index, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def row_simulator(
    release: Release, test: NullTest, synthetic: pd.DataFrame, *, axes: tuple[Axis, Axis] | None = None
) -> RowSimulator:
    """For any mechanism; its tables have all columns of the release."""
    budget = release.budget
    if budget is None:
        raise NotSimulatedError(
            "This release states no privacy loss, so its mechanism cannot be run again at the same one."
        )
    group, value = axes or (_axis(test.group), _axis(test.value))
    return RowSimulator(
        test=test,
        mechanism=release.mechanism,
        schema=release.schema,
        budget=budget,
        base=PrivateTable(synthetic, release.schema),
        group=group,
        value=value,
        n=release.n,
        rows=len(synthetic),
    )


def _axis(column: Column) -> Axis:
    if not column.is_numeric:
        return Axis.coarse(column)
    return Axis.coarse(column, min(MAX_CELLS, column.points or MAX_CELLS))
