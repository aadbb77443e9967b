"""Total variation between two tables' shares of cells, with an interval and a reference.

The total variation of two distributions over cells is half the sum of the absolute differences of their shares: the
largest difference that any event over those cells can show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.base import Measure, Scale, Verdict, judge
from dpsynth_core.inference.proportions import UPPER_TAIL
from dpsynth_core.table.column import Column

LIMITS = 0.05, 0.15
"""Excess over the reference up to which tables are called close, and beyond which they are called far apart."""
READINGS: dict[Verdict, str] = {
    "excellent": "no more than between two samples of the original.",
    "good": "close, though more than chance alone.",
    "fair": "a difference that shows in a picture.",
    "poor": "a strong difference.",
}
SCALE = Scale(name="total variation", good="no more than a fresh sample of the original would show")


def total_variation(first: NDArray[np.number], second: NDArray[np.number]) -> FloatArray:
    """Half the sum of absolute differences of shares, along the last axis.

    Example:
        >>> float(total_variation(np.array([1, 1]), np.array([3, 1])))
        0.25
    """
    p = first / first.sum(axis=-1, keepdims=True)
    q = second / second.sum(axis=-1, keepdims=True)
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def variation_measure(
    name: str, columns: tuple[str, ...], first: IntArray, second: IntArray, rng: np.random.Generator, *, draws: int
) -> Measure:
    """Total variation of two vectors of counts over the same cells, with its interval and its reference.

    The interval is the basic bootstrap's, which takes off the upward bias that absolute differences have, widened to
    hold the value itself. The reference is the variation between two samples, of these sizes, of the original itself.
    """
    value = float(total_variation(first, second))
    n, m = int(first.sum()), int(second.sum())
    again = rng.multinomial(n, first / n, size=draws)
    moved = total_variation(again, rng.multinomial(m, second / m, size=draws))
    fresh = total_variation(again, rng.multinomial(m, first / n, size=draws))
    low, high = np.clip(2 * value - np.quantile(moved, (UPPER_TAIL, 1 - UPPER_TAIL)), 0.0, 1.0)
    low, high = min(low, value), max(high, value)  # a score beyond its own interval would puzzle every reader
    reference, reference_high = float(np.median(fresh)), float(np.quantile(fresh, UPPER_TAIL))
    verdict = judge(value, reference_high, value - reference, LIMITS)
    return Measure(
        name=name,
        columns=columns,
        value=value,
        low=float(low),
        high=float(high),
        reference=reference,
        reference_high=reference_high,
        verdict=verdict,
        reading=f"{value:.1%} of the rows would have to change cells to make the two tables agree: {READINGS[verdict]}",
    )


def coarse(column: Column, max_cells: int) -> Column:
    """The column with at most so many cells of its range; labels stay as they are."""
    return replace(column, bins=max_cells) if column.is_numeric and column.levels > max_cells else column
