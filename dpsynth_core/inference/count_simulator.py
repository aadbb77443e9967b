"""Null releases by array arithmetic, thousands at once, for mechanisms whose release is known by its counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.inference.histograms import SmoothedCounts, is_histogram, law_of
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import (
    ESTIMATION_ROUNDS,
    ESTIMATION_RUNS,
    STAGE,
    CountCells,
    Findings,
    NullReleases,
    NullSimulator,
    NullTest,
    corrected,
    counts_of,
    joined,
)
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

TABLES_AT_ONCE = 2_000_000
"""Cells and rows of simulated tables that are held at a time."""
RELEASES_PER_ROUND = 40
"""In each round of the estimation, where a mechanism's noise cannot be undone."""


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
    def found(self) -> Findings:  # type: ignore[override]
        found = self.test.on_counts(self.observed[None], self.cells, np.random.default_rng(0))
        assert found is not None  # noqa: S101  else this simulator would not have been chosen
        return Findings(pvalues=found.pvalues[0], statistics=found.statistics[0])

    @property
    def threshold(self) -> int:  # type: ignore[override]
        return self.cells.law.threshold

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
        return joined(parts)

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
        return counts_of(table, self.cells.group, self.cells.value)

    @property
    def _at_once(self) -> int:
        return max(1, TABLES_AT_ONCE // max(self.cells.law.rows, math.prod(self.cells.law.shape)))

    def _released(self, nulls: Nuisance, tables: int, rng: np.random.Generator) -> NullReleases:
        counts = self.cells.law.run(self._drawn(nulls, tables, rng), rng)
        found = self.test.on_counts(counts, self.cells, rng)
        assert found is not None  # noqa: S101  else this simulator would not have been chosen
        return NullReleases(counts=counts, found=found)

    def _drawn(self, nulls: Nuisance, tables: int, rng: np.random.Generator) -> IntArray:
        """Originals, as counts by group and value."""
        return nulls.draw(tables, rng)

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
            drawn = law.run(null.draw(RELEASES_PER_ROUND, rng), rng)
            return np.asarray(drawn.reshape(len(released), RELEASES_PER_ROUND, *law.shape).sum(axis=1))

        null = start
        for _ in range(ESTIMATION_ROUNDS):
            null = corrected(null, released, mean(null), law.n)
        return null


def count_cells_of(
    mechanism: Mechanism, schema: Schema, test: NullTest, n: int, epsilon: Fraction
) -> CountCells | None:
    """The law of a histogram mechanism on the test's two columns; None where other columns share its noise."""
    if not is_histogram(mechanism):
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
