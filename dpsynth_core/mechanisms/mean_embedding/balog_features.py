"""Balog, Tolstikhin & Schölkopf (2018), Algorithm 2: the mean of random features, and points that come near it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import check_between, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.mean_embedding.domain_points import PointSpace, WeightedPoints, nearest_shares
from dpsynth_core.mechanisms.mean_embedding.fourier import ascent, fourier, frequencies
from dpsynth_core.mechanisms.mean_embedding.noisy_mean import MAX_EMBEDDED_ROWS, MEAN, embedded_sum, noisy_mean
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

CANDIDATES = 200
"""Random points of which the next point is the best, before it is moved."""
MOVES = 25
"""Steps up the gradient that the best candidate takes."""
RIDGE = 1e-6
"""Keeps the weights of points that are almost the same finite."""
EMBEDDED = 0.35
"""Progress once the rows are embedded."""


@dataclass(frozen=True, kw_only=True)
class BalogFeatures(Mechanism):
    """Release the noisy mean of random features; then find weighted points whose mean comes near it.

    Points are added one by one where they help most, moved up the gradient, and all weights are fitted again (an
    iterated reduced set). None of this looks at the rows again.
    """

    key: ClassVar[str] = "balog_features"
    title: ClassVar[str] = "Balog: random features"
    summary: ClassVar[str] = "Adds noise to the mean of random features and finds weighted points with that mean."
    good_for: ClassVar[str] = "Comparison with the KD tree in a few columns of numbers."
    beware: ClassVar[str] = (
        "Its rows are copies of a few points; what the random features do not see, and everything finer than the "
        "kernel's width, is lost."
    )
    paper: ClassVar[str] = "Balog, Tolstikhin & Schölkopf (2018), Algorithm 2, as compared by Kreačić et al. (2023)."
    needs_delta: ClassVar[bool] = True
    counts_cells: ClassVar[bool] = False
    comparator: ClassVar[bool] = True
    max_rows: ClassVar[int | None] = MAX_EMBEDDED_ROWS
    audit_runs: ClassVar[int] = 0

    points: int = setting(100, title="Points to find")
    """They cost no privacy, but time."""
    features: int = setting(1_000, title="Random features")
    """Numbers that the rows are averaged in. More come closer to the kernel and get more noise in all."""
    width: float | None = setting(None, title="Kernel width", advanced=True)
    """Standard deviation of the kernel, where every declared range has length two. None: a tenth times the root of the
    number of columns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("points", self.points, 1, 2_000)
        check_int("features", self.features, 2, 20_000)
        if self.width is not None:
            check_between("width", self.width, 0, 1e6)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  alike for all
        return cls(reason="1,000 random features of a kernel of the usual width; 100 points are made from them.")

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:  # noqa: ARG003
        return {"few features": cls(points=3, features=12), "wide kernel": cls(points=2, features=6, width=3.0)}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        size = PointSpace.of(schema, self.width).size
        finding = self.points * (CANDIDATES + MOVES) * self.features * (size + 10) * 2e-9
        return Plan(
            stages=(Stage(label=MEAN, epsilon=budget.epsilon, scale=None, delta=budget.delta),),
            cuts=tuple(1 for _ in schema.columns),
            cells=self.features,
            draws=self.features,
            values=n * len(schema.columns),
            made=self.cells_made(schema, n),
            computing=0.5 + n * self.features * 3e-8 + finding + 1e-8 * self.features * self.points**2,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> WeightedPoints:
        """Random features, their noisy mean over the rows, and a reduced set."""
        progress("Choosing features", 0.0)
        space, rows = PointSpace.of(table.schema, self.width), table.sample(self.rows_used(table.n), noise)
        omega = frequencies(-(-self.features // 2), space.size, noise)
        alone = np.zeros(rows.n, dtype=np.int64)
        shape = 1, 2 * omega.shape[1]
        sums = embedded_sum(
            space.encode(rows), alone, lambda some: fourier(some, omega), shape=shape, progress=progress
        )
        mean = noisy_mean(sums, rows.n, noise)[0]
        values, codes = reduced_set(space, omega, mean, noise, count=self.points, progress=progress)
        chosen = space.positions(values, codes)
        points = space.points(chosen)
        basis = fourier(points, omega).T
        shares = nearest_shares(basis, mean)
        return WeightedPoints(table=space.rows(chosen), points=points, weights=fitted(basis, mean), shares=shares)


def reduced_set(
    space: PointSpace, omega: FloatArray, mean: FloatArray, noise: Noise, *, count: int, progress: Progress
) -> tuple[FloatArray, IntArray]:
    """Points whose weighted features come near a vector, one after the other (Burges & Schölkopf 1997)."""
    values, codes = np.zeros((0, len(space.layout.blocks))), np.zeros((0, len(space.layout.blocks)), dtype=np.int64)
    basis, left = np.zeros((len(mean), 0)), mean
    for index in range(count):
        progress("Finding points", EMBEDDED + (1 - EMBEDDED) * 0.95 * index / count)
        value, code = _next_point(space, omega, left, noise)
        values, codes = np.vstack([values, value]), np.vstack([codes, code])
        basis = np.column_stack([basis, fourier(space.points(space.positions(value, code)), omega)[0]])
        left = mean - basis @ fitted(basis, mean)
    return values, codes


def _next_point(space: PointSpace, omega: FloatArray, left: FloatArray, noise: Noise) -> tuple[FloatArray, IntArray]:
    """The random point that has most in common with what is left, moved uphill in its numbers."""
    values, codes = space.random(CANDIDATES, noise)
    best = int(np.argmax(fourier(space.points(space.positions(values, codes)), omega) @ left))
    value, code = values[best : best + 1], codes[best : best + 1]
    numbers = np.array([block.number for block in space.layout.blocks])
    starts = np.array([block.start for block in space.layout.blocks])
    for step in range(MOVES):
        slope = ascent(space.points(space.positions(value, code)), omega, left)[:, starts] * numbers
        length = float(np.sqrt(np.square(slope).sum()))
        if length == 0:
            break
        value = np.clip(value + slope / length * space.width * 0.5 * (1 - step / MOVES), -1, 1)
    return value, code


def fitted(basis: FloatArray, wanted: FloatArray) -> FloatArray:
    """Least-squares weights of the basis vectors (columns)."""
    gram = basis.T @ basis
    return np.asarray(np.linalg.solve(gram + RIDGE * np.eye(len(gram)), basis.T @ wanted))
