"""Bit-interleaved codes: every row as one integer whose leading bits say in which box it lies.

Each axis is halved again and again; the answers ("left" or "right"), taken in a fixed order over the axes, are the bits
of the code. A box of the tree is a prefix, and the rows inside it are an interval of the sorted codes. Labels and the
question whether a value is missing come first, then the numeric axes in turn (Kreačić et al., Algorithm 3, with
categories as branches).

Axes whose size is no power of two are halved as evenly as possible. Where a range cannot be halved any more, its
further bits are zero and mean nothing: such a box is passed on unchanged, without a decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms.partition.axis import MAX_SLOT_BITS, Axis
from dpsynth_core.table.private_rows import RowsAtHand
from dpsynth_core.table.schema import Schema

MAX_BITS = 62
"""Bits of a code: what an int64 holds with room for a leading one."""


class Halving:
    """How one axis is halved: the range of slots behind every string of bits."""

    def __init__(self, axis: Axis, bits: int) -> None:
        self.axis = axis
        self.bits = bits
        low, high = np.zeros(1, dtype=np.int64), np.full(1, axis.size, dtype=np.int64)
        self.low, self.high = [low], [high]
        """By depth: first slot and one past the last of every string of bits; equal where it means nothing."""
        self._single: dict[int, NDArray[np.bool_]] = {}
        for _ in range(bits):
            middle = np.where(high - low > 1, self._middle(low, high), high)
            low, high = np.stack([low, middle], 1).ravel(), np.stack([middle, high], 1).ravel()
            self.low.append(low)
            self.high.append(high)

    def _middle(self, low: IntArray, high: IntArray) -> IntArray:
        halves = low + (high - low + 1) // 2
        missing = self.axis.missing
        # The first question to a nullable column is whether there is a value at all.
        return halves if missing is None else np.where(high > missing, missing, halves)

    def real(self, depth: int) -> IntArray:
        """Strings of that many bits that mean something."""
        return np.flatnonzero(self.high[depth] > self.low[depth])

    def is_single(self, depth: int) -> NDArray[np.bool_]:
        """For every string of that many bits, whether its range cannot be halved."""
        if depth not in self._single:
            self._single[depth] = self.high[depth] - self.low[depth] <= 1
        return self._single[depth]

    @cached_property
    def strings(self) -> IntArray:
        """The full string of bits of every slot."""
        real = self.real(self.bits)
        # Deepest strings may still cover several slots; each slot belongs to the string whose range holds it.
        return real[np.searchsorted(self.low[self.bits][real], np.arange(self.axis.size), side="right") - 1]


@dataclass(frozen=True, kw_only=True)
class Coding:
    """The order in which axes are halved, and the codes that follow from it."""

    halvings: tuple[Halving, ...]
    """One per column, in the schema's order."""
    order: tuple[int, ...]
    """For each bit of the code, from the first, which axis it halves."""

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, schema: Schema) -> Coding:
        """Labels and missing flags first, then the numeric axes in turn, as deep as 62 bits allow."""
        axes = [Axis.fine(column) for column in schema]
        wanted = [_depth(axis) for axis in axes]
        numeric = [i for i, column in enumerate(schema) if column.is_numeric]
        labels = [i for i, column in enumerate(schema) if not column.is_numeric]
        flags = [i for i in numeric if axes[i].missing is not None]
        reserve = min(sum(wanted[i] for i in numeric), max(2 * len(numeric), MAX_BITS // 2), MAX_BITS - 2)
        given = [0] * len(axes)
        _deal(given, wanted, labels, MAX_BITS - reserve)
        order = [i for i in labels for _ in range(given[i])]
        room = MAX_BITS - len(order)
        _deal(given, [min(w, 1) for w in wanted], flags, room)
        order += [i for i in flags if given[i]]
        while len(order) < MAX_BITS and any(given[i] < wanted[i] for i in numeric):
            turn = [i for i in numeric if given[i] < wanted[i]][: MAX_BITS - len(order)]
            for i in turn:
                given[i] += 1
            order += turn
        halvings = tuple(Halving(axis, bits) for axis, bits in zip(axes, given, strict=True))
        return cls(halvings=halvings, order=tuple(order))

    @property
    def bits(self) -> int:
        return len(self.order)

    def taken(self, depth: int) -> list[int]:
        """How many of the first ``depth`` bits each axis has."""
        return [self.order[:depth].count(i) for i in range(len(self.halvings))]

    def parts(self, depth: int) -> tuple[int, ...]:
        """Into how many parts each axis is cut at a depth."""
        return tuple(len(h.real(k)) for h, k in zip(self.halvings, self.taken(depth), strict=True))

    def boxes(self, depth: int) -> int:
        """How many boxes there are at a depth, rows or not: public."""
        return math.prod(self.parts(depth))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(halving.axis.column.name for halving in self.halvings)

    def codes(self, rows: RowsAtHand) -> IntArray:
        """Every row's code, unsorted."""
        code = np.zeros(rows.n, dtype=np.int64)
        for halving, bits in zip(self.halvings, self._bits_of_slots, strict=True):
            halving.axis.add_bits(code, bits, rows)
        return code

    @cached_property
    def _bits_of_slots(self) -> tuple[IntArray, ...]:
        """For every axis, the bits of a code that each of its slots sets; simulations ask for them again and again."""
        return tuple(self._spread(i, each.strings, each.bits, self.bits) for i, each in enumerate(self.halvings))

    def _spread(self, axis: int, strings: IntArray, length: int, depth: int) -> IntArray:
        """The bits of an axis's strings at their places in a prefix of ``depth`` bits."""
        out = np.zeros(len(strings), dtype=np.int64)
        places = [place for place, owner in enumerate(self.order[:depth]) if owner == axis]
        for k, place in enumerate(places[:length]):
            out |= ((strings >> (length - 1 - k)) & 1) << (depth - 1 - place)
        return out

    def prefix(self, strings: list[IntArray], depth: int) -> IntArray:
        """Prefixes of ``depth`` bits from one string per axis."""
        taken = self.taken(depth)
        parts = [self._spread(i, s, taken[i], depth) for i, s in enumerate(strings)]
        return np.asarray(np.bitwise_or.reduce(parts), dtype=np.int64)

    def string(self, prefix: IntArray, axis: int, depth: int) -> IntArray:
        """The bits of one axis in prefixes of ``depth`` bits."""
        out = np.zeros(len(prefix), dtype=np.int64)
        for place, owner in enumerate(self.order[:depth]):
            if owner == axis:
                out = (out << 1) | ((prefix >> (depth - 1 - place)) & 1)
        return out

    def ranges(self, prefix: IntArray, depth: int) -> tuple[IntArray, IntArray]:
        """The box behind each prefix: first slot and one past the last, by axis."""
        taken = self.taken(depth)
        low = np.empty((len(prefix), len(self.halvings)), dtype=np.int64)
        high = np.empty_like(low)
        for i, halving in enumerate(self.halvings):
            string = self.string(prefix, i, depth)
            low[:, i], high[:, i] = halving.low[taken[i]][string], halving.high[taken[i]][string]
        return low, high

    def undecided(self, prefix: IntArray, depth: int) -> NDArray[np.bool_]:
        """For each prefix, whether its next bit is a real question."""
        axis = self.order[depth]
        single = self.halvings[axis].is_single(self.taken(depth)[axis])
        if not single.any():
            return np.ones(len(prefix), dtype=np.bool_)
        return ~single[self.string(prefix, axis, depth)]


def _depth(axis: Axis) -> int:
    """Bits needed to tell every slot of an axis from every other."""
    if axis.missing is None:
        return (axis.size - 1).bit_length()
    return min(1 + (axis.slots - 1).bit_length(), MAX_SLOT_BITS + 1)


def _deal(given: list[int], wanted: list[int], who: list[int], room: int) -> None:
    """Deal bits one at a time, in turn, to those who still want one."""
    while room and any(given[i] < wanted[i] for i in who):
        for i in who:
            if room and given[i] < wanted[i]:
                given[i] += 1
                room -= 1
