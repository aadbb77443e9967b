"""What epsilon costs and buys: mechanisms over a grid of epsilon, several times, each table compared with the original.

For teaching, on public or simulated tables only: every point looks at the rows, all noise is seeded simulation noise,
and nothing is charged. Nothing here may be claimed to be private.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.analysts import AnalystPanel
from dpsynth_core.teaching.sweep.config import SweepConfig
from dpsynth_core.teaching.sweep.original import Original
from dpsynth_core.teaching.sweep.results import Band, SweepPoint, SweepResult

Key = TypeVar("Key", str, int)
MAX_TABLE_ROWS = 2_000
"""Synthetic rows that each point carries."""


def sweep(
    table: pd.DataFrame, schema: Schema, config: SweepConfig | None = None, progress: Progress = no_progress
) -> SweepResult:
    """Run every mechanism at every epsilon, several times, and measure.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        config: What to sweep.
        progress: Receives the stage of each run; raises to cancel.

    Example:
        >>> from dpsynth_core.table.examples import EXAMPLES
        >>> example = EXAMPLES["two_groups_signal"]
        >>> grid = SweepConfig(mechanisms=("smoothed_histogram",), epsilons=(0.01, 10.0), repetitions=2)
        >>> tight, loose = sweep(example.load(), example.schema, grid).points
        >>> tight.bands["column"].middle > loose.bands["column"].middle
        True
    """
    config = config or SweepConfig()
    original = Original.of(PrivateTable(table, schema), config.seed)
    grid = [
        _GridPoint(key=key, epsilon=epsilon, index=index, config=config)
        for index, (key, epsilon) in enumerate(product(config.mechanisms, config.epsilons))
    ]
    points = tuple(_measured(original, point, progress) for point in grid)
    aspects, groups = original.references()
    return SweepResult(
        config=config, rows=original.private.n, points=points, references=aspects, group_references=groups
    )


@dataclass(frozen=True, kw_only=True)
class _GridPoint:
    """One mechanism at one epsilon, and its index in the sweep."""

    key: str
    epsilon: float
    index: int
    config: SweepConfig

    @property
    def name(self) -> str:
        return f"{MECHANISMS[self.key].title} at ε {self.epsilon:g}"

    @property
    def budget(self) -> Budget:
        return Budget.of(self.epsilon, self.config.delta if MECHANISMS[self.key].needs_delta else 0)

    def done(self, part: float) -> float:
        """Share of the sweep that is done when this share of the point is."""
        return (self.index + part) / (len(self.config.mechanisms) * len(self.config.epsilons))

    def seeds(self, repetition: int) -> IntArray:
        """Two seeds for one run: the same whichever other mechanisms and epsilons are swept with it."""
        entropy = [self.config.seed, zlib.crc32(f"{self.key} {self.epsilon!r}".encode()), repetition]
        return (np.random.SeedSequence(entropy).generate_state(2, np.uint64) >> np.uint64(2)).astype(np.int64)


def _measured(original: Original, grid: _GridPoint, progress: Progress) -> SweepPoint:
    config, private = grid.config, original.private
    tables, values, sizes = [], [], []
    try:
        mechanism = MECHANISMS[grid.key].suggest(private.schema, private.n, grid.epsilon)
        for repetition in range(config.repetitions):
            run = grid.index * config.repetitions + repetition + 1
            progress(f"Run {run} of {config.runs}: {grid.name}", grid.done(repetition / config.repetitions / 2))
            seed, other_seed = grid.seeds(repetition)
            budget = grid.budget
            release = synthesize(private, mechanism, epsilon=budget.epsilon, delta=budget.delta, seed=int(seed))
            made = release.sample(private.n)
            aspects, groups = original.measure(made, np.random.default_rng(other_seed))
            tables.append(made.head(MAX_TABLE_ROWS))
            values.append(aspects)
            sizes.append(groups)
    except DPSynthError as error:
        return SweepPoint(mechanism=grid.key, epsilon=grid.epsilon, bands={}, table=None, problem=str(error))
    point = SweepPoint(
        mechanism=grid.key, epsilon=grid.epsilon, table=tables[0], bands=_bands(values), groups=_bands(sizes)
    )
    return _with_discoveries(point, grid, private, progress) if config.discoveries else point


def _bands(runs: list[dict[Key, float]]) -> dict[Key, Band]:
    keys = dict.fromkeys(key for run in runs for key in run)
    return {key: Band.over([run[key] for run in runs if key in run]) for key in keys}


def _with_discoveries(point: SweepPoint, grid: _GridPoint, private: PrivateTable, progress: Progress) -> SweepPoint:
    """The point with its rates of wrong conclusions, or with the reason why there are none."""
    part = share_of(progress, grid.done(1 / 2), grid.done(1), title=f"Simulating analysts: {grid.name}")
    part("", 0.0)
    try:
        mechanism = MECHANISMS[grid.key].suggest(private.schema, private.n, grid.epsilon)
        panel = AnalystPanel.of(mechanism, private.schema, private.n, grid.budget, grid.config.analysts)
        rates = panel.rates(private, grid.config.seed, part)
    except DPSynthError as error:
        return replace(point, no_analysts=str(error))
    return replace(point, bands={**point.bands, **rates}, analysts=panel.each, no_analysts=panel.problem)
