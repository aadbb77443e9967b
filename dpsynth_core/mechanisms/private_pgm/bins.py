"""Bins of one column: its labels, equal parts of its range, or parts that a noisy look found worth telling apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_table import PrivateTable

FAN = 16
"""Parts that a heavy part of a range is cut into at each look."""
MOST_LOOKS = 3
STANDS_OUT = 2.5
"""Standard deviations of its noise that a part's count must reach to be cut further."""

Look: TypeAlias = Callable[[IntArray], tuple[IntArray, float]]
"""Noisy counts and the standard deviation of their noise, for exact ones."""


@dataclass(frozen=True, kw_only=True)
class Bins:
    """One column's slots, gathered into consecutive bins; missing values have a bin of their own, the last."""

    axis: Axis
    """The column's slots at full resolution."""
    edges: IntArray
    """First slot of every bin, and one past the last."""

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

    def codes(self, table: PrivateTable) -> IntArray:
        """Each row's bin: private."""
        slots = self.axis.locate(table)
        return np.searchsorted(self.edges, slots, side="right").astype(np.int64) - 1

    def place(self, codes: IntArray, noise: Noise, *, centre: bool) -> Positions:
        """A position in each row's bin."""
        edges = self.edges if self.axis.missing is None else np.append(self.edges, self.axis.size)
        return self.axis.place(edges[:-1], edges[1:], codes, noise.uniform, centre=centre)


def looks_needed(column: Column, wanted: int) -> int:
    """How many noisy looks it takes to find good bins: none where every value can have its own."""
    if not column.is_numeric:
        return 0
    slots = Axis.fine(column).slots
    if slots <= wanted:
        return 0
    return max(1, min(MOST_LOOKS, math.ceil(math.log(slots, FAN) - 1e-9) - 1))


def found_bins(table: PrivateTable, column: Column, look: Look, *, wanted: int, looks: int) -> Bins:
    """Bins of about equal noisy mass, narrow where rows crowd.

    Each look counts the parts found so far with noise; heavy parts are cut into sixteen for the next. The number of
    looks is public, every look is a histogram (a replaced row leaves one part and enters another), and only noisy
    counts decide.
    """
    axis = Axis.fine(column)
    slots = axis.locate(table)
    inside = np.sort(slots[slots < axis.slots])
    edges = _cut(np.array([0, axis.slots], dtype=np.int64), np.array([True]))
    for step in range(looks):
        counts = np.diff(np.searchsorted(inside, edges)).astype(np.int64)
        noisy, deviation = look(counts)
        if step + 1 < looks:
            edges = _cut(edges, noisy > max(STANDS_OUT * deviation, table.n / wanted))
    mass = np.maximum(noisy, 0).astype(np.float64)
    # Noise that outweighs the rows must not ask for more bins than there are rows to fill.
    mass *= min(1.0, table.n / max(mass.sum(), 1.0))
    return Bins(axis=axis, edges=_even(edges, mass, table.n / wanted))


def _cut(edges: IntArray, heavy: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> IntArray:
    """Every heavy part cut into sixteen, or into its slots if it has fewer."""
    widths = np.diff(edges)
    finer = [
        start + np.arange(pieces) * width // pieces
        for start, width, pieces in zip(edges[:-1], widths, np.where(heavy, np.minimum(widths, FAN), 1), strict=True)
    ]
    return np.append(np.concatenate(finer), edges[-1]).astype(np.int64)


def _even(edges: IntArray, mass: FloatArray, share: float) -> IntArray:
    """Light parts joined until they hold a share, parts that hold several cut evenly.

    Parts of very different width are never joined: the narrow ones come from where rows crowd, and what they hold must
    not be spread over an empty stretch.
    """
    kept, gathered, before = [int(edges[0])], 0.0, int(edges[1] - edges[0])
    for start, end, rows in zip(edges[:-1].tolist(), edges[1:].tolist(), mass.tolist(), strict=True):
        if not before / UNLIKE < end - start < before * UNLIKE:
            kept.append(start)
            gathered = 0.0
        before = end - start
        if rows < share * LONE_SHARE:
            gathered += rows
            if gathered >= share:
                kept.append(end)
                gathered = 0.0
            continue
        pieces = min(end - start, max(1, round(rows / share)))
        kept += [start, *(start + (end - start) * piece // pieces for piece in range(1, pieces + 1))]
        gathered = 0.0
    return np.unique([*kept, int(edges[-1])]).astype(np.int64)


LONE_SHARE = 0.7
"""Part of a share that is enough for a bin of its own."""
UNLIKE = 4
"""Ratio of widths from which parts are not joined."""
