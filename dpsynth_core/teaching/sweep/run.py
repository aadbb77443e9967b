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
from dpsynth_core.teaching.sweep.analysts import Panel, told_as
from dpsynth_core.teaching.sweep.found import Band, Spot, Sweep
from dpsynth_core.teaching.sweep.order import SweepOrder
from dpsynth_core.teaching.sweep.original import Original

KEPT_ROWS = 2_000
"""Most synthetic rows that are kept of every point."""


def sweep(
    table: pd.DataFrame, schema: Schema, order: SweepOrder | None = None, progress: Progress = no_progress
) -> Sweep:
    """Run every mechanism at every epsilon, several times, and measure.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        order: What to sweep.
        progress: Told about each run; raises to cancel.

    Example:
        >>> from dpsynth_core.table.examples import EXAMPLES
        >>> example = EXAMPLES["two_groups_signal"]
        >>> grid = SweepOrder(mechanisms=("smoothed_histogram",), epsilons=(0.01, 10.0), repetitions=2)
        >>> tight, loose = sweep(example.load(), example.schema, grid).spots
        >>> tight.bands["column"].middle > loose.bands["column"].middle
        True
    """
    order = order or SweepOrder()
    original = Original.of(PrivateTable(table, schema), order.seed)
    spots = []
    for number, (key, epsilon) in enumerate(product(order.mechanisms, order.epsilons)):
        spots.append(_spot(original, _Place(key=key, epsilon=epsilon, number=number, order=order), progress))
    aspects, groups = original.references()
    return Sweep(
        order=order, rows=original.private.n, spots=tuple(spots), references=aspects, group_references=groups
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One mechanism at one epsilon, and where it stands in the sweep."""

    key: str
    epsilon: float
    number: int
    order: SweepOrder

    @property
    def name(self) -> str:
        return f"{MECHANISMS[self.key].title} at ε {self.epsilon:g}"

    @property
    def budget(self) -> Budget:
        return Budget.of(self.epsilon, self.order.delta if MECHANISMS[self.key].needs_delta else 0)

    def done(self, part: float) -> float:
        """Share of the whole sweep at this share of the place."""
        return (self.number + part) / (len(self.order.mechanisms) * len(self.order.epsilons))


def _spot(original: Original, place: _Place, progress: Progress) -> Spot:
    order, private = place.order, original.private
    values: dict[str, list[float]] = {}
    sizes: dict[int, list[float]] = {}
    kept = None
    try:
        mechanism = MECHANISMS[place.key].suggest(private.schema, private.n, place.epsilon)
        for again in range(order.repetitions):
            run = place.number * order.repetitions + again + 1
            progress(f"Run {run} of {order.runs}: {place.name}", place.done(again / order.repetitions / 2))
            seeds = _seeds(order.seed, place.key, place.epsilon, again)
            release = synthesize(
                private, mechanism, epsilon=place.budget.epsilon, delta=place.budget.delta, seed=int(seeds[0])
            )
            made = release.sample(private.n)
            kept = made.head(KEPT_ROWS) if kept is None else kept
            aspects, groups = original.measure(made, np.random.default_rng(seeds[1]))
            for aspect, value in aspects.items():
                values.setdefault(aspect, []).append(value)
            for size, value in groups.items():
                sizes.setdefault(size, []).append(value)
    except DPSynthError as error:
        return Spot(mechanism=place.key, epsilon=place.epsilon, bands={}, table=None, problem=str(error))
    measured = Spot(
        mechanism=place.key, epsilon=place.epsilon, table=kept,
        bands={aspect: Band.over(found) for aspect, found in values.items()},
        groups={size: Band.over(found) for size, found in sizes.items()},
    )  # fmt: skip
    return _with_discoveries(measured, place, private.n, progress) if order.discoveries else measured


def _with_discoveries(spot: Spot, place: _Place, n: int, progress: Progress) -> Spot:
    """Rates of wrong conclusions added; where there are none, the reason."""
    told = told_as(progress, f"Simulating analysts: {place.name}", place.done(1 / 2), place.done(1))
    told("", 0.0)
    try:
        panel = Panel.of(place.key, n, place.budget, place.order.analysts)
        rates = panel.rates(place.order.seed, told)
    except DPSynthError as error:
        return replace(spot, no_analysts=str(error))
    return replace(spot, bands={**spot.bands, **rates}, analysts=panel.each, no_analysts=panel.problem)


def _seeds(seed: int, key: str, epsilon: float, again: int) -> IntArray:
    """Of one run: the same whichever other mechanisms and epsilons are swept with it."""
    name = [seed, zlib.crc32(f"{key} {epsilon!r}".encode()), again]
    return (np.random.SeedSequence(name).generate_state(2, np.uint64) >> np.uint64(2)).astype(np.int64)
