"""The rows in the order of their codes, without holding a code for each: how many come before a box.

A tree needs to know how many rows lie in a box, and that is the difference of two ranks. Short tables are counted at
full depth at once. Of longer ones only the first bits are counted; when a box is split deeper than that, the rows of
all boxes that are still split are counted at the next bits, in one more pass. Memory follows the boxes, not the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms.kd_tree.interleaving import Coding
from dpsynth_core.table.private_rows import PrivateRows, RowsAtHand

BOXES_PER_PASS = 2**22


@dataclass(frozen=True, kw_only=True)
class PrefixMap:
    """The first bits of every row's code."""

    coding: Coding
    depth: int

    @property
    def columns(self) -> tuple[str, ...]:
        return self.coding.columns

    @property
    def size(self) -> int:
        return 1 << self.depth

    def locate(self, rows: RowsAtHand) -> IntArray:
        return self.coding.codes(rows) >> (self.coding.bits - self.depth)


@dataclass(frozen=True, kw_only=True)
class InnerPrefixMap:
    """Further bits of the rows in some boxes, numbered box by box; all other rows share the last cell."""

    coding: Coding
    boxes: IntArray
    """Prefixes, in order."""
    above: int
    """Bits of each prefix."""
    depth: int
    """Bits to count by."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.coding.columns

    @property
    def size(self) -> int:
        return (len(self.boxes) << (self.depth - self.above)) + 1

    def locate(self, rows: RowsAtHand) -> IntArray:
        codes, bits = self.coding.codes(rows), self.coding.bits
        top, further = codes >> (bits - self.above), self.depth - self.above
        box = np.minimum(np.searchsorted(self.boxes, top), len(self.boxes) - 1)
        cell = (box << further) | ((codes >> (bits - self.depth)) & ((1 << further) - 1))
        return np.where(self.boxes[box] == top, cell, self.size - 1)


class RankedCodes:
    """How many rows have a smaller code: private."""

    def __init__(self, coding: Coding, table: PrivateRows, free: int, boxes_per_pass: int = BOXES_PER_PASS) -> None:
        """Counted at least down to depth ``free``.

        Args:
            coding: Of the rows.
            table: The rows.
            free: Bits that are asked for in any case.
            boxes_per_pass: Boxes that one pass counts, about; a table with no more rows is counted in one.
        """
        self._coding, self._table, self._boxes_per_pass = coding, table, boxes_per_pass
        few = table.n <= boxes_per_pass
        self._depth = coding.bits if few else min(coding.bits, max(free, boxes_per_pass.bit_length() - 1))
        ((prefix, counts),) = table.histograms([[PrefixMap(coding=coding, depth=self._depth)]])
        self._prefix, self._start = prefix[:, 0], np.insert(np.cumsum(counts), 0, 0)

    def occupied(self, depth: int) -> tuple[IntArray, IntArray, IntArray]:
        """Prefixes of so many bits that rows have, with the rank of the first row and one past that of the last."""
        prefix = self._prefix >> (self._depth - depth)
        first = np.append(0, np.flatnonzero(prefix[1:] != prefix[:-1]) + 1)
        return prefix[first], self._start[first], self._start[np.append(first[1:], len(prefix))]

    def rank(self, prefix: IntArray, depth: int) -> IntArray:
        """Rows whose code comes before a prefix, within a box that was looked into."""
        return self._start[np.searchsorted(self._prefix, prefix << (self._depth - depth))]

    def look_into(self, prefix: IntArray, start: IntArray, end: IntArray, depth: int) -> None:
        """See to it that the rows of these boxes, of ``depth`` bits, are counted at least one bit deeper."""
        if depth < self._depth:
            return
        inside = np.flatnonzero(end > start)
        inside = inside[np.argsort(prefix[inside])]
        boxes, first = prefix[inside], start[inside]
        further = max(1, (self._boxes_per_pass // max(1, len(boxes))).bit_length() - 1)
        deeper = min(depth + further, self._coding.bits)
        if not len(boxes):
            return
        each = InnerPrefixMap(coding=self._coding, boxes=boxes, above=depth, depth=deeper)
        ((cells, counts),) = self._table.histograms([[each]])
        kept = cells[:, 0] < each.size - 1
        cell, counts = cells[kept, 0], counts[kept]
        bits = deeper - depth
        box = cell >> bits
        before = np.cumsum(counts) - counts
        # Every box that holds rows has cells, so its first one is where the box number changes.
        opening = before[np.searchsorted(box, np.arange(len(boxes)))]
        self._depth = deeper
        self._prefix = (boxes[box] << bits) | (cell & ((1 << bits) - 1))
        self._start = np.append(first[box] + before - opening[box], self._table.n)
