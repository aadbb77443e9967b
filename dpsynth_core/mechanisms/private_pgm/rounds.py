"""Rounds that count what the model so far misses most (after AIM, McKenna et al. 2022), over groups of bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms.private_pgm.allocation import COUNT_SETS, SELECT_SETS, SELECTION_SHARE, Allocation
from dpsynth_core.mechanisms.private_pgm.binned_columns import BinnedColumn
from dpsynth_core.mechanisms.private_pgm.estimation import Estimate, Measurement, estimate
from dpsynth_core.mechanisms.private_pgm.junction_tree import Clique, FittedTree
from dpsynth_core.mechanisms.private_pgm.measuring import SCORE_SENSITIVITY, Measurer, expected_std
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.private_table import PrivateTable

MEAN_ERROR = math.sqrt(2 / math.pi)
"""Mean absolute value of Gaussian noise, in units of its standard deviation."""
MAX_MODEL_CELLS = 100_000
"""Cells of all tables of the model that the whole budget may lead to."""
ROUND_ITERATIONS, FINAL_ITERATIONS = 40, 400
PAIR_WEIGHT, SINGLE_WEIGHT = 2, 1
"""How much an error counts: a pair stands for two columns."""


@dataclass(frozen=True, kw_only=True)
class GroupedRows:
    """Each row's group in every column: private."""

    codes: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    _counted: dict[Clique, IntArray] = field(default_factory=dict)

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
        if clique not in self._counted:
            shape = tuple(self.sizes[variable] for variable in clique)
            flat = np.ravel_multi_index(tuple(self.codes[variable] for variable in clique), shape)
            self._counted[clique] = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        return self._counted[clique]


class Rounds:
    """A model that grows round by round until its share of the budget is spent."""

    def __init__(
        self,
        data: GroupedRows,
        columns: Sequence[Measurement],
        measurer: Measurer,
        allocation: Allocation,
        *,
        budget: Budget,
        target: int | None = None,
    ) -> None:
        self._data, self._measurer, self._allocation, self._budget = data, measurer, allocation, budget
        self._measurements = list(columns)
        self._left, self._step = allocation.rounds, allocation.step
        self._weights = _weights(len(data.sizes), target)
        self.selected: list[Clique] = []
        self._model = estimate(data.sizes, self._measurements, data.rows, iterations=ROUND_ITERATIONS)

    def run(self, report: Callable[[float], None]) -> Estimate:
        while self._left:
            report(float(1 - self._left / self._allocation.rounds))
            self._round()
        return estimate(
            self._data.sizes,
            self._measurements,
            self._data.rows,
            start=self._model.potentials,
            iterations=FINAL_ITERATIONS,
        )

    def _round(self) -> None:
        """Select, count, fit; where the count said nothing new, the noise was too large for what is left to find."""
        # The last round takes what would not be enough for another one.
        share = self._step if self._left >= 2 * self._step else self._left
        self._left -= share
        selecting = SELECTION_SHARE * share if len(self._data.sizes) > 2 else Fraction(0)
        std = expected_std(share - selecting, self._budget)
        expected = _expected(self._model.fitted)
        clique = self._select(expected, selecting, std)
        noisy, std = self._measurer.histogram(
            self._data.count(clique), share - selecting, COUNT_SETS, rows=self._data.rows
        )
        self._measurements.append(Measurement(clique=clique, values=noisy.astype(np.float64), std=std))
        self.selected.append(clique)
        self._model = estimate(
            self._data.sizes,
            self._measurements,
            self._data.rows,
            start=self._model.potentials,
            iterations=ROUND_ITERATIONS,
        )
        fitted = self._model.fitted.marginal(clique)
        moved = 0.0 if fitted is None else float(np.abs(fitted - expected[clique]).sum()) * self._data.rows
        if moved <= MEAN_ERROR * std * noisy.size:
            self._step *= 4 if self._budget.delta else 2  # half the noise

    def _select(self, expected: Mapping[Clique, np.ndarray], share: Fraction, std: float) -> Clique:
        candidates = self._candidates(expected)
        if not share:
            return max(candidates, key=len)
        scores = [
            self._weights[c] * (self._misfit(c, expected[c]) - round(MEAN_ERROR * std * expected[c].size))
            for c in candidates
        ]
        sensitivity = SCORE_SENSITIVITY * max(self._weights[c] for c in candidates)
        chosen = self._measurer.select(np.array(scores, dtype=np.int64), share, SELECT_SETS, sensitivity=sensitivity)
        return candidates[chosen]

    def _misfit(self, clique: Clique, expected: np.ndarray) -> int:
        """Twice the rows that the model has elsewhere: whole numbers, so one replaced row moves it by at most two."""
        return int(np.abs(self._data.count(clique) - np.rint(expected * self._data.rows).astype(np.int64)).sum())

    def _candidates(self, expected: Mapping[Clique, np.ndarray]) -> list[Clique]:
        """Those that keep the model small enough: its limit grows with what is spent."""
        limit = MAX_MODEL_CELLS * float(1 - self._left / self._allocation.rounds)
        tree = self._model.fitted.tree
        pure = not self._budget.delta
        return [
            c
            for c in expected
            if not (pure and c in self.selected)
            and (len(c) == 1 or tree.cells + tree.added_cells(c) <= max(limit, tree.cells))
        ]


def _expected(fitted: FittedTree) -> dict[Clique, np.ndarray]:
    singles: dict[Clique, np.ndarray] = {(v,): table for v, table in enumerate(fitted.singles())}
    return singles | fitted.pairs()


def _weights(size: int, target: int | None) -> dict[Clique, int]:
    out: dict[Clique, int] = {(v,): SINGLE_WEIGHT for v in range(size)}
    for pair in combinations(range(size), 2):
        out[pair] = PAIR_WEIGHT * (2 if target in pair else 1)
    return out
