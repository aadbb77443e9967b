"""Two columns at a time: do they still go together as they did?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.base import (
    NORMAL_QUANTILE,
    Diagnostic,
    Measure,
    Result,
    Scale,
    TablePair,
    guarded,
    worst_first,
)
from dpsynth_core.diagnostics.total_variation import SCALE, coarse, total_variation, variation_measure
from dpsynth_core.errors import check_int
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

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

    bins: int = 8
    """Most cells that each range is cut into."""
    draws: int = 100
    """Bootstrap samples behind every interval."""

    def __post_init__(self) -> None:
        check_int("bins", self.bins, 1, 100)
        check_int("draws", self.draws, 20, 100_000)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        """Every pair, worst first."""
        couples = list(combinations(pair.names, 2))
        if not couples:
            return self.unable("There is only one column, so there are no pairs.")
        codes = [_codes(table, self.bins) for table in (pair.original, pair.synthetic)]
        items = []
        for place, couple in enumerate(couples):
            if place % 10 == 0:
                progress("Comparing pairs of columns", place / len(couples))
            items.append(
                guarded(
                    PAIR.join(couple),
                    couple,
                    lambda couple=couple: self._measure(couple, codes, rng),  # type: ignore[misc]
                )
            )
        ordered = worst_first(items)
        return Result(
            key=self.key,
            title=self.title,
            scale=self.scale,
            headline=ordered[0],
            items=ordered,
            tables={"correlations": correlation_differences(pair)},
        )

    def _measure(self, couple: tuple[str, str], codes: list[dict[str, IntArray]], rng: np.random.Generator) -> Measure:
        original, synthetic = _joint_counts(couple, codes)
        return variation_measure(PAIR.join(couple), couple, original, synthetic, rng, draws=self.draws)


def mean_pair_variation(pair: TablePair, bins: int) -> float:
    """Mean total variation over all pairs of columns: one number to rank mechanisms by, never to judge a table by."""
    codes = [_codes(table, bins) for table in (pair.original, pair.synthetic)]
    couples = combinations(pair.names, 2)
    return float(np.mean([total_variation(*_joint_counts(couple, codes)) for couple in couples]))


def _joint_counts(couple: tuple[str, str], codes: list[dict[str, IntArray]]) -> tuple[IntArray, IntArray]:
    """Rows of either table in every cell of a pair that holds any."""
    width = 1 + max(int(table[couple[1]].max()) for table in codes)
    joint = [table[couple[0]] * width + table[couple[1]] for table in codes]
    _, place = np.unique(np.concatenate(joint), return_inverse=True)
    cells = int(place.max()) + 1
    original, synthetic = place[: len(joint[0])], place[len(joint[0]) :]
    return np.bincount(original, minlength=cells), np.bincount(synthetic, minlength=cells)


def _codes(table: PrivateTable, bins: int) -> dict[str, IntArray]:
    """Each row's cell in every column, coarse enough for pairs."""
    return {column.name: codec_for(coarse(column, bins)).codes(table.positions(column.name)) for column in table.schema}


def correlation_differences(pair: TablePair) -> pd.DataFrame:
    """Pearson's correlation of every pair of ordered columns in both tables, and their difference with its interval.

    A correlation of columns that do not vary, or of fewer than four rows, does not exist and is left empty.
    """
    names = [c.name for c in pair.original.schema if c.is_numeric or c.kind in ("ordinal", "boolean")]
    values = [_numbers(table, names) for table in (pair.original, pair.synthetic)]
    rows: list[dict[str, Any]] = []
    for first, second in combinations(names, 2):
        (r, n), (s, m) = (_correlation(table[first], table[second]) for table in values)
        # Var(r) is about (1 - r^2)^2 / (n - 1) in large samples.
        error = math.sqrt((1 - r * r) ** 2 / max(n - 1, 1) + (1 - s * s) ** 2 / max(m - 1, 1))
        rows.append(
            {
                "first": first,
                "second": second,
                "original": r,
                "synthetic": s,
                "difference": s - r,
                "low": s - r - NORMAL_QUANTILE * error,
                "high": s - r + NORMAL_QUANTILE * error,
            }
        )
    return pd.DataFrame(rows, columns=["first", "second", "original", "synthetic", "difference", "low", "high"])


def _numbers(table: PrivateTable, names: list[str]) -> dict[str, FloatArray]:
    out = {}
    for name in names:
        positions = table.positions(name)
        values = positions.values.astype(np.float64)
        out[name] = values if positions.missing is None else np.where(positions.missing, np.nan, values)
    return out


def _correlation(x: FloatArray, y: FloatArray) -> tuple[float, int]:
    """Pearson's correlation and the number of rows behind it; not a number where there is none."""
    present = ~(np.isnan(x) | np.isnan(y))
    x, y = x[present], y[present]
    rows = len(x)
    if rows < 4 or not np.ptp(x) or not np.ptp(y):
        return math.nan, rows
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # so that squares of huge or tiny numbers stay numbers
    return float(np.clip(x @ y / math.sqrt(float(x @ x) * float(y @ y)), -1, 1)), rows
