"""Balog, Tolstikhin & Schölkopf (2018), Algorithm 1: the kernel mean embedding in the span of public points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import check_between, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.mean_embedding.domain_points import (
    PointSpace,
    WeightedPoints,
    gaussian_kernel,
    nearest_shares,
)
from dpsynth_core.mechanisms.mean_embedding.noisy_mean import MAX_EMBEDDED_ROWS, MEAN, embedded_sum, noisy_mean
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MIN_EIGENVALUE = 1e-8
"""Share of the largest one below which a direction is left out: points that are almost the same tell it."""
SECONDS_PER_KERNEL = 3e-8
"""Seconds for one value of the kernel, roughly."""


@dataclass(frozen=True, kw_only=True)
class BalogPoints(Mechanism):
    """Release weights of points that were chosen without looking at the rows.

    The mean embedding of the rows is projected on the span of the points' kernels, written in an orthonormal basis, and
    given Gaussian noise. Weights of the points follow from it.
    """

    key: ClassVar[str] = "balog_points"
    title: ClassVar[str] = "Balog: public points"
    summary: ClassVar[str] = "Weighs random points of the domain so that their kernel mean is near that of the rows."
    good_for: ClassVar[str] = (
        "Comparison with the KD tree in two or three columns of numbers; with more columns hardly a random point is "
        "near any row."
    )
    beware: ClassVar[str] = (
        "Its rows are copies of a few random points of the declared domain: no value in them comes from the original."
    )
    paper: ClassVar[str] = "Balog, Tolstikhin & Schölkopf (2018), Algorithm 1, as compared by Kreačić et al. (2023)."
    needs_delta: ClassVar[bool] = True
    counts_cells: ClassVar[bool] = False
    comparator: ClassVar[bool] = True
    max_rows: ClassVar[int | None] = MAX_EMBEDDED_ROWS
    audit_runs: ClassVar[int] = 40

    points: int = setting(200, title="Public points")
    """Points that are drawn from the declared domain. More points come closer to the rows and get more noise."""
    width: float | None = setting(None, title="Kernel width", advanced=True)
    """Standard deviation of the kernel, where every declared range has length two. None: a tenth times the root of the
    number of columns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("points", self.points, 1, 5_000)
        if self.width is not None:
            check_between("width", self.width, 0, 1e6)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  alike for all
        return cls(reason="200 random points of the declared domain get weights; a kernel of the usual width.")

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:  # noqa: ARG003
        return {"few points": cls(points=8), "wide kernel": cls(points=5, width=3.0)}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        PointSpace.of(schema, self.width)
        return Plan(
            stages=(Stage(label=MEAN, epsilon=budget.epsilon, scale=None, delta=budget.delta),),
            cuts=tuple(1 for _ in schema.columns),
            cells=self.points,
            draws=self.points,
            values=n * len(schema.columns),
            made=self.cells_made(schema, n),
            computing=0.5 + n * self.points * SECONDS_PER_KERNEL + 3e-8 * self.points**3,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> WeightedPoints:
        """Public points, and weights from a noisy projection on their span."""
        progress("Choosing points", 0.0)
        space, rows = PointSpace.of(table.schema, self.width), table.sample(self.rows_used(table.n), noise)
        return self._weighed(rows, space, space.positions(*space.random(self.points, noise)), noise, progress)

    def _weighed(
        self, table: PrivateTable, space: PointSpace, chosen: dict[str, Positions], noise: Noise, progress: Progress
    ) -> WeightedPoints:
        """The points with weights from the noisy projection of the rows' mean embedding."""
        # Lines 1 and 2: points that are equal count once.
        points, first = np.unique(space.points(chosen), axis=0, return_index=True)
        basis = orthonormal(gaussian_kernel(points, points))

        def embedding(rows: FloatArray) -> FloatArray:
            return gaussian_kernel(rows, points) @ basis

        # Lines 3 and 4: coordinates of the projected mean embedding, with noise.
        alone = np.zeros(table.n, dtype=np.int64)
        sums = embedded_sum(space.encode(table), alone, embedding, shape=(1, basis.shape[1]), progress=progress)
        beta = noisy_mean(sums, table.n, noise)[0]
        progress("Weighing the points", 0.9)
        # Line 5: sum_f beta_f b_f = sum_m w_m k(z_m, .).
        weights = basis @ beta
        shares = nearest_shares((gaussian_kernel(points, points) @ basis).T, beta)
        rows = space.rows(chosen).iloc[first].reset_index(drop=True)
        return WeightedPoints(table=rows, points=points, weights=weights, shares=shares)


def orthonormal(kernel: FloatArray) -> FloatArray:
    """Columns that make k(z_1, .), ..., k(z_M, .) an orthonormal basis of their span, but for directions of no length.

    Example:
        >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
        >>> (orthonormal(K).T @ K @ orthonormal(K)).round(6).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    values, vectors = np.linalg.eigh(kernel)
    kept = values > MIN_EIGENVALUE * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))
