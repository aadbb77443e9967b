"""What epsilon means: the same mechanism run many times with one row of a table and without it.

For public or simulated tables only: it looks at one row on purpose, many times, and pays for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.end_to_end_attack import attack
from dpsynth_core.audit.lower_bound import LowerBound, lower_bound
from dpsynth_core.audit.neighbours import NeighbourPair
from dpsynth_core.diagnostics.total_variation import coarse
from dpsynth_core.errors import ParameterError, check_choice, check_int
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

STATISTIC = "synthetic rows expected in this cell"
"""What is looked at: the smallest cell that the row falls into."""
MIN_RUNS = 20
RUNS: dict[str, int] = {"perturbed_histogram": 1_000, "smoothed_histogram": 1_000, "kd_grid": 500, "kd_tree": 200}
"""Mechanisms that are quick enough to run many times while somebody waits, and how often they run."""
ROUGH_CELLS = 8
"""Maximum cells of a range when looking for an unusual person."""
CONFIDENCE = 0.95
"""Of the bound that the runs prove."""
WatchedPerson: TypeAlias = Literal["unusual", "typical"]


@dataclass(frozen=True, kw_only=True)
class NeighbourConfig:
    """What to demonstrate, as plain values that can be sent to a worker."""

    mechanism: str = "perturbed_histogram"
    """Its key in the registry; it runs with the parameters that it suggests."""
    epsilon: str = "1"
    """Granted to every single run."""
    who: WatchedPerson = "unusual"
    """The person to watch: the one whose values are rarest, or most common."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("mechanism", self.mechanism, tuple(RUNS))
        check_choice("who", self.who, get_args(WatchedPerson))
        check_int("seed", self.seed, 0, 2**63)


@dataclass(frozen=True, kw_only=True)
class NeighbourDemonstration:
    """Two distributions of the same statistic, and what they prove."""

    epsilon: float
    with_row: FloatArray
    """The statistic in every run on the table with the row."""
    without: FloatArray
    """The statistic in every run on the table where a copy of another row replaces it."""
    bound: LowerBound
    """What the runs prove: one half of them chose the event, the other half was counted."""

    @property
    def ratio(self) -> float:
        """How many times likelier the event was proven to be on one table than on the other."""
        return math.exp(self.bound.epsilon)

    @property
    def allowed(self) -> float:
        """How many times likelier epsilon allows any event to be."""
        return math.exp(self.epsilon)

    @property
    def sentence(self) -> str:
        side = "at least" if self.bound.above else "below"
        first, second = ("with", "without") if self.bound.swapped else ("without", "with")
        likely, other = self.bound.hits
        proven = "no difference at all" if self.bound.epsilon <= 0 else f"a factor of at least {self.ratio:.2f}"
        return (
            f"The statistic was {side} {self.bound.cut:.3g} in {likely} of {self.bound.runs} runs {first} the row "
            f"and in {other} of {self.bound.runs} runs {second} it: that proves {proven}, with "
            f"{CONFIDENCE:.0%} confidence. Epsilon {self.epsilon:g} allows a factor of {self.allowed:.2f}."
        )


def watched_row(table: PrivateTable, who: WatchedPerson) -> int:
    """The row whose values are rarest, or most common: by the product of their shares, column by column."""
    rarity = np.zeros(table.n)
    for column in table.schema:
        codes = codec_for(coarse(column, ROUGH_CELLS)).codes(table.positions(column.name))
        rarity -= np.log(np.bincount(codes)[codes] / table.n)
    return int(rarity.argmax() if who == "unusual" else rarity.argmin())


def run_demonstration(
    table: pd.DataFrame, schema: Schema, config: NeighbourConfig, *, progress: Progress = no_progress
) -> NeighbourDemonstration:
    return demonstrate(
        table,
        schema,
        MECHANISMS[config.mechanism].suggest(schema, len(table), config.epsilon),
        epsilon=config.epsilon,
        row=watched_row(PrivateTable(table, schema), config.who),
        runs=RUNS[config.mechanism],
        seed=config.seed,
        progress=progress,
    )


def demonstrate(
    table: pd.DataFrame,
    schema: Schema,
    mechanism: Mechanism,
    *,
    epsilon: Amount,
    row: int,
    runs: int = 400,
    seed: int = 0,
    progress: Progress = no_progress,
) -> NeighbourDemonstration:
    """Run a mechanism with a row, and as often with a row of the fullest other cell in its place.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        mechanism: What to run.
        epsilon: Granted to every single run.
        row: Index of the row to watch.
        runs: On each of the two tables.
        seed: Of the simulation.
        progress: Receives the share that is done; raises to cancel.
    """
    check_int("row", row, 0, len(table) - 1)
    check_int("runs", runs, MIN_RUNS, 10**6)
    budget = Budget.of(epsilon).per_row(schema.rows_per_person)
    rows = np.arange(len(table))
    rows[row] = _typical(PrivateTable(table, schema), row)
    # By index, so that no column changes its type.
    first, second = table.iloc[rows].reset_index(drop=True), table.reset_index(drop=True)
    without, with_row = attack(
        mechanism,
        NeighbourPair(name="one row", schema=schema, first=first, second=second, row=row),
        SeededNoise,
        budget,
        runs=runs,
        seed=np.random.SeedSequence(seed),
        report=lambda done: progress("Running with and without the row", done),
    )
    bound = lower_bound(without, with_row, alpha=1 - CONFIDENCE, delta=0.0)
    return NeighbourDemonstration(epsilon=float(budget.epsilon), with_row=with_row, without=without, bound=bound)


def _typical(table: PrivateTable, row: int) -> int:
    """A row of the fullest cell other than the row's own."""
    codes = np.column_stack([codec_for(c).codes(table.positions(c.name)) for c in table.schema])
    _, cell, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)
    counts[cell[row]] = 0
    if not counts.any():
        remedy = "All rows fall into the same cell."
        raise ParameterError("row", row, allowed="a row that differs from another one", remedy=remedy)
    return int(np.flatnonzero(cell == int(np.argmax(counts)))[0])
