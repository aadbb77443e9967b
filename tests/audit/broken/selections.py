"""Selections that are broken on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.probes import COARSE, LargestCells
from dpsynth_core.mechanisms.mwem.mechanism import MWEM
from dpsynth_core.mechanisms.mwem.weights import measure_query, reweigh
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.mechanisms.pmse.objective import PMSEObjective
from dpsynth_core.privacy.budget import Amount, Budget, float_up
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Exponential
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.selection import SCORE_SHARE, PairScore, PrivateSelection
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

PATIENCE = 20
"""Draws after which a selection is taken again, new or not: where one cell holds all rows, nothing else ever comes."""


def _reselected(place: int, taken: list[int], call: Exponential, noise: Noise) -> int:
    for _ in range(PATIENCE):
        if place not in taken:
            break
        place = int(noise._perform(call))
    return place


class ReselectUntilNew(LargestCells):
    """Draws a selection again until it is one that was not made before, paying once."""

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Any]:
        """Where there is something to reselect."""
        return {"two rounds": cls(rounds=2)}

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Select with replacement, and reject."""
        grid = Grid.of(table.schema, COARSE)
        scores = grid.full_counts(table).ravel().astype(np.float64)
        chosen: list[int] = []
        for share in noise.budget.split(*(1 for _ in range(self.rounds))):
            place = noise.exponential(scores, sensitivity=1, epsilon=share.epsilon, label="fullest cells")
            scale = float_up(2 / share.epsilon)
            call = Exponential(scores=scores, scale=scale, charge=noise.charges[-1])
            chosen.append(_reselected(place, chosen, call, noise))
        cells = np.column_stack(np.unravel_index(np.array(chosen), grid.shape)).astype(np.int64)
        return grid.model(cells, np.ones(len(cells), dtype=np.int64), rows=table.n, centre=False)


class FactorTwoForgotten(LargestCells):
    """Selects with probability proportional to exp(epsilon u / sensitivity), working out the scale by itself."""

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Any]:
        """One selection."""
        return {"one round": cls()}

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Select too sharply."""
        grid = Grid.of(table.schema, COARSE)
        scores, epsilon = grid.full_counts(table).ravel().astype(np.float64), noise.budget.epsilon
        charge = noise.open_charge("fullest cells", sensitivity=1, epsilon=epsilon)
        call = Exponential(scores=scores, scale=float_up(1 / epsilon), charge=charge)
        chosen = np.array([int(noise._perform(call))])
        cells = np.column_stack(np.unravel_index(chosen, grid.shape)).astype(np.int64)
        return grid.model(cells, np.ones(1, dtype=np.int64), rows=table.n, centre=False)


class MwemReselects(MWEM):
    """MWEM that draws a query again until it is a new one, paying once."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Select with replacement, and reject."""
        grid = Grid.of(table.schema, self.bins)
        workload = self._workload(grid, table.schema)
        rounds = self._rounds(grid, workload, table.n, noise.budget)
        share = noise.budget.split(*(1 for _ in range(2 * rounds)))[0].epsilon
        histogram = grid.full_counts(table)
        weights: FloatArray = np.full(grid.shape, table.n / grid.cells)
        measured: list[Any] = []
        for _ in range(rounds):
            errors = workload.norms(histogram - weights)
            query = noise.exponential(errors, sensitivity=workload.sensitivity, epsilon=share, label="select")
            scale = float_up(2 * workload.sensitivity / share)
            call = Exponential(scores=errors, scale=scale, charge=noise.charges[-1])
            query = _reselected(query, [step.query for step in measured], call, noise)
            measured.append(measure_query(workload, histogram, noise, query=query, epsilon=share))
            weights = reweigh(workload, weights, measured, rows=table.n, passes=1, correction="relative")
        cells = np.column_stack(np.unravel_index(np.arange(grid.cells), grid.shape)).astype(np.int64)
        return PartitionModel.of(grid.axes, cells, cells + 1, weights.ravel(), rows=table.n, centre=False)


class HalvedBound:
    """A score that is said to move by half of what it can."""

    def __init__(self, objective: PMSEObjective) -> None:
        self._objective = objective
        self.models, self.sensitivity = objective.models, objective.sensitivity / 2

    def __call__(self, *given: Any) -> FloatArray:
        return self._objective(*given)


class PmseBoundHalved(PMSE):
    """The pMSE mechanism with half of the score's sensitivity."""

    def _select(self, objective: PMSEObjective, *given: Any) -> FloatArray:
        halved: Any = HalvedBound(objective)
        return super()._select(halved, *given)


class OneRunCharged(PrivateSelection):
    """Of the best of several runs each one gets all of epsilon, as if the others did not look at the rows."""

    def shares(self, total: Budget) -> tuple[Budget, Budget]:
        fit, score = total.split(1 - SCORE_SHARE, SCORE_SHARE)
        return fit, score


class _OnePairMoves(PairScore):
    @property
    def sensitivity(self) -> int:
        return 1


class ScoreOfOnePair(PrivateSelection):
    """The score of a run is a sum over all pairs of columns, with noise for one of them."""

    def score_on(self, private: PrivateTable) -> PairScore:
        return _OnePairMoves(private)
