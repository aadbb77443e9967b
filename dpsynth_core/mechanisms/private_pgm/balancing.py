"""Drawn rows brought nearer to the model that they were drawn from, in all pairs of columns: post-processing.

Rows that are drawn one after the other meet the model's own tables closely, but pairs of columns that no table holds
only as nearly as chance has it: of n rows in k cells, about 0.4 sqrt(k / n) lie elsewhere. A few per cent of the
values, exchanged between rows or copied from one row to another where that brings all pairs together nearer to the
model, take nearly all of this away. The model is paid for, so nothing here costs privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.jit import compiled
from dpsynth_core.privacy.noise import Noise

SWEEPS = 8
"""Times that every column is gone through."""
MAX_MEETINGS = 100_000
"""Rows of a column that meet another row in a sweep, at most: the more rows, the smaller the part that must change."""
MAX_MOVABLE = 500_000
"""Rows that take part, at most, so that memory stays small."""
MIN_CHANGED = 1e-4
"""Part of the values that a sweep must change for there to be another."""
IMPROBABLE = 0.01
"""Expected rows below which an empty cell of a pair stays empty: no combination comes about that the model all but
rules out."""
CLOSED = 1e12
"""Excess of such a cell, so that nothing can outweigh it."""
MIN_FALL = 1e-9
"""What counts as falling, beside the rounding of floats."""
Strata: TypeAlias = NDArray[np.int32]
"""A column's stratum in each row, in little memory."""
ColumnPair: TypeAlias = tuple[int, ...]
"""Two columns by their numbers, in ascending order."""


@dataclass(frozen=True, kw_only=True)
class PairTargets:
    """Probabilities of all pairs of columns, over strata of bins. Safe to show: nothing here is private."""

    strata: tuple[IntArray, ...]
    """Of each column, the stratum of each bin."""
    pairs: Mapping[ColumnPair, FloatArray]
    """Probabilities of the strata of two columns together."""

    @classmethod
    def of(cls, groups: Mapping[ColumnPair, FloatArray], shares: Sequence[tuple[IntArray, FloatArray]]) -> PairTargets:
        """From probabilities of groups, and of each column the strata and their shares in each group."""
        given = [share for _, share in shares]
        pairs: dict[ColumnPair, FloatArray] = {
            (a, b): given[a].T @ table @ given[b] for (a, b), table in groups.items()
        }
        return cls(strata=tuple(strata for strata, _ in shares), pairs=pairs)

    def balance(self, bins: Sequence[IntArray], noise: Noise) -> None:
        """Exchange or copy some of the rows' bins, in place, so that pairs come nearer to these probabilities.

        ``bins`` holds an array for each column. Rows are in no order, so of very many the first will do.
        """
        rows, columns = len(bins[0]), len(bins)
        if columns < 2 or rows < 2:
            return
        all_strata = [of_bin.astype(np.int32)[own] for of_bin, own in zip(self.strata, bins, strict=True)]
        pairs, starts, strides = self._excess(all_strata)
        alone = self._excess_alone(all_strata)
        movable = min(rows, MAX_MOVABLE)
        strata = np.column_stack([each[:movable] for each in all_strata]).astype(np.int64)
        held = np.column_stack([own[:movable] for own in bins])
        for _ in range(SWEEPS):
            changed = 0
            for column in range(columns):
                meeting = noise.distinct(movable, min(movable, MAX_MEETINGS))
                changed += _sweep(strata, held, pairs, starts, strides, alone, meeting, column)
            if changed < MIN_CHANGED * min(movable, MAX_MEETINGS) * columns:
                break
        for own, values in zip(bins, held.T, strict=True):
            own[:movable] = values

    def _excess(self, strata: Sequence[Strata]) -> tuple[FloatArray, IntArray, IntArray]:
        """Rows in each cell of each pair above what is expected, in one array; where a pair begins; steps within it."""
        rows, columns = len(strata[0]), len(strata)
        starts, strides = np.zeros((2, columns, columns), dtype=np.int64)
        parts, start = [], 0
        for a, b in combinations(range(columns), 2):
            expected = rows * self.pairs[a, b].ravel()
            size = self.pairs[a, b].shape[1]
            counts = np.bincount(strata[a] * size + strata[b], minlength=expected.size)
            parts.append(np.where((counts == 0) & (expected < IMPROBABLE), CLOSED, counts - expected))
            starts[a, b] = starts[b, a] = start
            strides[a, b], strides[b, a] = size, 1
            start += expected.size
        return np.concatenate(parts), starts, strides

    def _excess_alone(self, strata: Sequence[Strata]) -> FloatArray:
        """The same of each column's strata, a row for each column."""
        out = np.zeros((len(strata), max(int(own.max()) for own in self.strata) + 1))
        for number, column in enumerate(strata):
            pair = self.pairs[0, 1] if number == 0 else self.pairs[0, number].T
            expected = len(column) * pair.sum(axis=1)
            out[number, : len(expected)] = np.bincount(column, minlength=len(expected)) - expected
        return out


@compiled
def _sweep(  # noqa: PLR0917  compiled code takes arguments by place
    strata: IntArray,
    bins: IntArray,
    excess: FloatArray,
    starts: IntArray,
    strides: IntArray,
    alone: FloatArray,
    meeting: IntArray,
    column: int,
) -> int:
    """Rows meet two by two: one column's values are exchanged, or one copied, where the sum of squares falls.

    The sum is over the cells of all pairs; the column by itself counts as much as it does with all others together.
    """
    changed = 0
    columns = strata.shape[1]
    for turn in range(len(meeting) // 2):
        i, j = meeting[2 * turn], meeting[2 * turn + 1]
        a, b = strata[i, column], strata[j, column]
        if a == b:
            continue
        # By how much the sum rises if row i gets row j's value, the other way round, and if they are exchanged.
        between = alone[column, b] - alone[column, a]
        first, second, both = (columns - 1) * (2 + 2 * between), (columns - 1) * (2 - 2 * between), 0.0
        for other in range(columns):
            if other == column:
                continue
            start, step, along = starts[column, other], strides[column, other], strides[other, column]
            c, e = strata[i, other], strata[j, other]
            rise_i = 2 + 2 * (excess[start + b * step + c * along] - excess[start + a * step + c * along])
            rise_j = 2 + 2 * (excess[start + a * step + e * along] - excess[start + b * step + e * along])
            first += rise_i
            second += rise_j
            if c != e:
                both += rise_i + rise_j
        least = min(first, second, both)
        if least > -MIN_FALL:
            continue
        value_i, value_j = bins[i, column], bins[j, column]
        if least in (first, both):
            _move(strata, excess, starts, strides, alone, i, column, b)
            bins[i, column] = value_j
            changed += 1
        if least in (second, both):
            _move(strata, excess, starts, strides, alone, j, column, a)
            bins[j, column] = value_i
            changed += 1
    return changed


@compiled
def _move(  # noqa: PLR0917
    strata: IntArray,
    excess: FloatArray,
    starts: IntArray,
    strides: IntArray,
    alone: FloatArray,
    row: int,
    column: int,
    stratum: int,
) -> None:
    """Put one value of a row into another stratum."""
    left = strata[row, column]
    for other in range(strata.shape[1]):
        if other != column:
            start, step = starts[column, other], strides[column, other]
            beside = start + strata[row, other] * strides[other, column]
            excess[beside + left * step] -= 1
            excess[beside + stratum * step] += 1
    alone[column, left] -= 1
    alone[column, stratum] += 1
    strata[row, column] = stratum
