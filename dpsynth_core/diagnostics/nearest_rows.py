"""Do synthetic rows repeat original ones? A sanity check that can raise an alarm and can never give the all-clear.

Distances to the closest original row are often sold as a proof of privacy. They are none: a table can pass and still
give a person away, and a private one can fail by chance. Only the guarantee protects people. This check finds blunders:
rows passed through, or the original saved under the wrong name.

Everything is compared with *fresh* rows: each original row beside the others, as if it had not been in the table. For a
fresh row of the same distribution the chance to find its like among n - 1 rows is the same, so this is the reference
that a holdout would give, without giving up rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.diagnostics.base import some_rows
from dpsynth_core.diagnostics.features import has_order, position_values, scaled, uniform_rows
from dpsynth_core.errors import DPSynthError, check_int
from dpsynth_core.inference.mann_whitney import effect_size
from dpsynth_core.inference.proportions import NORMAL_QUANTILE
from dpsynth_core.jit import compiled
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable

ROWS = 1_000
"""Rows of each kind whose closest original row is looked for."""
MISSING = -1.0
"""Coordinate of a missing value; all others are at least zero."""
BLOCK = 2_048
"""Rows that are worked on at a time: they stay in the processor's cache while all queries pass."""
LABEL = "A sanity check, not a proof of privacy: only the guarantee protects people."


@dataclass(frozen=True, kw_only=True)
class NearestRows:
    """How close synthetic rows come to original ones, beside fresh rows and rows drawn at random from the domain."""

    copies: float
    """Share of synthetic rows that equal an original row in every column."""
    copies_fresh: float
    """The same for fresh rows: original rows that equal another one."""
    copies_usual: float
    """What the share of copies hardly ever (one time in forty) exceeds for a fresh table."""
    closer: float
    """How often a synthetic row is closer to its closest original row than a fresh row is; ties count half."""
    closer_usual: float
    """What that hardly ever exceeds for a fresh table; its mean is one half."""
    distance: float
    """Median distance of synthetic rows to their closest original row: 0 is equal, 1 different in every column."""
    distance_fresh: float
    distance_random: float
    sampled: int
    """Synthetic rows whose closest original row was looked for; copies are counted over all rows."""
    releasable: Literal[False] = field(default=False, init=False)

    @property
    def alarming(self) -> bool:
        """Whether synthetic rows are closer to original ones than fresh rows are by chance."""
        return self.copies > self.copies_usual or self.closer > self.closer_usual

    @property
    def reading(self) -> str:
        judged = (
            "That is more than chance explains: check whether rows were passed through."
            if self.alarming
            else "Nothing suggests that rows were passed through."
        )
        return (
            f"{percent(self.copies)} of the synthetic rows equal an original row; of fresh rows "
            f"{percent(self.copies_fresh)} would, up to {percent(self.copies_usual)} by chance. In {self.closer:.0%} "
            f"of comparisons a synthetic row lies closer to an original one than a fresh row does; chance alone gives "
            f"50%. {judged}"
        )


def percent(share: float) -> str:
    """A share of rows, to two digits, and never as a power of ten.

    Example:
        >>> percent(0.0), percent(0.0312), percent(0.994), percent(1.0)
        ('0%', '3.1%', '99%', '100%')
    """
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.3g}%"


def nearest_rows(
    private: PrivateTable,
    synthetic: pd.DataFrame,
    rng: np.random.Generator,
    *,
    rows: int = ROWS,
    progress: Progress = no_progress,
) -> NearestRows:
    """Compare synthetic rows with the original rows they are closest to.

    The distance of two rows is the mean over columns: numbers and ordered labels by their share of the declared range,
    other labels and missing values 0 if equal, else 1. ``rng`` chooses the rows that are looked at.
    """
    check_int("rows", rows, 10, 10**6)
    if private.n < 2:
        raise DPSynthError("The original has a single row, so there is no fresh row to compare with.")
    progress("Looking for copies", 0.0)
    labels = np.array([not has_order(column) for column in private.schema])
    original, made = _points(private), _points(PrivateTable(synthetic, private.schema))
    uniform = _points(uniform_rows(private, min(rows, private.n), rng))
    hashes = _hashes(original)
    copies = float(np.isin(_hashes(made), hashes).mean())
    _, times = np.unique(hashes, return_counts=True)
    fresh_copies = float(times[times > 1].sum() / len(original))
    progress("Looking for the closest rows", 0.2)
    chosen, own = some_rows(len(made), rows, rng), some_rows(len(original), rows, rng)
    to_made = _closest(made[chosen], original, labels, np.full(len(chosen), -1))
    progress("Looking for the closest rows", 0.5)
    to_fresh = _closest(original[own], original, labels, own)
    progress("Looking for the closest rows", 0.8)
    to_random = _closest(uniform, original, labels, np.full(len(uniform), -1))
    return NearestRows(
        copies=copies,
        copies_fresh=fresh_copies,
        copies_usual=_usual_share(fresh_copies, len(original), len(made)),
        closer=effect_size(to_fresh, to_made),
        # Null variance of U / (n m), ties left out: they can only lower it.
        closer_usual=0.5 + NORMAL_QUANTILE * math.sqrt((len(chosen) + len(own) + 1) / (12 * len(chosen) * len(own))),
        distance=float(np.median(to_made)),
        distance_fresh=float(np.median(to_fresh)),
        distance_random=float(np.median(to_random)),
        sampled=len(chosen),
    )


def _points(table: PrivateTable) -> FloatArray:
    """One line per row: numbers and ordered labels as shares of their range, other labels by their index."""
    coordinates = [
        scaled(table, column, MISSING)
        if has_order(column)
        else np.nan_to_num(position_values(table, column.name), nan=MISSING)
        for column in table.schema
    ]
    return np.column_stack(coordinates)


def _hashes(points: FloatArray) -> IntArray:
    """64 bits for each row; equal rows have equal ones."""
    # Adding zero turns -0.0 into 0.0, which has other bits and is the same number.
    return pd.util.hash_pandas_object(pd.DataFrame(points + 0.0), index=False).to_numpy().astype(np.int64)


def _usual_share(share: float, n: int, m: int) -> float:
    """Upper end of the share of copies of a fresh table of m rows, when n rows say that it is ``share``.

    Normal, with one row for rounding. Copies come in pairs at least, so the n rows count half.
    """
    return min(1.0, share + NORMAL_QUANTILE * math.sqrt(share * (1 - share) * (2 / n + 1 / m)) + 1 / m)


@compiled
def _closest(queries: FloatArray, rows: FloatArray, labels: BoolArray, skipped: IntArray) -> FloatArray:
    """Mean distance per column from each query to its closest row, ``skipped`` rows left out.

    Block by block and column by column, so that the inner loops are plain arithmetic on neighbouring numbers.
    """
    columns = np.ascontiguousarray(rows.T)
    out = np.full(len(queries), np.inf)
    total = np.empty(BLOCK)
    for start in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - start)
        for i in range(len(queries)):
            total[:size] = 0.0
            for c in range(len(columns)):
                a, there = queries[i, c], columns[c, start : start + size]
                if labels[c]:
                    for j in range(size):
                        total[j] += 1.0 if there[j] != a else 0.0
                elif a < 0:
                    for j in range(size):
                        total[j] += 1.0 if there[j] >= 0 else 0.0
                else:
                    for j in range(size):
                        total[j] += abs(there[j] - a) if there[j] >= 0 else 1.0
            own = skipped[i] - start
            if 0 <= own < size:
                total[own] = np.inf
            best = out[i]
            for j in range(size):
                best = min(best, total[j])
            out[i] = best
    return out / len(columns)
