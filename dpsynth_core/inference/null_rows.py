"""Simulating the null through any mechanism, by running it on tables whose group labels were shuffled.

The rows are those of the synthetic table. Shuffling the group, not the value, keeps every relation between the other
columns, makes all value columns unrelated to the group at once (so that one set of runs serves them all), and leaves
the groups' sizes as they were released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.mann_whitney import weighted_z
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.runs.workers import run_all
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

STAGE = "Simulating releases without a difference"
RUNS_PER_TASK = 4


@dataclass(frozen=True, kw_only=True)
class _NullRuns:
    """What is needed to run the mechanism again in a worker."""

    mechanism: Mechanism
    schema: Schema
    budget: Budget
    table: pd.DataFrame
    rows: int
    comparisons: Sequence[GroupComparison]

    def statistics(self, seeds: Sequence[int]) -> FloatArray:
        return np.array([row_statistics(self.comparisons, self._release(seed)) for seed in seeds])

    def _release(self, seed: int) -> pd.DataFrame:
        group = self.comparisons[0].group.name
        order = np.random.default_rng(seed).permutation(len(self.table))
        shuffled = self.table.assign(**{group: self.table[group].take(order).reset_index(drop=True)})
        private, budget = PrivateTable(shuffled, self.schema), self.budget
        release = synthesize(private, self.mechanism, epsilon=budget.epsilon, delta=budget.delta, seed=seed)
        return release.sample(self.rows)


def row_statistics(comparisons: Sequence[GroupComparison], table: pd.DataFrame) -> FloatArray:
    """The standardised U of each comparison in a table; 0 where there is nothing to compare."""
    return np.array([_z(*comparison.split(table)) for comparison in comparisons])


def _z(first: FloatArray, second: FloatArray) -> float:
    values, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    if not len(values):
        return 0.0
    groups = np.split(index, [len(first)])
    a, b = (np.bincount(group, minlength=len(values)).astype(np.float64) for group in groups)
    return float(weighted_z(a, b))


def null_releases(
    release: Release,
    comparisons: Sequence[GroupComparison],
    synthetic: pd.DataFrame,
    *,
    budget: Budget,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress,
    workers: int | None,
) -> FloatArray:
    """Statistics of simulated null releases, one line each, one column for each comparison."""
    base = synthetic
    if len(synthetic) != release.n:  # the null table must have as many rows as the original had
        base = synthetic.iloc[rng.integers(0, len(synthetic), release.n)].reset_index(drop=True)
    seeds = [int(seed) for seed in rng.integers(0, 2**62, simulations)]
    tasks = [seeds[start : start + RUNS_PER_TASK] for start in range(0, simulations, RUNS_PER_TASK)]
    runs = _NullRuns(
        mechanism=release.mechanism,
        schema=release.schema,
        budget=budget,
        table=base,
        rows=len(synthetic),
        comparisons=comparisons,
    )
    return np.concatenate(run_all(runs.statistics, tasks, stage=STAGE, progress=progress, workers=workers))
