"""Where to cut noisy counts off."""

from __future__ import annotations

import math
from fractions import Fraction


def invented_rows(cells: int, threshold: int, scale: Fraction) -> float:
    """Rows that empty cells are expected to invent.

    An empty cell passes t with probability a^t / (1 + a) and then counts t + a / (1 - a) rows on average.
    """
    a = math.exp(-1 / scale)
    return math.exp(math.log(cells) - threshold / scale) / (1 + a) * (threshold + a / (1 - a))


def spurious_threshold(cells: int, rows: int, scale: Fraction, *, share: float = 0.01) -> int:
    """Smallest threshold at which empty cells are expected to invent at most that share of the rows."""
    low, high = 0, 1
    while invented_rows(cells, high, scale) > rows * share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if invented_rows(cells, middle, scale) > rows * share else (low, middle)
    return high
