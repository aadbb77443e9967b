"""Bins of one column: its labels, equal parts of its range, or parts that hold about equally many rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_rows import RowsAtHand

FAN_OUT = 16
"""Parts that a heavy part of a range is cut into at each pass."""
MAX_PASSES = 3
FEW_VALUES = 24
"""Values of a column up to which no look is taken."""
HEAVY_STDS = 2.5
"""Standard deviations of its noise that a part's count must exceed to be cut further."""
OWN_BIN_SHARE = 0.7
"""Fraction of a bin's rows that is enough for a part to have a bin of its own."""
CELLS = 16
"""Equal parts of a range that coarse questions are about where more cells are declared."""
MAX_WIDTH_RATIO = 4
"""Ratio of widths from which parts are not joined."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """Noisy counts of consecutive parts of a column's range, paid for."""

    edges: IntArray
    """First slot of every part, and one past the last."""
    counts: IntArray
    std: float
    """Of their noise."""


@dataclass(frozen=True, kw_only=True)
class Bins:
    """One column's slots, gathered into consecutive bins; missing values have a bin of their own, the last."""

    axis: Axis
    """The column's slots at full resolution."""
    edges: IntArray
    """First slot of every bin, and one past the last."""
    spikes: FloatArray | None = None
    """For each bin the position of the one value that it stands for, not a number where it stands for a range; None
    where all do."""

    @classmethod
    def equal(cls, column: Column, bins: int | None) -> Bins:
        """The column's own cells, or so many equal parts of a numeric one."""
        axis = Axis.coarse(column, bins)
        return cls(axis=axis, edges=np.arange(axis.slots + 1))

    @property
    def size(self) -> int:
        """Number of bins, the missing one included."""
        return len(self.edges) - 1 + (self.axis.missing is not None)

    @property
    def ordered(self) -> bool:
        """Whether neighbouring bins are neighbours in meaning."""
        return self.axis.column.is_numeric or self.axis.column.kind == "ordinal"

    @property
    def widths(self) -> FloatArray:
        """Slots in each bin, without the missing one."""
        return np.diff(self.edges).astype(np.float64)

    def cell_edges(self, max_cells: int) -> IntArray:
        """Where the cells that the column is declared with begin, or so many equal parts of its range; public."""
        cells = min(self.axis.column.levels, max_cells)
        return -(-np.arange(1, cells) * self.axis.slots // cells)

    def overlap(self, edges: IntArray) -> FloatArray:
        """For each part between these edges the fraction of every bin that lies in it, the missing one included."""
        starts = np.maximum(edges[:-1, None], self.edges[:-1])
        ends = np.minimum(edges[1:, None], self.edges[1:])
        within = np.zeros((len(edges) - 1, self.size))
        within[:, : len(self.widths)] = np.maximum(ends - starts, 0) / self.widths
        return within

    def codes(self, rows: RowsAtHand) -> IntArray:
        """Each row's bin: private."""
        return self.of_slot[self.axis.locate(rows)]

    @cached_property
    def of_slot(self) -> IntArray:
        """The bin of every slot, the missing one included."""
        return np.searchsorted(self.edges, np.arange(self.axis.size), side="right").astype(np.int64) - 1

    def gather(self, slots: IntArray) -> IntArray:
        """Rows in each bin from the rows in each slot."""
        gathered = np.zeros(self.size, dtype=np.int64)
        np.add.at(gathered, self.of_slot, slots)
        return gathered

    def place(self, codes: IntArray, noise: Noise, *, centre: bool) -> Positions:
        edges = self.edges if self.axis.missing is None else np.append(self.edges, self.axis.size)
        placed = self.axis.place(edges[:-1], edges[1:], codes, noise.uniform, centre=centre)
        if self.spikes is None:
            return placed
        values, spike = placed.values.copy(), self.spikes[codes]
        values[~np.isnan(spike)] = spike[~np.isnan(spike)]
        return replace(placed, values=values)


@dataclass(frozen=True, kw_only=True)
class FoundBins:
    """A column's bins, and the looks that found them, if any was taken."""

    bins: Bins
    looks: tuple[Look, ...] = ()


def passes_needed(column: Column, bins: int) -> int:
    """How many noisy histograms it takes to find good bins: none where there are few values, and each has its own."""
    if not column.is_numeric:
        return 0
    slots = Axis.fine(column).slots
    if slots <= min(bins, FEW_VALUES):
        return 0
    return max(1, min(MAX_PASSES, math.ceil(math.log(slots, FAN_OUT) - 1e-9) - 1))


def starting_axis(column: Column, bins: int) -> Axis:
    """The slots at which a column is counted: as fine as can be where bins are to be found, else its bins."""
    return Axis.fine(column) if passes_needed(column, bins) else Axis.coarse(column, bins)


def adaptive_bins(
    slots: IntArray,
    n: int,
    column: Column,
    measure: Callable[[IntArray], tuple[IntArray, float]],
    *,
    bins: int,
    passes: int,
    keep_cells: bool = False,
) -> FoundBins:
    """About ``bins`` bins of about equal noisy mass, narrow where rows crowd, and the looks that found them.

    ``slots`` holds the rows in each slot of the column's finest axis: private. ``n`` is the number of all rows.

    Each pass measures the parts so far, with ``measure`` returning noisy counts and the standard deviation of their
    noise; heavy parts are cut into sixteen for the next pass. The number of passes is public, every pass is a histogram
    (a replaced row leaves one part and enters another), and only noisy counts decide. With ``keep_cells``, bins are
    also cut where one of sixteen equal parts of the range begins, which the first pass has counted.
    """
    axis = Axis.fine(column)
    below = np.insert(np.cumsum(slots[: axis.slots]), 0, 0)
    edges = _cut(np.array([0, axis.slots], dtype=np.int64), np.array([True]))
    looks: list[Look] = []
    for turn in range(passes):
        counts = np.diff(below[edges]).astype(np.int64)
        noisy, std = measure(counts)
        looks.append(Look(edges=edges, counts=noisy, std=std))
        if turn + 1 < passes:
            edges = _cut(edges, noisy > max(HEAVY_STDS * std, n / bins))
    mass = np.maximum(noisy, 0).astype(np.float64)
    # Noise that outweighs the rows must not ask for more bins than there are rows to fill.
    mass *= min(1.0, n / max(mass.sum(), 1.0))
    found = _equal_mass(edges, mass, n / bins)
    if keep_cells:
        found = np.union1d(found, Bins(axis=axis, edges=found).cell_edges(CELLS))
    return FoundBins(bins=Bins(axis=axis, edges=found), looks=tuple(looks))


def _cut(edges: IntArray, heavy: BoolArray) -> IntArray:
    """Every heavy part cut into sixteen, or into its slots if it has fewer."""
    widths = np.diff(edges)
    pieces = np.where(heavy, np.minimum(widths, FAN_OUT), 1)
    finer = [start + np.arange(k) * width // k for start, width, k in zip(edges[:-1], widths, pieces, strict=True)]
    return np.append(np.concatenate(finer), edges[-1]).astype(np.int64)


def _equal_mass(edges: IntArray, mass: FloatArray, rows_per_bin: float) -> IntArray:
    """Light parts joined until they fill a bin, parts that fill several cut evenly.

    Parts of very different width are never joined: the narrow ones come from where rows crowd, and what they hold must
    not be spread over an empty stretch.
    """
    out, gathered, previous = [int(edges[0])], 0.0, int(edges[1] - edges[0])
    for start, end, rows in zip(edges[:-1].tolist(), edges[1:].tolist(), mass.tolist(), strict=True):
        width = end - start
        if not previous / MAX_WIDTH_RATIO < width < previous * MAX_WIDTH_RATIO:
            out.append(start)
            gathered = 0.0
        previous = width
        if rows < rows_per_bin * OWN_BIN_SHARE:
            gathered += rows
            if gathered >= rows_per_bin:
                out.append(end)
                gathered = 0.0
            continue
        pieces = min(width, max(1, round(rows / rows_per_bin)))
        out += [start + width * piece // pieces for piece in range(pieces + 1)]
        gathered = 0.0
    return np.unique([*out, int(edges[-1])]).astype(np.int64)
