"""Compiled loops over the rows of a real axis. Imported where they are used: the compiler takes long to load."""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.jit import compiled


@compiled
def real_slots(values: FloatArray, low: float, high: float, slots: int) -> IntArray:
    """The slot of each value within the bounds; the upper bound belongs to the last one."""
    slot = np.empty(len(values), dtype=np.int64)
    for row in range(len(values)):
        slot[row] = min(int((values[row] - low) / (high - low) * slots), slots - 1)
    return slot


@compiled
def real_cells(values: FloatArray, low: float, high: float, of_slot: IntArray) -> IntArray:
    """The cell that each value's slot belongs to: ``of_slot[real_slots(values, ...)]`` in one pass."""
    slots = len(of_slot)
    cell = np.empty(len(values), dtype=np.int64)
    for row in range(len(values)):
        cell[row] = of_slot[min(int((values[row] - low) / (high - low) * slots), slots - 1)]
    return cell


@compiled
def add_real_bits(code: IntArray, bits: IntArray, values: FloatArray, low: float, high: float) -> None:
    """Set in each row's code the bits of its slot: ``code |= bits[real_slots(values, ...)]`` in one pass."""
    slots = len(bits)
    for row in range(len(values)):
        code[row] |= bits[min(int((values[row] - low) / (high - low) * slots), slots - 1)]


@compiled
def stretched(drawn: FloatArray, width: FloatArray, start: FloatArray, top: float, box: IntArray) -> FloatArray:
    """Reals from [0, 1) laid over each row's range, in place."""
    for row in range(len(box)):
        drawn[row] = min(drawn[row] * width[box[row]] + start[box[row]], top)
    return drawn


def warm_up() -> None:
    """Compile the loops."""
    one, first = np.zeros(1), np.zeros(1, dtype=np.int64)
    real_slots(one, 0.0, 1.0, 1)
    real_cells(one, 0.0, 1.0, first)
    add_real_bits(first, first, one, 0.0, 1.0)
    stretched(one, one, one, 1.0, first)
