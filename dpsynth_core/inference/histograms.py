"""The histogram mechanisms as laws from tables of counts to tables of counts, for thousands of tables at once.

A law here draws what ``synthesize(...).sample()`` of the registered mechanism would, reduced to counts by cell:
tests compare the two. Simulation only; a release runs the mechanism itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.inference.dp_mann_whitney import discrete_laplace
from dpsynth_core.inference.mann_whitney import weighted_z
from dpsynth_core.inference.nuisance import Nuisance, from_noisy_counts, from_shares, from_smoothed_counts
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.partition.thresholds import spurious_threshold
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram, smoothing_constant
from dpsynth_core.privacy.budget import float_up
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY

CELLS_AT_ONCE = 32_768
"""Cells of all tables that are worked on together: they fit the processor's cache."""
HISTOGRAMS = (PerturbedHistogram, KDGrid, SmoothedHistogram)
"""Mechanisms whose releases are known by their counts."""
CUT = 1.5
"""A cell must stand out by this many times ln(cells) noise scales; see ``docs/proofs.md``, section 19."""


@dataclass(frozen=True, kw_only=True)
class GroupIndices:
    """Where to find the two groups and the values in a table of counts."""

    first: int = 0
    second: int = 1
    values: int
    """How many values there are, not counting the missing one at the end."""

    def of(self, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The two groups' counts by value."""
        return counts[:, self.first, : self.values], counts[:, self.second, : self.values]


@dataclass(frozen=True, kw_only=True)
class HistogramLaw(ABC):
    """What a histogram mechanism does to counts of shape (tables, groups, values)."""

    shape: tuple[int, int]
    """Groups and values, missing levels included."""
    n: int
    rows: int
    centre: bool
    """Whether rows lie at the middle of their cell, so that all rows of a cell are tied."""
    group_first: bool = True
    """Whether the group column comes before the value column in the schema."""
    threshold: int = 1
    """Smallest noisy count that is kept."""

    @abstractmethod
    def _run(self, counts: IntArray | FloatArray, rng: np.random.Generator) -> FloatArray:
        """Synthetic counts of tables that are flat in the schema's order."""

    def run(self, counts: IntArray | FloatArray, rng: np.random.Generator) -> FloatArray:
        out = np.empty(counts.shape)
        step = max(1, CELLS_AT_ONCE // math.prod(self.shape))
        for start in range(0, len(counts), step):
            part = counts[start : start + step]
            flat = (part if self.group_first else part.swapaxes(1, 2)).reshape(len(part), -1)
            drawn = self._run(flat, rng)
            drawn = drawn.reshape(-1, *(self.shape if self.group_first else self.shape[::-1]))
            out[start : start + step] = drawn if self.group_first else drawn.swapaxes(1, 2)
        return out

    @property
    def undoes_noise(self) -> bool:
        """Whether ``nuisance`` undoes what is known of the mechanism's distortion."""
        return True

    @abstractmethod
    def nuisance(self, released: FloatArray) -> Nuisance:
        """Group sizes and the common distribution under the null, estimated from released counts."""

    @abstractmethod
    def statistic(self, released: FloatArray, indices: GroupIndices) -> FloatArray:
        """How far apart the two groups are in each released table, seen past the mechanism's own distortion."""


@dataclass(frozen=True, kw_only=True)
class NoisyCounts(HistogramLaw):
    """Discrete Laplace noise on every cell; cells below a threshold are emptied; the rest is rescaled and rounded."""

    scale: float

    def _run(self, counts: IntArray | FloatArray, rng: np.random.Generator) -> FloatArray:
        ends = discrete_laplace(rng, self.scale, counts.shape)
        ends += counts
        if self.threshold == 1:
            np.maximum(ends, 0.0, out=ends)
        else:
            ends[ends < self.threshold] = 0.0
        np.cumsum(ends, axis=1, out=ends)
        empty = ends[:, -1] <= 0
        ends[empty] = 1.0
        # Systematic sampling, as PartitionModel does it: one uniform start, then equal steps.
        ends *= self.rows / ends[:, -1:]
        ends -= rng.random((len(ends), 1))
        np.minimum(np.ceil(ends, out=ends), self.rows, out=ends)
        ends[:, -1] = self.rows
        drawn = np.empty_like(ends)
        drawn[:, 0] = ends[:, 0]
        np.subtract(ends[:, 1:], ends[:, :-1], out=drawn[:, 1:])
        if empty.any():
            drawn[empty] = self._from_nothing(int(empty.sum()), rng)
        return drawn

    def _from_nothing(self, tables: int, rng: np.random.Generator) -> FloatArray:
        """Where no cell survives, the whole domain is one box: rows anywhere in it, or at the middle of the values."""
        groups, values = self.shape
        chances = np.zeros(self.shape)
        if self.centre:
            chances[:, values // 2] = 1 / groups
        else:
            chances[:] = 1 / (groups * values)
        flat = (chances if self.group_first else chances.T).ravel()
        return rng.multinomial(self.rows, flat, size=tables).astype(np.float64)

    @property
    def undoes_noise(self) -> bool:
        return self.threshold == 1

    def nuisance(self, released: FloatArray) -> Nuisance:
        """Undo the clipping's inflation where every positive count is kept; beyond that take shares as they are."""
        if self.threshold > 1:
            return from_shares(released, self.n)
        return from_noisy_counts(released, self.n, self.scale)

    def statistic(self, released: FloatArray, indices: GroupIndices) -> FloatArray:
        return weighted_z(*indices.of(released if self.threshold > 1 else self._standing_out(released)))

    def _standing_out(self, released: FloatArray) -> FloatArray:
        """Soft threshold on a cell's count over all groups, shared by the groups as released."""
        a = math.exp(-1 / self.scale)
        invented = math.prod(self.shape) * a / (1 - a * a)  # sum of E max(0, DLap) over the cells
        cut = CUT * math.log(self.shape[1]) * self.scale * self.rows / (self.n + invented)
        together = released.sum(axis=1, keepdims=True)
        return np.asarray(released * np.maximum(0.0, 1 - cut / np.maximum(together, 1e-300)))


@dataclass(frozen=True, kw_only=True)
class SmoothedCounts(HistogramLaw):
    """Rows drawn one by one with chances proportional to count + alpha."""

    alpha: float

    def _run(self, counts: IntArray | FloatArray, rng: np.random.Generator) -> FloatArray:
        chances = counts + self.alpha
        chances /= chances.sum(axis=1, keepdims=True)
        return rng.multinomial(self.rows, chances).astype(np.float64)

    def nuisance(self, released: FloatArray) -> Nuisance:
        return from_smoothed_counts(released, self.n, self.alpha)

    def statistic(self, released: FloatArray, indices: GroupIndices) -> FloatArray:
        """U - n1 n2 / 2 of the counts with the smoothing taken out, over its standard error.

        Smoothing draws a small group closer to the uniform law than a large one, so that groups of unequal size
        differ in the release even if they do not in the original. Unsmoothed counts are right on average, and U is a
        sum of products of the two groups' counts, so this difference is zero on average. The standard error is the
        delta method's: the released rows are independent draws, and each adds its slope.
        """
        step = (self.n + math.prod(self.shape) * self.alpha) / self.rows  # of an unsmoothed count, for one more row
        seen_first, seen_second = indices.of(released)
        first, second = seen_first * step - self.alpha, seen_second * step - self.alpha
        slope_first = np.cumsum(second, axis=-1) - second / 2 - second.sum(axis=-1, keepdims=True) / 2
        slope_second = first.sum(axis=-1, keepdims=True) / 2 - np.cumsum(first, axis=-1) + first / 2
        apart = _dot(first, slope_first)
        square = _dot(seen_first, slope_first**2) + _dot(seen_second, slope_second**2)
        mean = _dot(seen_first, slope_first) + _dot(seen_second, slope_second)
        error = step * np.sqrt(np.maximum(square - mean**2 / self.rows, 0.0))
        return np.where(error > 0, apart / np.where(error > 0, error, 1.0), 0.0)


def _dot(counts: FloatArray, slopes: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...i,...i->...", counts, slopes), dtype=np.float64)


def is_histogram(mechanism: object) -> TypeGuard[PerturbedHistogram | KDGrid | SmoothedHistogram]:
    """Whether a mechanism's releases are known by their counts: not where cells are chosen or share their rows."""
    return isinstance(mechanism, HISTOGRAMS) and not (isinstance(mechanism, KDGrid) and not mechanism.plain)


def law_of(
    mechanism: Mechanism, shape: tuple[int, int], n: int, epsilon: Fraction, *, group_first: bool = True
) -> HistogramLaw | None:
    """The law of a histogram mechanism on a table of a group and a value, epsilon per row; None for any other."""
    if not is_histogram(mechanism):
        return None
    rows, centre = mechanism.rows or n, mechanism.placement == "centre"
    table: dict[str, Any] = {"shape": shape, "n": n, "rows": rows, "centre": centre, "group_first": group_first}
    if isinstance(mechanism, SmoothedHistogram):
        alpha = smoothing_constant(epsilon, rows) if mechanism.smoothing == "tight" else 2 * rows / epsilon
        return SmoothedCounts(**table, alpha=float(alpha))
    scale, threshold = HISTOGRAM_SENSITIVITY / epsilon, 1
    if isinstance(mechanism, KDGrid):
        threshold = mechanism.threshold or spurious_threshold(math.prod(shape), n, scale)
    return NoisyCounts(**table, scale=float_up(Fraction(scale)), threshold=threshold)
