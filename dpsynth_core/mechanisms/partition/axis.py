"""One column as an axis: a row of slots that can be cut into ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_rows import RowsAtHand

MAX_SLOT_BITS = 16
"""A numeric axis is cut into at most 2 ** 16 slots; placement inside a slot is continuous all the same."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A column cut into ``slots`` consecutive parts of (nearly) equal width, one per label for labels.

    If the column is nullable, one more slot at the end holds the missing values.
    """

    column: Column
    slots: int
    """Parts of the range, or labels; without the missing slot."""

    @classmethod
    def coarse(cls, column: Column, bins: int | None = None) -> Axis:
        """The column's own cells, or another number of bins for a numeric one."""
        if bins is None or not column.is_numeric:
            return cls(column=column, slots=column.levels)
        return cls(column=column, slots=min(bins, _points(column) or bins))

    @classmethod
    def fine(cls, column: Column, bits: int = MAX_SLOT_BITS) -> Axis:
        """As many slots as the values can tell apart, up to 2 ** ``bits``."""
        return cls.coarse(column, 2**bits)

    @property
    def size(self) -> int:
        """Number of slots, the missing one included."""
        return self.slots + self.column.nullable

    @property
    def missing(self) -> int | None:
        """Index of the missing slot, if there is one."""
        return self.slots if self.column.nullable else None

    @cached_property
    def _edges(self) -> IntArray | None:
        """First lattice point of each slot and one past the last; None where slots are labels, points or reals."""
        points = _points(self.column)
        if points is None or points == self.slots:
            return None
        return np.array([-(-i * points // self.slots) for i in range(self.slots + 1)], dtype=np.int64)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    def locate(self, rows: RowsAtHand) -> IntArray:
        positions = rows.positions(self.column.name)
        values = positions.values
        if self.column.is_numeric and self.column.lattice is None:
            from dpsynth_core.mechanisms.partition.loops import real_slots  # noqa: PLC0415  loads the compiler

            slot = real_slots(values.astype(np.float64, copy=False), *self._bounds, self.slots)
        elif self._edges is not None:
            slot = np.searchsorted(self._edges, values, side="right").astype(np.int64) - 1
        else:
            slot = values.astype(np.int64)
        return slot if positions.missing is None else np.where(positions.missing, self.slots, slot)

    def cells(self, rows: RowsAtHand, of_slot: IntArray) -> IntArray:
        """The cell that each row's slot belongs to: ``of_slot[locate(rows)]``."""
        positions = rows.positions(self.column.name)
        if self.column.is_numeric and self.column.lattice is None and positions.missing is None:
            from dpsynth_core.mechanisms.partition.loops import real_cells  # noqa: PLC0415  loads the compiler

            return real_cells(positions.values.astype(np.float64, copy=False), *self._bounds, of_slot)
        return of_slot[self.locate(rows)]

    def add_bits(self, code: IntArray, bits: IntArray, rows: RowsAtHand) -> None:
        """Set in each row's code the bits that are given for its slot."""
        positions = rows.positions(self.column.name)
        if self.column.is_numeric and self.column.lattice is None and positions.missing is None:
            from dpsynth_core.mechanisms.partition.loops import add_real_bits  # noqa: PLC0415  loads the compiler

            add_real_bits(code, bits, positions.values.astype(np.float64, copy=False), *self._bounds)
        else:
            code |= bits[self.locate(rows)]

    @property
    def _bounds(self) -> tuple[float, float]:
        return float(self.column.lower), float(self.column.upper)  # type: ignore[arg-type]

    def place(
        self, low: IntArray, high: IntArray, box: IntArray, uniform: Callable[[int], FloatArray], *, centre: bool
    ) -> Positions:
        """A position for each row inside its box's range of slots [low, high), at the middle or anywhere.

        A range that holds the missing slot among others gives it the share of one slot. Labels have no middle, so a
        range of several is always drawn from.
        """
        return self.placing(low, high, box, uniform, centre=centre)()

    def placing(
        self, low: IntArray, high: IntArray, box: IntArray, uniform: Callable[[int], FloatArray], *, centre: bool
    ) -> Callable[[], Positions]:
        """As ``place``: draws at once, in this order, and leaves the arithmetic for later or for another core."""
        if self.missing is None:
            return partial(self._positions, self._within(low, high, box, uniform, centre=centre), None)
        share = np.where(high > self.missing, 1.0 / np.maximum(high - low, 1), 0.0)
        missing = partial(_below, uniform(len(box)), share, box)
        inside = np.minimum(high, self.missing)
        # A range that is nothing but the missing slot has no values; any position will do.
        start = np.minimum(low, inside - 1)
        return partial(self._positions, self._within(start, inside, box, uniform, centre=centre), missing)

    @staticmethod
    def _positions(values: Callable[[], FloatArray | IntArray], missing: Callable[[], BoolArray] | None) -> Positions:
        return Positions(values=values(), missing=None if missing is None else missing())

    def _within(
        self, low: IntArray, high: IntArray, box: IntArray, uniform: Callable[[int], FloatArray], *, centre: bool
    ) -> Callable[[], FloatArray | IntArray]:
        # Arithmetic by box first and by row last: there are far fewer boxes than rows.
        if self.column.is_numeric and self.column.lattice is None:
            bottom, top = self._bounds
            step = np.float64((top - bottom) / self.slots)
            if centre:
                return partial(np.take, bottom + (low + high) / 2 * step, box)
            from dpsynth_core.mechanisms.partition.loops import stretched  # noqa: PLC0415  loads the compiler

            return partial(stretched, uniform(len(box)), (high - low) * step, bottom + low * step, top, box)
        first, last = (low, high) if self._edges is None else (self._edges[low], self._edges[high])
        width = last - first
        if centre and self.column.is_numeric:
            return partial(np.take, first + (width - 1) // 2, box)
        if (width == 1).all():
            return partial(np.take, first, box)
        return partial(_counted, uniform(len(box)), width, first, box)

    def extent(self, low: int, high: int) -> tuple[Fraction, Fraction]:
        """Of the numbers in a range of slots: the first, and one past the last or the range's end."""
        points = self.column.lattice
        if points is None:
            bottom, top = (Fraction(bound) for bound in self._bounds)
            step = (top - bottom) / self.slots
            return bottom + low * step, bottom + high * step
        first, last = (low, high) if self._edges is None else (int(self._edges[low]), int(self._edges[high]))
        return Fraction(points[0] + first), Fraction(points[0] + last)

    def describe(self, low: int, high: int) -> tuple[object, object]:
        """First and last value of a range of slots, for people."""
        if self.missing is not None and low >= self.missing:
            return None, None
        high = high if self.missing is None else min(high, self.missing)
        if not self.column.is_numeric:
            return self.column.labels[low], self.column.labels[high - 1]
        points = self.column.lattice
        if points is None:
            bottom, top = self._bounds
            return bottom + low / self.slots * (top - bottom), bottom + high / self.slots * (top - bottom)
        first, last = (low, high - 1) if self._edges is None else (int(self._edges[low]), int(self._edges[high]) - 1)
        if self.column.kind == "date":
            return date.fromordinal(points[0] + first), date.fromordinal(points[0] + last)
        if self.column.kind == "integer":
            return points[0] + first, points[0] + last
        step = 10.0 ** (self.column.decimals or 0)
        return (points[0] + first) / step, (points[0] + last) / step


def _points(column: Column) -> int | None:
    """How many different values the column has; None for a continuum."""
    if column.lattice is None:
        return None
    return column.lattice[1] - column.lattice[0] + 1


def _below(drawn: FloatArray, share: FloatArray, box: IntArray) -> BoolArray:
    return np.asarray(drawn < share[box], dtype=np.bool_)


def _counted(drawn: FloatArray, width: IntArray, first: IntArray, box: IntArray) -> IntArray:
    """Reals from [0, 1) as whole numbers of each row's range."""
    most = width[box]
    chosen = np.minimum((drawn * most).astype(np.int64), most - 1)
    return np.asarray(first[box] + chosen, dtype=np.int64)
