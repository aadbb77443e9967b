"""Total variation between two tables' shares of cells, with an interval and a yardstick.

The total variation of two distributions over cells is half the sum of the absolute differences of their shares: the
largest difference that any event over those cells can show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.base import Measure, Scale, Verdict
from dpsynth_core.inference.proportions import CONFIDENCE
from dpsynth_core.table.column import Column

CLOSE, VISIBLE = 0.05, 0.15
"""Excess over the yardstick up to which tables are called close, and beyond which they are called far apart."""
SCALE = Scale(
    name="total variation",
    low=0.0,
    high=1.0,
    better="lower",
    good="no more than a fresh sample of the original would show",
)


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
    """Total variation of two vectors of counts over the same cells, with its interval and its yardstick.

    The interval is the basic bootstrap's, which takes off the upward bias that absolute differences have. The yardstick
    is the variation between two samples, of these sizes, of the original itself.
    """
    value = float(total_variation(first, second))
    n, m = int(first.sum()), int(second.sum())
    again = rng.multinomial(n, first / n, size=draws)
    low, high = np.quantile(
        2 * value - total_variation(again, rng.multinomial(m, second / m, size=draws)),
        ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2),
    )
    fresh = total_variation(again, rng.multinomial(m, first / n, size=draws))
    reference, reference_high = float(np.median(fresh)), float(np.quantile(fresh, (1 + CONFIDENCE) / 2))
    verdict = _verdict(value, reference, reference_high)
    return Measure(
        name=name,
        columns=columns,
        value=value,
        low=max(0.0, float(low)),
        high=min(1.0, max(0.0, float(high))),
        reference=reference,
        reference_high=reference_high,
        verdict=verdict,
        reading=_reading(value, verdict),
    )


def coarse(column: Column, most: int) -> Column:
    """The column with at most so many cells of its range; labels stay as they are."""
    return replace(column, bins=most) if column.is_numeric and column.levels > most else column


def _verdict(value: float, reference: float, reference_high: float) -> Verdict:
    if value <= reference_high:
        return "excellent"
    excess = value - reference
    return "good" if excess < CLOSE else "fair" if excess < VISIBLE else "poor"


def _reading(value: float, verdict: Verdict) -> str:
    moved = f"{value:.1%} of the rows would have to change cells to make the two tables agree"
    return {
        "excellent": f"{moved}: no more than between two samples of the original.",
        "good": f"{moved}: close, though more than chance alone.",
        "fair": f"{moved}: a difference that shows in a picture.",
        "poor": f"{moved}: the tables tell different stories here.",
        "unknown": "",
    }[verdict]
