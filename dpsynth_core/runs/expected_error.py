"""How far a release is from its original, estimated without looking at the original.

The released rows are public. Taken for an original, they can be released again by the same mechanism at the same
budget, with simulated noise, as often as one likes. How far those releases are from them says what the noise, the bins
and the choice of what to count do to a table like this one (a parametric bootstrap). What the first release has lost
already, a relation between columns that it never measured or detail within a bin, cannot be found in its rows. So the
estimate does not cover it, and the error due to such losses adds to the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

COLUMN_CELLS, PAIR_CELLS = 30, 8
"""Ranges that a number is cut into where single columns and pairs are compared."""
REPETITIONS, QUICK_SECONDS = 3, 3.0
"""Simulated releases where they take no longer than this together; otherwise there is one."""
MAX_SECONDS = 30.0
"""Expected computing time of one simulated release beyond which nothing is estimated."""
SECONDS_PER_COMPARED_CELL = 2e-8
"""Counting one row of two tables in one comparison."""
SECONDS_PER_COMPARISON = 1.5e-4
"""What a comparison of one column or pair costs besides, however short the tables are."""
SEED = 20_261
NOT_COVERED = (
    "The estimate does not include relations between columns that the release never measured, nor detail finer than "
    "its bins: those errors add to it."
)


@dataclass(frozen=True, kw_only=True)
class ExpectedError:
    """Total variation to expect: the share of rows that would have to change cells. From public facts alone."""

    columns: tuple[tuple[str, float], ...]
    """Of each column."""
    pairs: tuple[tuple[str, str, float], ...]
    """Of each pair of columns."""
    repetitions: int
    """Simulated releases behind each figure."""

    @property
    def mean_column(self) -> float:
        return fmean(error for _, error in self.columns)

    @property
    def worst_column(self) -> tuple[str, float]:
        return max(self.columns, key=lambda each: each[1])

    @property
    def mean_pair(self) -> float | None:
        """None where there is but one column."""
        return fmean(error for *_, error in self.pairs) if self.pairs else None

    @property
    def worst_pair(self) -> tuple[str, str, float] | None:
        return max(self.pairs, key=lambda each: each[2], default=None)

    def of(self, names: Sequence[str]) -> float:
        """For one column, or for one pair in either order."""
        if len(names) == 1:
            return dict(self.columns)[names[0]]
        return next(error for first, second, error in self.pairs if {first, second} == set(names))


def expected_error(
    mechanism: Mechanism, table: PrivateTable, budget: Budget, *, repetitions: int, progress: Progress = no_progress
) -> ExpectedError:
    """How far releases of a public table are from it, on average.

    Args:
        mechanism: How they are made.
        table: The table that is taken for the original. It must be public: nothing here is paid for.
        budget: Of each release, for the unit of protection that the schema declares.
        repetitions: How many releases.
        progress: Receives the stages; raises to cancel.
    """
    per_row = budget.per_row(table.schema.rows_per_person)
    found = []
    for seed in range(repetitions):
        progress("Estimating the error", seed / repetitions)
        noise = SeededNoise(per_row, SEED + seed)
        rows = mechanism.fit(table, noise).sample(table.n, noise)
        found.append(_errors(table, PrivateTable(rows, table.schema)))
    means = np.mean(found, axis=0).tolist()
    names = table.schema.names
    return ExpectedError(
        columns=tuple(zip(names, means[: len(names)], strict=True)),
        pairs=tuple((*pair, error) for pair, error in zip(combinations(names, 2), means[len(names) :], strict=True)),
        repetitions=repetitions,
    )


def error_of_release(
    mechanism: Mechanism, rows: pd.DataFrame, schema: Schema, budget: Budget, progress: Progress = no_progress
) -> ExpectedError | None:
    """The same for rows that were released: as many as their original has. None where it would take too long."""
    released = PrivateTable(rows, schema)
    repetitions = _repetitions(_seconds(mechanism.plan(schema, released.n, budget.per_row(schema.rows_per_person))))
    if not repetitions:
        return None
    return expected_error(mechanism, released, budget, repetitions=repetitions, progress=progress)


def _seconds(plan: Plan) -> float:
    """Of one simulated release, which is as long as the original, however long the release is."""
    return replace(plan, made=plan.values).seconds_again


def _repetitions(seconds: float) -> int:
    """How many simulated releases are affordable; none where one takes too long."""
    if seconds > MAX_SECONDS:
        return 0
    return REPETITIONS if seconds * REPETITIONS <= QUICK_SECONDS else 1


def seconds_to_estimate(plan: Plan, columns: int) -> float:
    """What estimating the error of a release adds to the time of its run, roughly."""
    return _repetitions(_seconds(plan)) * (_seconds(plan) + seconds_to_compare(plan, columns))


def seconds_to_compare(plan: Plan, columns: int) -> float:
    """How long it takes to compare two tables in every column and every pair, roughly."""
    comparisons = columns * (columns + 1) / 2
    return comparisons * (SECONDS_PER_COMPARED_CELL * plan.values / columns + SECONDS_PER_COMPARISON)


def _errors(first: PrivateTable, second: PrivateTable) -> list[float]:
    """Total variation of every column, then of every pair."""
    names = first.schema.names
    singles: Iterable[tuple[str, ...]] = ((name,) for name in names)
    return [
        *(variation(first, second, single, COLUMN_CELLS) for single in singles),
        *(variation(first, second, pair, PAIR_CELLS) for pair in combinations(names, 2)),
    ]


def variation(first: PrivateTable, second: PrivateTable, names: Sequence[str], max_cells: int) -> float:
    """Total variation of two tables over some columns, numbers in at most so many equal ranges."""
    bins = {
        name: max_cells for name in names if first.schema[name].is_numeric and first.schema[name].levels > max_cells
    }
    keys, shares = _shares(first, names, bins)
    other_keys, other_shares = _shares(second, names, bins)
    _, here, there = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    # What two distributions do not share: half the sum of their absolute differences.
    return max(0.0, 1.0 - float(np.minimum(shares[here], other_shares[there]).sum()))


def _shares(table: PrivateTable, names: Sequence[str], bins: dict[str, int]) -> tuple[IntArray, FloatArray]:
    counted = table.counts(names, bins=bins)
    keys = np.ravel_multi_index(tuple(counted.cells.T), counted.shape).astype(np.int64)
    return keys, counted.counts / table.n
