"""What epsilon costs and buys: mechanisms over a grid of epsilon, several times, each table compared with the original.

For teaching, on public or simulated tables only: every point looks at the rows, all noise is seeded simulation noise,
and nothing is charged. Nothing here may be claimed to be private.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.analysts import AnalystPanel, told_as
from dpsynth_core.teaching.sweep.config import SweepConfig
from dpsynth_core.teaching.sweep.original import Original
from dpsynth_core.teaching.sweep.results import Band, SweepPoint, SweepResult

MAX_TABLE_ROWS = 2_000
"""Most synthetic rows that are kept of every point."""


def sweep(
    table: pd.DataFrame, schema: Schema, config: SweepConfig | None = None, progress: Progress = no_progress
) -> SweepResult:
    """Run every mechanism at every epsilon, several times, and measure.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        config: What to sweep.
        progress: Told about each run; raises to cancel.

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
    points = []
    for number, (key, epsilon) in enumerate(product(config.mechanisms, config.epsilons)):
        points.append(_point(original, _GridPoint(key=key, epsilon=epsilon, number=number, config=config), progress))
    aspects, groups = original.references()
    return SweepResult(
        config=config, rows=original.private.n, points=tuple(points), references=aspects, group_references=groups
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _GridPoint:
    """One mechanism at one epsilon, and where it stands in the sweep."""

    key: str
    epsilon: float
    number: int
    config: SweepConfig

    @property
    def name(self) -> str:
        return f"{MECHANISMS[self.key].title} at ε {self.epsilon:g}"

    @property
    def budget(self) -> Budget:
        return Budget.of(self.epsilon, self.config.delta if MECHANISMS[self.key].needs_delta else 0)

    def done(self, part: float) -> float:
        """Share of the whole sweep at this share of the place."""
        return (self.number + part) / (len(self.config.mechanisms) * len(self.config.epsilons))


def _point(original: Original, place: _GridPoint, progress: Progress) -> SweepPoint:
    config, private = place.config, original.private
    values: dict[str, list[float]] = {}
    sizes: dict[int, list[float]] = {}
    kept = None
    try:
        mechanism = MECHANISMS[place.key].suggest(private.schema, private.n, place.epsilon)
        for again in range(config.repetitions):
            run = place.number * config.repetitions + again + 1
            progress(f"Run {run} of {config.runs}: {place.name}", place.done(again / config.repetitions / 2))
            seeds = _seeds(config.seed, place.key, place.epsilon, again)
            release = synthesize(
                private, mechanism, epsilon=place.budget.epsilon, delta=place.budget.delta, seed=int(seeds[0])
            )
            made = release.sample(private.n)
            kept = made.head(MAX_TABLE_ROWS) if kept is None else kept
            aspects, groups = original.measure(made, np.random.default_rng(seeds[1]))
            for aspect, value in aspects.items():
                values.setdefault(aspect, []).append(value)
            for size, value in groups.items():
                sizes.setdefault(size, []).append(value)
    except DPSynthError as error:
        return SweepPoint(mechanism=place.key, epsilon=place.epsilon, bands={}, table=None, problem=str(error))
    measured = SweepPoint(
        mechanism=place.key, epsilon=place.epsilon, table=kept,
        bands={aspect: Band.over(found) for aspect, found in values.items()},
        groups={size: Band.over(found) for size, found in sizes.items()},
    )  # fmt: skip
    return _with_discoveries(measured, place, private.n, progress) if config.discoveries else measured


def _with_discoveries(point: SweepPoint, place: _GridPoint, n: int, progress: Progress) -> SweepPoint:
    """Rates of wrong conclusions added; where there are none, the reason."""
    told = told_as(progress, f"Simulating analysts: {place.name}", place.done(1 / 2), place.done(1))
    told("", 0.0)
    try:
        panel = AnalystPanel.of(place.key, n, place.budget, place.config.analysts)
        rates = panel.rates(place.config.seed, told)
    except DPSynthError as error:
        return replace(point, no_analysts=str(error))
    return replace(point, bands={**point.bands, **rates}, analysts=panel.each, no_analysts=panel.problem)


def _seeds(seed: int, key: str, epsilon: float, again: int) -> IntArray:
    """Of one run: the same whichever other mechanisms and epsilons are swept with it."""
    name = [seed, zlib.crc32(f"{key} {epsilon!r}".encode()), again]
    return (np.random.SeedSequence(name).generate_state(2, np.uint64) >> np.uint64(2)).astype(np.int64)
