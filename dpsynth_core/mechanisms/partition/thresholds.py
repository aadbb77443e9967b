"""What noise does to counts, and where to cut it off."""

from __future__ import annotations

import math
from fractions import Fraction

COUNT_SENSITIVITY = 2
"""A replaced row leaves one cell and enters another."""


def laplace_tail(scale: Fraction | float, least: int) -> float:
    """P(DLap(scale) >= least) for least >= 1."""
    a = math.exp(-1 / scale)
    return math.exp(-least / scale) / (1 + a)


def spurious_threshold(cells: int, rows: int, scale: Fraction) -> int:
    """Smallest threshold at which empty cells are expected to invent at most one row in a hundred.

    An empty cell passes t with probability a^t / (1 + a) and then counts t + a / (1 - a) rows on average.
    """
    a = math.exp(-1 / scale)

    def invented(t: int) -> float:
        return math.exp(math.log(cells) - t / scale) / (1 + a) * (t + a / (1 - a))

    low, high = 0, 1
    while invented(high) > rows / 100:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if invented(middle) > rows / 100 else (low, middle)
    return high


def laplace_variance(scale: Fraction) -> float:
    """Variance of discrete Laplace noise: 2 a / (1 - a)^2 with a = exp(-1/scale)."""
    a = math.exp(-1 / scale)
    # Never zero, so that averages by inverse variance are defined where there is hardly any noise.
    return max(2 * a / (1 - a) ** 2, 1e-9)
