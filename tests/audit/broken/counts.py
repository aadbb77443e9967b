"""Histograms and grids that are broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.audit.probes import DenseCounts
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram, smoothing_constant
from dpsynth_core.privacy.accounting import GaussianDraw, affordable_cost
from dpsynth_core.privacy.budget import float_up
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Gaussian, Laplace
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable


class SensitivityHalved(DenseCounts):
    """A replaced row is taken to change one count, not two."""

    def _measured(self, counts: IntArray, noise: Noise) -> IntArray:
        return noise.laplace(counts, sensitivity=1, epsilon=noise.budget.epsilon, label="counts")


class EmptyBinsSkipped(DenseCounts):
    """Only cells that hold rows get noise, so a cell that shows up is known to be occupied."""

    def _measured(self, counts: IntArray, noise: Noise) -> IntArray:
        occupied = counts > 0
        noisy = np.zeros_like(counts)
        noisy[occupied] = noise.laplace(counts[occupied], sensitivity=2, epsilon=noise.budget.epsilon, label="counts")
        return noisy


class DrawnTwice(DenseCounts):
    """Draws again under the same charge if the first result looks bad."""

    def _measured(self, counts: IntArray, noise: Noise) -> IntArray:
        noisy = super()._measured(counts, noise)
        scale = float_up(2 / noise.budget.epsilon)
        call = Laplace(values=counts, scale=scale, charge=noise.charges[-1])
        return noisy if noisy.min() >= 0 else noise._perform(call)


class OwnRandomness(DenseCounts):
    """Breaks ties with a generator of its own, which nobody records or secures."""

    def _measured(self, counts: IntArray, noise: Noise) -> IntArray:
        return super()._measured(counts, noise) + np.random.default_rng().integers(0, 2, len(counts))


class GaussianTooSmall(DenseCounts):
    """Pays for Gaussian noise of one scale and draws at half of it."""

    needs_delta: ClassVar[bool] = True

    def _measured(self, counts: IntArray, noise: Noise) -> IntArray:
        epsilon, delta = noise.budget.epsilon, noise.budget.delta
        draw = GaussianDraw.costing(affordable_cost(epsilon, delta), values=2)
        charge = noise.open_gaussian(epsilon=epsilon, delta=delta, label="counts")
        return noise._perform(Gaussian(values=counts, draw=replace(draw, scale=draw.scale / 2), charge=charge))


class BoundsFromData(PerturbedHistogram):
    """Takes the range of numbers from the rows instead of from what was declared."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """As the histogram, on other bounds."""
        rows = table.rows()
        columns = []
        for column in table.schema:
            if column.kind in ("continuous", "integer"):
                present = rows[column.name].dropna()
                low, high = float(present.min()), float(present.max())
                whole = column.kind == "integer"
                low, high = (int(low), max(int(high), int(low) + 1)) if whole else (low, max(high, low + 1e-3))
                columns.append(replace(column, lower=low, upper=high, bins=None if whole else column.bins))
            else:
                columns.append(column)
        return super().fit(PrivateTable(rows, replace(table.schema, columns=tuple(columns))), noise, progress)


class ThresholdFromData(KDGrid):
    """Chooses the threshold by looking at the largest count."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """As the grid, with another threshold."""
        _, counts = Grid.of(table.schema, self.bins).count(table)
        return super(ThresholdFromData, replace(self, threshold=max(1, int(counts.max()) // 2))).fit(
            table, noise, progress
        )


class OccupiedFirst(PerturbedHistogram):
    """Lists the cells that hold rows before those that noise invented."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """As the histogram, in another order."""
        model = super().fit(table, noise, progress)
        grid = Grid.of(table.schema, self.bins)
        cells, _ = grid.count(table)
        occupied = {tuple(cell) for cell in cells.tolist()}
        order = np.argsort([tuple(cell) not in occupied for cell in model.low.tolist()], kind="stable")
        return replace(model, low=model.low[order], high=model.high[order], weights=model.weights[order])


class PresentCounted(PerturbedHistogram):
    """Rescales to the number of rows without a missing value, which is not public."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """As the histogram, with another total."""
        model = super().fit(table, noise, progress)
        present = int(table.rows().notna().all(axis=1).sum())
        return replace(model, weights=model.weights * (present / table.n))


class ErrorOnOutlier(PerturbedHistogram):
    """Refuses tables with a value at the end of its range: the refusal tells that there is one."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """As the histogram, unless a value is extreme."""
        for column in table.schema:
            if column.kind == "continuous" and (table.rows()[column.name] >= column.upper).any():
                raise ParameterError(column.name, "too large", allowed="values inside the bounds")
        return super().fit(table, noise, progress)


class SmoothedForOneRow(SmoothedHistogram):
    """Takes the constant that pays for one drawn row, and draws many."""

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """As the smoothed histogram, with too little smoothing."""
        grid = Grid.of(table.schema, self.bins)
        cells, counts = grid.count(table)
        draws, epsilon = self.rows or table.n, noise.budget.epsilon
        alpha, label = smoothing_constant(epsilon, 1), "every row drawn"
        drawn = noise.smoothed(cells, counts, shape=grid.shape, draws=draws, alpha=alpha, epsilon=epsilon, label=label)
        return grid.model(drawn, np.ones(draws, dtype=np.int64), rows=table.n, centre=False)
