"""Tiny mechanisms that exercise one sampler each, so that every sampler is audited whoever uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

COARSE = 2
SCORE_SENSITIVITY = 1
"""A replaced row moves one count down and another up: each score by one."""


class Probe(Mechanism):
    """What the probes share: one paid step over coarse cells. They exist for the audit only."""

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  the same whatever the facts
        return cls()

    stage: ClassVar[str]
    """What its step is called."""

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        grid = Grid.of(schema, COARSE)
        stage = Stage(label=self.stage, epsilon=budget.epsilon, scale=None, delta=budget.delta)
        return Plan(stages=(stage,), cuts=grid.shape, cells=grid.cells, draws=grid.cells, values=n)


@dataclass(frozen=True, kw_only=True)
class LargestCells(Probe):
    """The cells with most rows, selected one after the other without replacement: released is which, not how many.

    McSherry & Talwar (2007); McKenna & Sheldon (2020).
    """

    key: ClassVar[str] = "probe: selection"
    stage: ClassVar[str] = "fullest cells"

    rounds: int = 1
    """Selections, each with an equal share of epsilon."""
    sampler: Literal["exponential", "permute_and_flip"] = "exponential"

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        flip = {"permute and flip": cls(sampler="permute_and_flip"), "two rounds": cls(rounds=2)}
        return {**super().audited(schema, n, epsilon), **flip}

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:  # noqa: ARG002
        grid = Grid.of(table.schema, COARSE)
        scores = grid.full_counts(table).ravel().astype(np.float64)
        left = np.arange(grid.cells)
        chosen = []
        for share in noise.budget.split(*(1 for _ in range(self.rounds))):
            pick = getattr(noise, self.sampler)
            index = pick(scores[left], sensitivity=SCORE_SENSITIVITY, epsilon=share.epsilon, label=self.stage)
            chosen.append(left[index])
            left = np.delete(left, index)
        cells = np.column_stack(np.unravel_index(np.array(chosen), grid.shape)).astype(np.int64)
        return grid.model(cells, np.ones(len(cells), dtype=np.int64), rows=table.n, centre=False)


@dataclass(frozen=True, kw_only=True)
class DenseCounts(Probe):
    """Counts of all cells, each listed, with noise (Dwork et al. 2006)."""

    key: ClassVar[str] = "probe: counts"
    stage: ClassVar[str] = "counts"

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:  # noqa: ARG002
        grid = Grid.of(table.schema, COARSE)
        noisy = self._measured(grid.full_counts(table).ravel(), noise)
        cells = np.column_stack(np.unravel_index(np.arange(grid.cells), grid.shape)).astype(np.int64)
        return grid.model(cells, noisy, rows=table.n, centre=False)

    def _measured(self, counts: IntArray, noise: Noise) -> IntArray:
        return noise.laplace(counts, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=noise.budget.epsilon, label=self.stage)


PROBES: tuple[type[Mechanism], ...] = (LargestCells, DenseCounts)
