"""Rows as points on which kernels work, and points that are made from nothing but the schema."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import Positions, codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_COORDINATES = 1_024
"""Numbers and labels of all columns together."""
WIDTH_PER_COLUMN = 0.1
"""Default width of the kernel for one column, where a declared range has length two; it grows with the root of the
number of columns, as distances do."""
LABEL_DISTANCE = 2.0
"""Kernel widths between two rows that differ in one label: the kernel is exp(-2) there."""


@dataclass(frozen=True, kw_only=True)
class PointSpace:
    """The declared domain as a box of points, scaled by the width of the kernel exp(-|x - y|^2 / 2)."""

    layout: PointLayout
    width: float

    @classmethod
    def of(cls, schema: Schema, width: float | None) -> PointSpace:
        layout = PointLayout.of(schema)
        if layout.size > MAX_COORDINATES:
            raise ParameterError(
                "schema",
                f"{len(schema.columns)} columns with {layout.size:,} numbers and labels",
                allowed=f"at most {MAX_COORDINATES:,} numbers and labels in all",
                remedy="Leave out or merge labels, or use private_pgm.",
            )
        return cls(layout=layout, width=width or WIDTH_PER_COLUMN * len(schema.columns) ** 0.5)

    @property
    def size(self) -> int:
        return self.layout.size

    @property
    def scales(self) -> FloatArray:
        """What each coordinate is multiplied by: numbers by one over the width, labels to their distance."""
        numbers = self.layout.numbers[: self.size]
        return np.where(numbers, 1 / self.width, LABEL_DISTANCE / np.sqrt(2))

    def encode(self, table: PrivateTable) -> FloatArray:
        """Every row as a point: private."""
        return np.asarray(self.layout.encode(table)[:, : self.size] * self.scales)

    def points(self, positions: dict[str, Positions]) -> FloatArray:
        """Positions in the declared domain as points."""
        rows = len(next(iter(positions.values())).values)
        out = np.zeros((rows, self.layout.width))
        for block in self.layout.blocks:
            block.fill(positions[block.column.name], out)
        return np.asarray(out[:, : self.size] * self.scales)

    def random(self, rows: int, noise: Noise) -> tuple[FloatArray, IntArray]:
        """Values of numbers from -1 to 1 and indices of labels, uniform over the domain; one column per block."""
        blocks = self.layout.blocks
        uniform = noise.uniform(2 * rows * len(blocks)).reshape(2, rows, len(blocks))
        levels = np.array([max(1, block.levels) for block in blocks])
        return uniform[0] * 2 - 1, np.minimum((uniform[1] * levels).astype(np.int64), levels - 1)

    def positions(self, values: FloatArray, codes: IntArray) -> dict[str, Positions]:
        """The nearest rows of the domain."""
        blocks = enumerate(self.layout.blocks)
        return {block.column.name: block.positions(values[:, i], codes[:, i]) for i, block in blocks}

    def rows(self, positions: dict[str, Positions]) -> pd.DataFrame:
        columns = ((block.column.name, codec_for(block.column)) for block in self.layout.blocks)
        return pd.DataFrame({name: codec.restore(positions[name]) for name, codec in columns}, copy=False)


@dataclass(frozen=True, kw_only=True)
class WeightedPoints:
    """A few rows with weights, which is all that is released. Safe to show: everything in it was paid for."""

    table: pd.DataFrame
    points: FloatArray
    """The same rows as points, in kernel widths."""
    weights: FloatArray
    """As published, to estimate averages with: some may be negative."""
    shares: FloatArray
    """To draw rows with: not negative, and adding up to one."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        edges = np.cumsum(self.shares)
        chosen = np.searchsorted(edges, noise.uniform(rows) * edges[-1], side="right")
        rows_drawn: pd.DataFrame = self.table.iloc[np.minimum(chosen, len(edges) - 1)].reset_index(drop=True)
        return rows_drawn


def gaussian_kernel(x: FloatArray, y: FloatArray) -> FloatArray:
    """exp(-|x - y|^2 / 2) between all points."""
    squares = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1)[None, :] - 2 * x @ y.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / 2))


def nearest_shares(basis: FloatArray, wanted: FloatArray) -> FloatArray:
    """Shares of the basis vectors (columns) that come closest to a vector; equal ones where none helps."""
    from scipy.optimize import nnls  # noqa: PLC0415  slow to import

    found = np.asarray(nnls(basis, wanted, maxiter=30 * basis.shape[1])[0])
    total = float(found.sum())
    return found / total if total > 0 else np.full(len(found), 1 / len(found))
