"""Workloads: families of counting queries on a full histogram, asked about one at a time.

A query's answer is a vector of counts. Replacing a row changes the answer of a marginal by at most 2 in L1 (one count
down, one up) and that of a range by at most 1 (the row is inside or it is not).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.sweep_time import seconds_to_sweep

MAX_QUERIES = 2_000_000
"""Beyond this a workload is refused: every query is scored in every round."""
MAX_LISTED_CELLS, MAX_LISTED = 4096, 2**21
"""Cells, and cells times queries, up to which it is listed which count each cell belongs to: faster for small
histograms of many short axes, slower for large ones."""
SECONDS_PER_LISTED_COUNT = 5.6e-9
"""Adding one cell to the count that it is listed under, and changing it by that count's factor."""
SECONDS_PER_CELL_OF_BOX = 2.1e-9
"""Adding up a box, changing it, and bringing the whole histogram back to its number of rows, for each cell of that."""


class Workload(ABC):
    sensitivity: ClassVar[int]
    """Most that one replaced row can change any one query's answer, in L1."""
    partitions: ClassVar[bool]
    """Whether a query's counts hold every cell exactly once."""
    shape: tuple[int, ...]

    @property
    @abstractmethod
    def sizes(self) -> IntArray:
        """Counts in each query's answer."""

    @abstractmethod
    def norms(self, difference: FloatArray) -> FloatArray:
        """For each query, the L1 norm of its answer on a difference of histograms."""

    @abstractmethod
    def answer(self, histogram: NDArray[Any], query: int) -> NDArray[Any]:
        """One query's counts, flat."""

    @abstractmethod
    def scale(self, histogram: FloatArray, query: int, factors: FloatArray) -> None:
        """Multiply, in place, the cells behind each of a query's counts by its factor."""

    @property
    @abstractmethod
    def seconds_to_update(self) -> float:
        """To answer one query and change the cells behind it, on average."""

    @property
    @abstractmethod
    def seconds_to_score(self) -> float:
        """To compute all norms once."""

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, kw_only=True)
class MarginalWorkload(Workload):
    """Each query is a marginal: the counts over every combination of values of a set of columns."""

    sensitivity: ClassVar[int] = 2
    partitions: ClassVar[bool] = True

    shape: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    """The axes of each marginal, in ascending order."""

    @cached_property
    def sizes(self) -> IntArray:
        return np.array([math.prod(self.shape[axis] for axis in axes) for axes in self.sets], dtype=np.int64)

    @cached_property
    def _count_of_cell(self) -> NDArray[np.intp] | None:
        """For each query, the index of the count that each cell belongs to; None if there are too many cells."""
        if not self._is_listed:
            return None
        cells = np.indices(self.shape).reshape(len(self.shape), -1)
        return np.stack(
            [np.ravel_multi_index(cells[list(axes)], [self.shape[axis] for axis in axes]) for axes in self.sets]
        )

    @property
    def _is_listed(self) -> bool:
        size = math.prod(self.shape)
        return size <= MAX_LISTED_CELLS and size * len(self.sets) <= MAX_LISTED

    @property
    def seconds_to_update(self) -> float:
        if self._is_listed:
            return math.prod(self.shape) * SECONDS_PER_LISTED_COUNT
        return fmean(seconds_to_sweep(self.shape, axes) for axes in self.sets)

    @property
    def seconds_to_score(self) -> float:
        return len(self.sets) * self.seconds_to_update

    def norms(self, difference: FloatArray) -> FloatArray:
        listed = self._count_of_cell
        if listed is None:
            return np.array([np.abs(self.answer(difference, query)).sum() for query in range(len(self.sets))])
        starts = np.cumsum(self.sizes) - self.sizes
        every = np.broadcast_to(difference.ravel(), listed.shape).ravel()
        counts = np.bincount((listed + starts[:, None]).ravel(), weights=every, minlength=int(self.sizes.sum()))
        return np.asarray(np.add.reduceat(np.abs(counts), starts), dtype=np.float64)

    def answer(self, histogram: NDArray[Any], query: int) -> NDArray[Any]:
        if self._count_of_cell is not None:
            counts = np.bincount(self._count_of_cell[query], weights=histogram.ravel(), minlength=self.sizes[query])
            return counts.astype(histogram.dtype, copy=False)
        others = tuple(axis for axis in range(len(self.shape)) if axis not in self.sets[query])
        return np.asarray(histogram.sum(axis=others)).ravel()

    def scale(self, histogram: FloatArray, query: int, factors: FloatArray) -> None:
        if self._count_of_cell is not None:
            histogram *= factors[self._count_of_cell[query]].reshape(self.shape)
            return
        axes = self.sets[query]
        histogram *= factors.reshape([size if axis in axes else 1 for axis, size in enumerate(self.shape)])


class OneCountWorkload(Workload):
    """Each query counts the rows in one set of cells: a replaced row is inside it or not."""

    sensitivity: ClassVar[int] = 1
    partitions: ClassVar[bool] = False

    @abstractmethod
    def cells(self, histogram: NDArray[Any], query: int) -> NDArray[Any]:
        """A view of the cells that a query adds up."""

    @property
    def seconds_to_update(self) -> float:
        return math.prod(self.shape) * SECONDS_PER_CELL_OF_BOX

    @property
    def seconds_to_score(self) -> float:
        """Differences of cumulated sums, which is nothing beside selecting among them."""
        return 0.0

    def answer(self, histogram: NDArray[Any], query: int) -> NDArray[Any]:
        return np.atleast_1d(self.cells(histogram, query).sum())

    def scale(self, histogram: FloatArray, query: int, factors: FloatArray) -> None:
        self.cells(histogram, query)[...] *= factors[0]


@dataclass(frozen=True, kw_only=True)
class RangeWorkload(OneCountWorkload):
    """Each query counts one box: a range of every column of a set (halves, quarters, ..., or one label)."""

    shape: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    """The axes of each group of boxes, in ascending order."""
    cuts: tuple[tuple[tuple[int, int], ...], ...]
    """The ranges [from, to) of each axis; the first is the whole axis."""

    @classmethod
    def of(cls, axes: Sequence[Axis], sets: tuple[tuple[int, ...], ...]) -> RangeWorkload:
        cuts = tuple(_ranges(axis) for axis in axes)
        _check_queries(sum(math.prod(len(cuts[axis]) for axis in group) - 1 for group in sets))
        return cls(shape=tuple(axis.size for axis in axes), sets=sets, cuts=cuts)

    @cached_property
    def boxes(self) -> list[dict[int, tuple[int, int]]]:
        """The range on each axis of every query; whole axes are left out, and so is the box that holds everything."""
        return [
            {axis: cut for axis, cut in zip(group, chosen, strict=True) if cut != (0, self.shape[axis])}
            for group in self.sets
            for chosen in list(product(*(self.cuts[axis] for axis in group)))[1:]
        ]

    @cached_property
    def sizes(self) -> IntArray:
        return np.ones(len(self.boxes), dtype=np.int64)

    def norms(self, difference: FloatArray) -> FloatArray:
        """Of every box, by sums along one axis after the other."""
        norms = []
        for group in self.sets:
            sums = difference.sum(axis=tuple(axis for axis in range(difference.ndim) if axis not in group))
            for i, axis in enumerate(group):
                cumulated = np.insert(np.cumsum(sums, axis=i), 0, 0.0, axis=i)
                low, high = np.array(self.cuts[axis]).T
                sums = cumulated.take(high, axis=i) - cumulated.take(low, axis=i)
            norms.append(np.abs(sums).ravel()[1:])
        return np.concatenate(norms)

    def cells(self, histogram: NDArray[Any], query: int) -> NDArray[Any]:
        box = self.boxes[query]
        return histogram[tuple(slice(*box.get(axis, (None, None))) for axis in range(len(self.shape)))]


@dataclass(frozen=True, kw_only=True)
class IntervalWorkload(OneCountWorkload):
    """Each query counts a run of consecutive cells of the flattened histogram, as in Montoya Perez et al. (2024)."""

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        cells = math.prod(self.shape)
        _check_queries(cells * (cells + 1) // 2)

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """First cell of every run and one past the last, without the run that holds everything."""
        cells = math.prod(self.shape)
        low, high = np.triu_indices(cells + 1, k=1)
        partial = (high - low < cells) | (cells == 1)
        return low[partial], high[partial]

    @cached_property
    def sizes(self) -> IntArray:
        return np.ones(len(self.ends[0]), dtype=np.int64)

    def norms(self, difference: FloatArray) -> FloatArray:
        sums = np.insert(np.cumsum(difference), 0, 0.0)
        low, high = self.ends
        return np.abs(sums[high] - sums[low])

    def cells(self, histogram: NDArray[Any], query: int) -> NDArray[Any]:
        low, high = self.ends
        return histogram.reshape(-1)[low[query] : high[query]]


def _check_queries(queries: int) -> None:
    if queries > MAX_QUERIES:
        raise ParameterError(
            "workload",
            f"{queries:,} queries",
            allowed=f"at most {MAX_QUERIES:,} queries",
            remedy="Use fewer bins, a lower order, or the workload of marginals.",
        )


def _ranges(axis: Axis) -> tuple[tuple[int, int], ...]:
    """The whole axis first, then halves, quarters, ... of a numeric one and each label of another; missing alone."""
    ranges, slots = [(0, axis.size)], axis.slots
    parts = 1 if axis.column.is_numeric else slots
    while parts <= slots:
        ranges += [(part * slots // parts, (part + 1) * slots // parts) for part in range(parts)]
        parts *= 2
    if axis.column.is_numeric:
        ranges += [(slot, slot + 1) for slot in range(slots)]
    if axis.missing is not None:
        ranges.append((axis.missing, axis.missing + 1))
    return tuple(dict.fromkeys(ranges))
