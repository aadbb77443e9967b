"""Pairs of columns: which of them to count, and their noisy counts. Both stages take a meter and can be run alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.cliques import joined, largest_clique
from dpsynth_core.mechanisms.private_pgm.denoise import shrunk_towards
from dpsynth_core.mechanisms.private_pgm.inference import Measurement
from dpsynth_core.mechanisms.private_pgm.meter import PRICE_OF_NOISE, Following, Meter
from dpsynth_core.mechanisms.private_pgm.views import View
from dpsynth_core.table.private_table import PrivateTable

LEAST_TRUST = 0.2
"""A table that was drawn towards what was expected is taken for no more exact than this share of its variance says."""
LARGEST_TABLE = 20_000
"""Cells of the model's largest table that pairs added to a tree may lead to."""

Pair: TypeAlias = tuple[int, int]
"""Two variables, in ascending order."""
Expected: TypeAlias = Mapping[Pair, FloatArray]
"""For every pair, the counts that a model without it expects."""


@dataclass(frozen=True, kw_only=True)
class GroupedRows:
    """Each row's group in every column: private."""

    codes: tuple[IntArray, ...]
    """By column."""
    sizes: tuple[int, ...]
    """Groups of each column."""

    @classmethod
    def of(cls, table: PrivateTable, views: Sequence[View]) -> GroupedRows:
        """The rows as the views group them."""
        codes = tuple(view.groups[view.bins.codes(table)] for view in views)
        return cls(codes=codes, sizes=tuple(view.size for view in views))

    @property
    def rows(self) -> int:
        """How many; public."""
        return len(self.codes[0])

    def count(self, pair: Pair) -> IntArray:
        """Rows by the groups of two columns: private."""
        shape = self.sizes[pair[0]], self.sizes[pair[1]]
        flat = self.codes[pair[0]] * shape[1] + self.codes[pair[1]]
        return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)


def independent(views: Sequence[View], rows: int) -> dict[Pair, FloatArray]:
    """What every pair's counts would be if columns had nothing to do with each other."""
    counts = [view.group_counts for view in views]
    return {(i, j): np.outer(counts[i], counts[j]) / rows for i, j in combinations(range(len(views)), 2)}


def choose_pairs(
    data: GroupedRows, expected: Expected, meter: Meter, stage: str, *, wanted: int, taken: Sequence[Pair],
    deviation: float,
) -> list[Pair]:  # fmt: skip
    """Pairs whose expected counts are most wrong: a forest to begin with, anything that stays small to add to one.

    Args:
        data: The rows.
        expected: What a model of everything measured so far expects.
        meter: Pays for the choices.
        stage: Their name in the meter's plan.
        wanted: How many pairs.
        taken: Pairs that the model knows already; none of them is chosen again.
        deviation: Of the noise that counting a chosen pair will bring.
    """
    pairs = list(expected)
    if len(pairs) == 1:  # nothing to choose, and nothing was planned for it
        return pairs

    def following(chosen: Sequence[int]) -> list[int]:
        sofar = [*taken, *(pairs[i] for i in chosen)]
        return _larger(pairs, sofar, data.sizes) if taken else _joining(pairs, sofar, len(data.sizes))

    options: Following = following
    return [pairs[i] for i in meter.choose(stage, pair_scores(data, expected, deviation), wanted, options)]


def pair_scores(data: GroupedRows, expected: Expected, deviation: float) -> IntArray:
    """How wrong each pair's expected counts are (L1), less what noise would cost on each of its cells.

    Expected counts are rounded to whole rows, so that scores are whole numbers, and one replaced row changes each of
    them by at most two.
    """
    return np.array(
        [
            int(np.abs(data.count(pair) - np.rint(table).astype(np.int64)).sum())
            - round(PRICE_OF_NOISE * deviation * table.size)
            for pair, table in expected.items()
        ],
        dtype=np.int64,
    )


def _joining(pairs: Sequence[Pair], taken: Sequence[Pair], size: int) -> list[int]:
    """Pairs that join two parts that are not joined yet, so that a forest remains one."""
    part = joined(taken, size)
    return [i for i, (first, second) in enumerate(pairs) if part[first] != part[second]]


def _larger(pairs: Sequence[Pair], taken: Sequence[Pair], sizes: Sequence[int]) -> list[int]:
    """Pairs not taken yet that keep the model's tables small."""
    return [
        i
        for i, pair in enumerate(pairs)
        if pair not in taken and largest_clique([*taken, pair], sizes) <= LARGEST_TABLE
    ]


def measure_pairs(
    data: GroupedRows, pairs: Sequence[Pair], expected: Expected, meter: Meter, stage: str
) -> list[Measurement]:
    """Noisy counts, drawn towards what was expected by as much as noise explains of the difference."""
    measured = []
    for turn, pair in enumerate(pairs):
        noisy, deviation = meter.histogram((stage, turn), data.count(pair), rows=data.rows)
        values, weight = shrunk_towards(noisy.astype(np.float64), expected[pair], deviation)
        trust = float(np.sqrt(max(weight, LEAST_TRUST)))
        measured.append(Measurement(variables=pair, values=values, deviation=deviation * trust))
    return measured
