"""Where to cut noisy counts off."""

from __future__ import annotations

import math
from fractions import Fraction


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
