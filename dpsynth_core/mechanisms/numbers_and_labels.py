"""Columns as models of numbers and labels take them: numbers from -1 to 1 over the declared range, or a few levels.

Everything follows from the schema and the row itself. A missing label is the last level.
"""

from __future__ import annotations

import math

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions

FEW_VALUES = 10
"""A number that can take no more values than this is treated like labels: no smooth curve fits it."""


def is_number(column: Column) -> bool:
    return column.is_numeric and (column.points or math.inf) > FEW_VALUES


def level_count(column: Column) -> int:
    """Labels, or the values of a number that has few, and the missing level."""
    return ((column.points if column.is_numeric else column.levels) or 0) + column.nullable


def to_levels(column: Column, positions: Positions) -> IntArray:
    values = positions.values.astype(np.int64)
    return values if positions.missing is None else np.where(positions.missing, level_count(column) - 1, values)


def from_levels(column: Column, levels: IntArray) -> Positions:
    if not column.nullable:
        return Positions(values=levels, missing=None)
    missing = levels == level_count(column) - 1
    return Positions(values=np.where(missing, 0, levels), missing=missing)


def to_unit(column: Column, positions: Positions) -> FloatArray:
    """From -1 to 1 over the declared range; 0, its middle, where missing."""
    low, high = column.position_range
    unit = np.clip((positions.values.astype(np.float64) - low) / (high - low) * 2 - 1, -1.0, 1.0)
    return unit if positions.missing is None else np.where(positions.missing, 0.0, unit)


def from_unit(column: Column, unit: FloatArray, missing: BoolArray | None) -> Positions:
    low, high = column.position_range
    values = np.clip(low + (unit + 1) / 2 * (high - low), low, high)
    return Positions(values=values if column.lattice is None else np.rint(values).astype(np.int64), missing=missing)
