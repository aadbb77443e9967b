"""Null releases by running the mechanism itself, for any mechanism and any table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import (
    ESTIMATION_ROUNDS,
    ESTIMATION_RUNS,
    STAGE,
    Findings,
    NullReleases,
    NullSimulator,
    NullTest,
    corrected,
    counts_of,
    joined,
    shares_of,
)
from dpsynth_core.mechanisms.base import Mechanism, PositionedModel
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import run_mechanism
from dpsynth_core.runs.workers import run_all
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

RUNS_PER_TASK = 4


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
    def found(self) -> Findings:  # type: ignore[override]
        return self.test.on_rows(self.base.rows())

    @cached_property
    def observed(self) -> FloatArray:  # type: ignore[override]
        return self.counted(self.base)

    def counted(self, table: PrivateTable) -> FloatArray:
        return counts_of(table, self.group, self.value)

    @cached_property
    def _pair(self) -> Schema:
        return self.schema.select([self.test.group.name, self.test.value.name])

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
        return joined(done)

    def _repeated(self, task: tuple[Nuisance, Sequence[int]]) -> NullReleases:
        null, seeds = task
        return joined([self._one(null, np.random.default_rng(seed)) for seed in seeds])

    def _one(self, null: Nuisance, rng: np.random.Generator) -> NullReleases:
        drawn, seed = self._null_table(null, rng), int(rng.integers(2**62))
        release = run_mechanism(drawn, self.mechanism, self.budget, seed=seed)
        if isinstance(release.model, PositionedModel):
            positions = release.model.positions(self.rows, release.noise)
            pair = PrivateTable.of_positions(self.schema, positions, read_as_declared=True)
            found = self.test.on_positions(pair)
        else:
            table = release.sample(self.rows)
            pair = PrivateTable(table, self._pair)
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
