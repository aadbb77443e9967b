"""Rows as points that networks can read, and back: which coordinates belong to which column.

A number is one coordinate from -1 to 1 over its declared range, a column of labels one coordinate for each label.
Whether a nullable number is present takes two more. Everything follows from the schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.mechanisms.numbers_and_labels import (
    from_levels,
    from_unit,
    is_number,
    level_count,
    to_levels,
    to_unit,
)
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MIN_WIDTH = 8
"""Networks are at least this wide, so that tables of few columns share compiled code."""


@dataclass(frozen=True, kw_only=True)
class ColumnBlock:
    column: Column
    start: int
    levels: int
    """Labels, the missing one included; for a nullable number 2 (present or missing), for another number 0."""
    number: bool
    """Whether its first coordinate is a value."""

    @property
    def labels(self) -> slice:
        """Its coordinates that are shares of labels."""
        first = self.start + self.number
        return slice(first, first + self.levels)

    @property
    def size(self) -> int:
        return self.number + self.levels

    def fill(self, positions: Positions, out: FloatArray) -> None:
        """Write each row's coordinates; a missing number is 0, the middle of its range."""
        if self.number:
            out[:, self.start] = to_unit(self.column, positions)
        levels = positions.missing if self.number else to_levels(self.column, positions)
        if levels is not None:
            out[np.arange(len(levels)), self.labels.start + levels] = 1.0

    def positions(self, values: FloatArray, codes: IntArray) -> Positions:
        """Positions in the declared domain from coordinates (a number's value, a label's index)."""
        if not self.number:
            return from_levels(self.column, codes)
        return from_unit(self.column, np.clip(values, -1.0, 1.0), codes == 1 if self.column.nullable else None)


@dataclass(frozen=True, kw_only=True)
class PointLayout:
    blocks: tuple[ColumnBlock, ...]

    @classmethod
    def of(cls, schema: Schema) -> PointLayout:
        blocks, start = [], 0
        for column in schema:
            number = is_number(column)
            levels = 2 * column.nullable if number else level_count(column)
            blocks.append(ColumnBlock(column=column, start=start, levels=levels, number=number))
            start += blocks[-1].size
        return cls(blocks=tuple(blocks))

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    @property
    def width(self) -> int:
        """The same rounded up to a power of two: networks of equal width share compiled code."""
        return max(MIN_WIDTH, 1 << (self.size - 1).bit_length())

    @cached_property
    def numbers(self) -> BoolArray:
        flags = np.zeros(self.width, dtype=np.bool_)
        flags[[block.start for block in self.blocks if block.number]] = True
        return flags

    @cached_property
    def groups(self) -> IntArray:
        """For each coordinate that is a label's share, the index of its block; -1 for others."""
        groups = np.full(self.width, -1, dtype=np.int64)
        for index, block in enumerate(self.blocks):
            groups[block.labels] = index
        return groups

    @cached_property
    def gates(self) -> IntArray:
        """For each nullable number, the coordinate that says that it is present; -1 for others."""
        gates = np.full(self.width, -1, dtype=np.int64)
        for block in self.blocks:
            if block.number and block.levels:
                gates[block.start] = block.labels.start
        return gates

    def encode(self, table: PrivateTable) -> FloatArray:
        """Every row as a point: private."""
        rows = np.zeros((table.n, self.width))
        for block in self.blocks:
            block.fill(table.positions(block.column.name), rows)
        return rows
