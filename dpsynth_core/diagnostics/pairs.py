"""Two columns at a time: do they still go together as they did?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, measure_each
from dpsynth_core.diagnostics.features import position_values
from dpsynth_core.diagnostics.total_variation import SCALE, coarse, total_variation, variation_measure
from dpsynth_core.errors import check_int
from dpsynth_core.inference.group_comparison import ordered
from dpsynth_core.inference.proportions import NORMAL_QUANTILE
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.expected_error import PAIR_CELLS

PAIR = " × "


@dataclass(frozen=True, kw_only=True)
class PairsDiagnostic(Diagnostic):
    """Total variation of every pair of columns, and how far correlations moved."""

    key: ClassVar[str] = "pairs"
    title: ClassVar[str] = "Pairs of columns"
    question: ClassVar[str] = "Do columns still go together as they did?"
    method: ClassVar[str] = (
        "For every pair of columns the rows are counted in a two-way grid (numbers and dates in at most eight equal "
        "ranges; missing values have a row and a column of their own), and the two tables' shares are compared by "
        "total variation, with a basic bootstrap interval and the variation between two samples of the original as "
        "the reference. Correlations are Pearson's, over rows where both values are present; the interval of a "
        "difference is the large-sample one. The headline is the worst pair, never an average."
    )
    scale: ClassVar[Scale] = SCALE
    counted: ClassVar[str] = "Shares of pairs of values are"

    bins: int = PAIR_CELLS
    """Largest number of cells that each range is divided into."""
    draws: int = 100
    """Bootstrap samples behind every interval."""

    def __post_init__(self) -> None:
        check_int("bins", self.bins, 1, 100)
        check_int("draws", self.draws, 20, 100_000)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        pairs = [(PAIR.join(names), names) for names in combinations(pair.names, 2)]
        if not pairs:
            return self.unable("There is only one column, so there are no pairs.")
        counted = _joint_counts(pair, self.bins)

        def measure(*names: str) -> Measure:
            return variation_measure(PAIR.join(names), names, *counted[names], rng, draws=self.draws)

        items = measure_each(pairs, measure, progress, "Comparing pairs of columns")
        return self.result(items, tables={"correlations": correlation_differences(pair)})


def mean_pair_variation(pair: TablePair, bins: int) -> float:
    """Mean total variation over all pairs of columns: one number to rank mechanisms by, never to judge a table by."""
    return float(np.mean([total_variation(*both) for both in _joint_counts(pair, bins).values()]))


def _joint_counts(pair: TablePair, bins: int) -> dict[tuple[str, ...], tuple[IntArray, IntArray]]:
    """Rows of either table in every cell of a pair that holds any, on a grid that is coarse enough for pairs."""
    columns = [coarse(column, bins) for column in pair.original.schema]
    return dict(zip(combinations(pair.names, 2), pair.counts(list(combinations(columns, 2))), strict=True))


def correlation_differences(pair: TablePair) -> pd.DataFrame:
    """Pearson's correlation of every pair of ordered columns in both tables, and their difference with its interval.

    A correlation of columns that do not vary, or of fewer than four rows, does not exist and is left empty.
    """
    names = [column.name for column in pair.original.schema if ordered(column)]
    values = [{name: position_values(table, name) for name in names} for table in (pair.original, pair.synthetic)]
    rows = []
    for first, second in combinations(names, 2):
        (r, n), (s, m) = (_correlation(table[first], table[second]) for table in values)
        # Var(r) is about (1 - r^2)^2 / (n - 1) in large samples.
        error = math.sqrt((1 - r * r) ** 2 / max(n - 1, 1) + (1 - s * s) ** 2 / max(m - 1, 1))
        rows.append((first, second, r, s, s - r, s - r - NORMAL_QUANTILE * error, s - r + NORMAL_QUANTILE * error))
    return pd.DataFrame(rows, columns=["first", "second", "original", "synthetic", "difference", "low", "high"])


def _correlation(x: FloatArray, y: FloatArray) -> tuple[float, int]:
    """Pearson's correlation, not a number where there is none, and how many rows it is based on."""
    present = ~(np.isnan(x) | np.isnan(y))
    x, y = x[present], y[present]
    rows = len(x)
    if rows < 4 or not np.ptp(x) or not np.ptp(y):
        return math.nan, rows
    x, y = x - x.mean(), y - y.mean()
    # Scaled first, so that squares of huge or tiny numbers are still numbers.
    return float(np.corrcoef(x / np.abs(x).max(), y / np.abs(y).max())[0, 1]), rows
