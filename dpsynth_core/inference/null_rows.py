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
class _Runs:
    """A few runs, as they travel to a worker."""

    mechanism: Mechanism
    schema: Schema
    budget: Budget
    table: pd.DataFrame
    group: str
    rows: int
    comparisons: tuple[GroupComparison, ...]
    seeds: tuple[int, ...]


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
    tasks = [
        _Runs(
            mechanism=release.mechanism,
            schema=release.schema,
            budget=budget,
            table=base,
            group=comparisons[0].group.name,
            rows=len(synthetic),
            comparisons=tuple(comparisons),
            seeds=tuple(seeds[start : start + RUNS_PER_TASK]),
        )
        for start in range(0, simulations, RUNS_PER_TASK)
    ]
    return np.concatenate(run_all(_run, tasks, stage=STAGE, progress=progress, workers=workers))


def _run(runs: _Runs) -> FloatArray:
    out = []
    for seed in runs.seeds:
        order = np.random.default_rng(seed).permutation(len(runs.table))
        shuffled = runs.table.assign(**{runs.group: runs.table[runs.group].take(order).reset_index(drop=True)})
        again = synthesize(
            PrivateTable(shuffled, runs.schema),
            runs.mechanism,
            epsilon=runs.budget.epsilon,
            delta=runs.budget.delta,
            seed=seed,
        )
        out.append(row_statistics(runs.comparisons, again.sample(runs.rows)))
    return np.array(out)
