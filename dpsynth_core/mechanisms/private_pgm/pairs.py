"""Pairs of columns: which of them to count, and their noisy counts. Both stages can be run alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.allocation import ERROR_PER_CELL
from dpsynth_core.mechanisms.private_pgm.binned_columns import BinnedColumn
from dpsynth_core.mechanisms.private_pgm.denoise import shrink_towards
from dpsynth_core.mechanisms.private_pgm.estimation import Measurement, max_clique_cells
from dpsynth_core.mechanisms.private_pgm.marginal_oracles import Clique
from dpsynth_core.mechanisms.private_pgm.measuring import Measurer
from dpsynth_core.table.private_table import PrivateTable

MIN_WEIGHT = 0.2
"""A table that was shrunk counts as no more exact than this share of its variance says."""
MAX_ADDED_CELLS = 20_000
"""Cells of the model's largest table that pairs added to a tree may lead to."""

ColumnPair: TypeAlias = tuple[int, int]
"""Indices of two columns, in ascending order."""
ExpectedCounts: TypeAlias = Mapping[ColumnPair, FloatArray]
"""For every pair, the counts that a model of everything measured so far expects."""


@dataclass(frozen=True, kw_only=True)
class GroupedRows:
    """Each row's group in every column: private."""

    codes: tuple[IntArray, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, table: PrivateTable, columns: Sequence[BinnedColumn]) -> GroupedRows:
        codes = tuple(column.groups[column.bins.codes(table)] for column in columns)
        return cls(codes=codes, sizes=tuple(column.size for column in columns))

    @property
    def rows(self) -> int:
        """How many; public."""
        return len(self.codes[0])

    def count(self, clique: Clique) -> IntArray:
        """Rows by the groups of some columns: private."""
        shape = tuple(self.sizes[variable] for variable in clique)
        flat = np.ravel_multi_index(tuple(self.codes[variable] for variable in clique), shape)
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)


def independent_counts(columns: Sequence[BinnedColumn], rows: int) -> dict[ColumnPair, FloatArray]:
    counts = [column.group_counts for column in columns]
    return {(i, j): np.outer(counts[i], counts[j]) / rows for i, j in combinations(range(len(columns)), 2)}


def select_pairs(
    data: GroupedRows,
    expected: ExpectedCounts,
    measurer: Measurer,
    stage: str,
    *,
    number: int,
    std: float,
    taken: Sequence[ColumnPair] = (),
) -> list[ColumnPair]:
    """Pairs whose expected counts are most wrong: a forest to begin with, anything that stays small to add to one.

    The noise that counting a selected pair will bring has this ``std``. Pairs in ``taken`` are known to the model and
    not selected again.
    """
    pairs = list(expected)
    if len(pairs) == 1:  # nothing to select, and nothing was planned for it
        return pairs

    def allowed(selected: Sequence[int]) -> list[int]:
        so_far = [*taken, *(pairs[i] for i in selected)]
        if taken:
            return _staying_small(pairs, so_far, data.sizes)
        return _joining_components(pairs, so_far, len(data.sizes))

    return [pairs[i] for i in measurer.select(stage, _scores(data, expected, std), number, allowed)]


def _scores(data: GroupedRows, expected: ExpectedCounts, std: float) -> IntArray:
    """How wrong each pair's expected counts are (L1), less what noise would cost on each of its cells.

    Expected counts are rounded to integers, so that scores are integers, and one replaced row changes each of them by
    at most two.
    """
    scores = []
    for pair, table in expected.items():
        error = int(np.abs(data.count(pair) - np.rint(table).astype(np.int64)).sum())
        scores.append(error - round(ERROR_PER_CELL * std * table.size))
    return np.array(scores, dtype=np.int64)


def _joining_components(pairs: Sequence[ColumnPair], taken: Sequence[ColumnPair], size: int) -> list[int]:
    """Pairs that join two parts that are not joined yet, so that a forest remains one."""
    from scipy.sparse import coo_array  # noqa: PLC0415  not needed to show the mechanism's form
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    first, second = np.array(taken, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(taken)), (first, second)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    return [i for i, (a, b) in enumerate(pairs) if component[a] != component[b]]


def _staying_small(pairs: Sequence[ColumnPair], taken: Sequence[ColumnPair], sizes: Sequence[int]) -> list[int]:
    return [
        i
        for i, pair in enumerate(pairs)
        if pair not in taken and max_clique_cells([*taken, pair], sizes) <= MAX_ADDED_CELLS
    ]


def measure_pairs(
    data: GroupedRows, pairs: Sequence[ColumnPair], expected: ExpectedCounts, measurer: Measurer, stage: str
) -> list[Measurement]:
    """Noisy counts, shrunk towards what was expected by as much as noise explains of the difference."""
    measurements = []
    for turn, pair in enumerate(pairs):
        noisy, std = measurer.histogram((stage, turn), data.count(pair), rows=data.rows)
        values, weight = shrink_towards(noisy.astype(np.float64), expected[pair], std)
        trust = float(np.sqrt(max(weight, MIN_WEIGHT)))
        measurements.append(Measurement(clique=pair, values=values, std=std * trust))
    return measurements
