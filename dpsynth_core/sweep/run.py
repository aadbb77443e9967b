"""What epsilon costs and buys: mechanisms over a grid of epsilon, several times, each table compared with the original.

For teaching, on public or simulated tables only: every point looks at the rows, all noise is seeded simulation noise,
and nothing is charged. Nothing here may be claimed to be private.
"""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd

from dpsynth_core.encoding import IntArray
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference import error_rates
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.populations import populations
from dpsynth_core.jobs import Channel, reporter
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.private import PrivateTable
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.release import synthesize
from dpsynth_core.schema import Schema
from dpsynth_core.sweep.found import Band, Spot, Sweep
from dpsynth_core.sweep.order import SweepOrder
from dpsynth_core.sweep.original import Original

KEPT_ROWS = 2_000
"""Most synthetic rows that are kept of every point."""
MOST_ANALYSTS, FEWEST_ANALYSTS, ANALYSED_ROWS = 400, 50, 2_000_000
"""Simulated analysts of each kind behind a rate of wrong conclusions: fewer where each has many rows to look at."""
VALUE_CELLS = 100


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
        >>> from dpsynth_core.intake.examples import EXAMPLES
        >>> example = EXAMPLES["two_groups_signal"]
        >>> grid = SweepOrder(mechanisms=("smoothed_histogram",), epsilons=(0.01, 10.0), repetitions=2)
        >>> tight, loose = sweep(example.load(), example.schema, grid).spots
        >>> tight.bands["column"].middle > loose.bands["column"].middle
        True
    """
    order = order or SweepOrder()
    original = Original.of(PrivateTable(table, schema), order.seed)
    spots = []
    for place, key in enumerate(order.mechanisms):
        for step, epsilon in enumerate(order.epsilons):
            begun = (place * len(order.epsilons) + step) * order.repetitions
            spots.append(_spot(original, key, epsilon, order, begun, progress))
    aspects, groups = original.references()
    return Sweep(
        order=order, rows=original.private.n, spots=tuple(spots), references=aspects, group_references=groups
    )  # fmt: skip


def run_sweep(table: pd.DataFrame, schema: Schema, order: SweepOrder, job_id: str, channel: Channel) -> Sweep:
    """The task for a worker: reports every run, returns the sweep."""
    return sweep(table, schema, order, reporter(job_id, channel))


def _spot(  # noqa: PLR0917  the order of arguments is that of the caller's
    original: Original, key: str, epsilon: float, order: SweepOrder, begun: int, progress: Progress
) -> Spot:
    kind, private = MECHANISMS[key], original.private
    values: dict[str, list[float]] = {}
    sizes: dict[int, list[float]] = {}
    kept = None
    try:
        mechanism = kind.suggest(private.schema, private.n, epsilon)
        for again in range(order.repetitions):
            run = begun + again
            progress(f"Run {run + 1} of {order.runs}: {kind.title} at ε {epsilon:g}", run / order.runs)
            seeds = _seeds(order.seed, key, epsilon, again)
            release = synthesize(
                private, mechanism, epsilon=epsilon, delta=order.delta if kind.needs_delta else 0, seed=int(seeds[0])
            )
            made = release.sample(private.n)
            kept = made.head(KEPT_ROWS) if kept is None else kept
            aspects, groups = original.measure(made, np.random.default_rng(seeds[1]))
            for aspect, value in aspects.items():
                values.setdefault(aspect, []).append(value)
            for size, value in groups.items():
                sizes.setdefault(size, []).append(value)
        bands = {aspect: Band.over(found) for aspect, found in values.items()}
        if order.discoveries:
            progress(f"Simulating analysts: {kind.title} at ε {epsilon:g}", (begun + order.repetitions) / order.runs)
            bands |= _discoveries(key, private.n, epsilon, order.seed)
    except DPSynthError as error:
        return Spot(mechanism=key, epsilon=epsilon, bands={}, table=None, problem=str(error))
    groups_off = {size: Band.over(found) for size, found in sizes.items()}
    return Spot(mechanism=key, epsilon=epsilon, bands=bands, table=kept, groups=groups_off)


def _seeds(seed: int, key: str, epsilon: float, again: int) -> IntArray:
    """Of one run: the same whichever other mechanisms and epsilons are swept with it."""
    name = [seed, zlib.crc32(f"{key} {epsilon!r}".encode()), again]
    return (np.random.SeedSequence(name).generate_state(2, np.uint64) >> np.uint64(2)).astype(np.int64)


def _discoveries(key: str, n: int, epsilon: float, seed: int) -> dict[str, Band]:
    """Rates of wrong conclusions from a table of two groups; only where a release is array arithmetic."""
    if n < 4:
        return {}
    groups, _ = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
    mechanism = MECHANISMS[key].suggest(groups.schema(VALUE_CELLS), n, epsilon)
    if not isinstance(mechanism, HISTOGRAMS):
        return {}
    analysts = min(max(ANALYSED_ROWS // n, FEWEST_ANALYSTS), MOST_ANALYSTS)
    rates = error_rates(mechanism, epsilon=epsilon, n=n, bins=VALUE_CELLS, reps=analysts, seed=seed)
    return {"type_one": Band.of_rate(rates.type_one), "type_two": Band.of_rate(rates.type_two)}
