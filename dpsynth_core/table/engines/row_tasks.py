"""What is added up in one pass over the rows: whole numbers, so that batches and partitions can be merged in any order.

A task starts an accumulator, to which batches are added. What it holds is a list of arrays of numbers, which travels
between processes: never as anything that could be executed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import IntArray
from dpsynth_core.table.counts import KEY_LIMIT, unfold_keys
from dpsynth_core.table.engines.row_batch import RowBatch
from dpsynth_core.table.estimate import count_range
from dpsynth_core.table.private_rows import CellCounts, CellMap, Summand

MAX_DENSE_CELLS = 2**22 + 1
"""Cells up to which every count is held, occupied or not."""
MIN_MERGED = 2**20
"""Keys that are gathered before they are merged."""

Packed: TypeAlias = list[NDArray[Any]]


class Accumulator(Protocol):
    """What a pass has added up so far."""

    def add(self, batch: RowBatch) -> None:
        """The rows of one more batch."""

    def pack(self) -> Packed:
        """All that it holds."""

    def absorb(self, packed: Packed) -> None:
        """What another accumulator of the same task holds."""


class RowTask(Protocol):
    """One pass."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Which columns must be read."""

    @property
    def by_position(self) -> bool:
        """Whether it must know which rows of the table a batch holds, and not only what they hold."""

    def start(self) -> Accumulator:
        """For no rows yet."""


class VectorSum:
    """A vector of whole numbers, added up."""

    def __init__(self, total_of: Callable[[RowBatch], IntArray]) -> None:
        self._total_of = total_of
        self._total: Packed = []

    def add(self, batch: RowBatch) -> None:
        self.absorb([self._total_of(batch)])

    def pack(self) -> Packed:
        return self._total

    def absorb(self, packed: Packed) -> None:
        if packed:
            self._total = [self._total[0] + packed[0]] if self._total else list(packed)


@dataclass(frozen=True, kw_only=True)
class SumTask:
    """A sum over all rows."""

    by_position: ClassVar[bool] = False
    summand: Summand

    @property
    def columns(self) -> tuple[str, ...]:
        return self.summand.columns

    def start(self) -> VectorSum:
        return VectorSum(self.summand.total)


@dataclass(frozen=True, kw_only=True)
class ReadTask:
    """Nothing but that every row can be read: how many there are is counted in every pass."""

    by_position: ClassVar[bool] = False
    columns: tuple[str, ...]

    def start(self) -> VectorSum:
        return VectorSum(lambda _: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class RangeTask:
    """A column's cells by bin of a range estimate, whatever is declared about it."""

    by_position: ClassVar[bool] = False
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def start(self) -> VectorSum:
        return VectorSum(lambda batch: count_range(batch.cells[self.column], batch.layout).counts)


class TakenRows:
    """For each column an array of positions and one of what is missing, behind the ordinals of the rows."""

    def __init__(self, task: TakeTask) -> None:
        self._task = task
        self._parts: list[Packed] = []

    def add(self, batch: RowBatch) -> None:
        rows, chosen = self._task.rows, np.arange(batch.n)
        if rows is not None:
            begin, end = np.searchsorted(rows, [batch.first, batch.first + batch.n])
            chosen = rows[begin:end] - batch.first
        if not len(chosen):
            return
        taken: Packed = [chosen + batch.first]
        for name in self._task.columns:
            positions = batch.positions(name)
            missing = np.zeros(0, dtype=np.bool_) if positions.missing is None else positions.missing[chosen]
            taken += [positions.values[chosen], missing]
        self._parts.append(taken)

    def pack(self) -> Packed:
        return [np.concatenate(arrays) for arrays in zip(*self._parts, strict=True)]

    def absorb(self, packed: Packed) -> None:
        if packed:
            self._parts.append(packed)


@dataclass(frozen=True, kw_only=True)
class TakeTask:
    """The positions of chosen rows in every column."""

    by_position: ClassVar[bool] = True
    columns: tuple[str, ...]
    rows: IntArray | None
    """Ordinals, in order; None for all."""

    def start(self) -> TakenRows:
        return TakenRows(self)


@dataclass(frozen=True, kw_only=True)
class HistogramTask:
    """Rows by cell for several sets of directions."""

    by_position: ClassVar[bool] = False
    sets: tuple[tuple[CellMap, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for maps in self.sets for each in maps for name in each.columns))

    def start(self) -> CountedSets:
        return CountedSets(self.sets)


class CountedSets:
    """One counter for each set."""

    def __init__(self, sets: tuple[tuple[CellMap, ...], ...]) -> None:
        self._sets = sets
        self._counters = [CellCounter([each.size for each in maps]) for maps in sets]

    def add(self, batch: RowBatch) -> None:
        located: dict[int, IntArray] = {}
        narrow: dict[int, NDArray[np.int32]] = {}
        for maps, counter in zip(self._sets, self._counters, strict=True):
            for each in maps:
                if id(each) not in located:
                    located[id(each)] = each.locate(batch)
                if counter.is_dense and id(each) not in narrow:
                    narrow[id(each)] = located[id(each)].astype(np.int32)
            if counter.is_dense:
                counter.add_narrow([narrow[id(each)] for each in maps])
            else:
                counter.add([located[id(each)] for each in maps])

    def pack(self) -> Packed:
        return [array for counter in self._counters for array in counter.pack()]

    def absorb(self, packed: Packed) -> None:
        for i, counter in enumerate(self._counters):
            counter.absorb(packed[2 * i], packed[2 * i + 1])

    def counts(self) -> list[CellCounts]:
        """What ``histograms`` returns."""
        return [counter.cells() for counter in self._counters]


class CellCounter:
    """Counts of one set of directions: of every cell where they are few, else of the occupied ones.

    Keys have a line for each word of up to 62 bits, so any number of directions works.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self._shape = tuple(shape)
        self._words = _words(self._shape)
        cells = math.prod(self._shape)
        self._every = np.zeros(cells, dtype=np.int64) if cells <= MAX_DENSE_CELLS else None
        self._keys = np.zeros((len(self._words), 0), dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)
        self._waiting: list[tuple[IntArray, IntArray]] = []

    @property
    def is_dense(self) -> bool:
        """Whether every cell's count is held."""
        return self._every is not None

    def add_narrow(self, codes: Sequence[NDArray[np.int32]]) -> None:
        """As ``add``, where every cell's count is held: up to three directions without an array in between."""
        from dpsynth_core.table.cell_loops import add_keys, add_pairs, add_triples  # noqa: PLC0415  loads the compiler

        if self._every is None or len(codes) > 3:
            self.add([column.astype(np.int64) for column in codes])
        elif len(codes) == 3:
            add_triples(self._every, codes[0], codes[1], codes[2], (self._shape[1], self._shape[2]))
        elif len(codes) == 2:
            add_pairs(self._every, codes[0], codes[1], self._shape[1])
        else:
            add_keys(self._every, codes[0])

    def add(self, codes: Sequence[IntArray]) -> None:
        keys = [_folded([codes[i] for i in word], [self._shape[i] for i in word]) for word in self._words]
        if self._every is not None:
            from dpsynth_core.table.cell_loops import add_keys  # noqa: PLC0415  loads the compiler

            add_keys(self._every, keys[0])
            return
        self._wait(*_gathered(np.stack(keys), np.ones(len(keys[0]), dtype=np.int64)))

    def _wait(self, keys: IntArray, counts: IntArray) -> None:
        self._waiting.append((keys, counts))
        # What waits grows as long as what is settled, so that every key is sorted a few times only.
        if sum(len(counts) for _, counts in self._waiting) > max(len(self._counts), MIN_MERGED):
            self._settle()

    def _settle(self) -> None:
        parts = [(self._keys, self._counts), *self._waiting]
        self._waiting = []
        keys, counts = zip(*parts, strict=True)
        self._keys, self._counts = _gathered(np.concatenate(keys, axis=1), np.concatenate(counts))

    def pack(self) -> Packed:
        """Occupied cells only: what travels is not longer than it must be."""
        if self._every is not None:
            occupied = np.flatnonzero(self._every)
            return [occupied[None, :], self._every[occupied]]
        self._settle()
        return [self._keys, self._counts]

    def absorb(self, keys: IntArray, counts: IntArray) -> None:
        if self._every is not None:
            self._every[keys[0]] += counts
        else:
            self._wait(keys, counts)

    def cells(self) -> CellCounts:
        keys, counts = self.pack()
        parts = [unfold_keys(key, [self._shape[i] for i in word]) for key, word in zip(keys, self._words, strict=True)]
        return np.concatenate(parts, axis=1), counts


def _words(shape: tuple[int, ...]) -> list[list[int]]:
    """Directions that fit into one key of 62 bits together."""
    words: list[list[int]] = [[]]
    span = 1
    for i, size in enumerate(shape):
        if words[-1] and span * size > KEY_LIMIT:
            words.append([])
            span = 1
        words[-1].append(i)
        span *= size
    return words


def _folded(codes: Sequence[IntArray], shape: Sequence[int]) -> IntArray:
    key = codes[0]
    for column, size in zip(codes[1:], shape[1:], strict=True):
        key = key * size
        key += column
    return key


def _gathered(keys: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Each different key once, in order, with the sum of its counts."""
    if not keys.shape[1]:
        return keys, counts
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    keys, counts = keys[:, order], counts[order]
    first = np.append(0, np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1)
    return keys[:, first], np.add.reduceat(counts, first)
