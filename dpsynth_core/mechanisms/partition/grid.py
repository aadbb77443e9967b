"""Equal cells over the declared domain, counted with noise, without listing the empty ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.privacy.budget import Amount, exact
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.private_rows import CellCounts, PrivateRows, full_counts
from dpsynth_core.table.schema import Schema

ROWS_PER_CELL = 10
"""A cell should expect this many rows per unit of 1/epsilon (Qardaji, Yang & Li 2013)."""
MOST_BINS = 4096
"""A suggestion does not cut a column finer than this."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The cells: a product of axes."""

    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, schema: Schema, bins: int | None, *, most: int | None = None) -> Grid:
        """The declared cells, or ``bins`` along every numeric column; more than ``most`` are refused."""
        grid = cls(axes=tuple(Axis.coarse(column, bins) for column in schema))
        if most is not None and grid.cells > most:
            raise ParameterError(
                "cells",
                grid.cells,
                allowed=f"at most {most:,} for this mechanism",
                remedy="Use fewer bins or columns, or Private-PGM, KD tree or Smoothed histogram: they fit any domain.",
            )
        return grid

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis, missing ones included."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many there are, exact however many."""
        return math.prod(self.shape)

    def count(self, table: PrivateRows) -> CellCounts:
        """Occupied cells and their rows: private."""
        (counted,) = table.histograms([self.axes])
        return counted

    def full_counts(self, table: PrivateRows) -> IntArray:
        """Rows of every cell, empty ones included: private."""
        return full_counts(self.count(table), self.shape)

    def model(self, cells: IntArray, weights: IntArray | FloatArray, *, rows: int, centre: bool) -> PartitionModel:
        return PartitionModel.of(self.axes, cells, cells + 1, weights.astype(np.float64), rows=rows, centre=centre)


def noisy_grid(
    grid: Grid,
    table: PrivateRows,
    noise: Noise,
    *,
    threshold: int,
    label: str,
    most: int,
    epsilon: Fraction | None = None,
) -> tuple[IntArray, IntArray]:
    """Cells whose noisy count reaches the threshold, and those counts: Kreačić et al., Algorithms 1 and 5.

    The counts cost ``epsilon``, all of the budget unless it is given.
    """
    epsilon = epsilon or noise.budget.epsilon
    check_invented(grid, threshold, epsilon, most=most)
    cells, counts = grid.count(table)
    flat = np.ravel_multi_index(tuple(cells.T), grid.shape)
    noisy = noise.sparse_laplace(
        flat,
        counts,
        zeros=grid.cells - len(flat),
        threshold=threshold,
        pick=_picker(grid.cells, flat, noise),
        sensitivity=HISTOGRAM_SENSITIVITY,
        epsilon=epsilon,
        label=label,
    )
    kept = noisy.values >= threshold
    extra = np.column_stack(np.unravel_index(noisy.extra_keys, grid.shape)).astype(np.int64)
    return np.concatenate([cells[kept], extra]), np.append(noisy.values[kept], noisy.extra_values)


def check_invented(grid: Grid, threshold: int, epsilon: Fraction, *, most: int) -> None:
    """Refuse a grid of which more empty cells are expected to pass the threshold than ``most``: by public facts."""
    invented = grid.cells * math.exp(-threshold * epsilon / HISTOGRAM_SENSITIVITY)
    if invented > most:
        raise ParameterError(
            "cells",
            grid.cells,
            allowed=f"few enough that at most {most:,} empty ones pass a threshold of {threshold}",
            remedy="Raise the threshold, use fewer bins, or use KD tree or Smoothed histogram: they fit any domain.",
        )


def _picker(cells: int, occupied: IntArray, noise: Noise) -> Callable[[int], IntArray]:
    """Draws that many different empty cells uniformly."""

    def pick(size: int) -> IntArray:
        if not size:
            return np.zeros(0, dtype=np.int64)
        # The r-th empty cell is r plus the number of occupied cells before it; those are found by bisection.
        rank = np.sort(noise.distinct(cells - len(occupied), size))
        gaps = np.sort(occupied) - np.arange(len(occupied))
        return np.asarray(rank + np.searchsorted(gaps, rank, side="right"), dtype=np.int64)

    return pick


def bins_for(schema: Schema, cells: float) -> int:
    """Most bins along every numeric column that keep the domain within that many cells; at least two."""
    numeric = sum(column.is_numeric for column in schema)
    labels = sum(math.log(column.size) for column in schema if not column.is_numeric)
    each = (math.log(max(cells, 1.0)) - labels) / max(numeric, 1)
    return max(2, math.floor(math.exp(min(each, math.log(MOST_BINS))) + 1e-9))


def suggested_bins(schema: Schema, n: int, epsilon: Amount) -> int:
    """Bins along every numeric column so that a cell expects about ten rows per 1/epsilon."""
    return bins_for(schema, n * float(exact(epsilon, parameter="epsilon")) / ROWS_PER_CELL)
