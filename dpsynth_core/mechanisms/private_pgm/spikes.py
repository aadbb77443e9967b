"""Values that many rows share, in columns whose values are finer than any bin: no income at all, exactly 40 hours.

Which bins hold one follows from noisy counts, and which value it is from the bin's bounds: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm.bins import FAN_OUT, MAX_PASSES, Bins

PARTS = FAN_OUT**MAX_PASSES
"""Parts of a range of which a bin that stands for one value is no wider."""
OVER_NEIGHBOURS = 8
"""Times as many rows for its width as either neighbour that such a bin has."""
OVER_NOISE = 4.0
"""Standard deviations of the noise that its count must exceed."""
AROUND, MIN_ELSEWHERE = 256, 0.01
"""Share of the rows that must lie further away than one of so many parts of the range. Where all are near, the bounds
may be too wide for what the column holds, and then one bin is all there is to see of it."""
MIN_POWER = -15
"""Of ten: finer steps than floats can tell apart."""


def spike_values(bins: Bins, counts: FloatArray, std: float) -> FloatArray:
    """For each bin the position of the one value that it stands for; not a number where it stands for a range.

    A narrow bin that is far fuller than its neighbours holds a value that many rows share. People and instruments write
    round numbers, so that value is taken to be the roundest one in the bin.
    """
    spikes = np.full(bins.size, np.nan)
    axis = bins.axis
    points = axis.column.lattice
    if not axis.column.is_numeric or axis.column.kind == "date" or (points and points[1] - points[0] < axis.slots):
        return spikes
    rows = counts[: len(bins.widths)]
    density = rows / bins.widths
    beside = np.maximum(np.append(density[1:], 0.0), np.append(0.0, density[:-1]))
    narrow = bins.widths * PARTS <= axis.slots
    for i in np.flatnonzero(narrow & (rows > OVER_NOISE * std) & (density > OVER_NEIGHBOURS * beside)):
        if _elsewhere(bins, rows, int(i)) < max(MIN_ELSEWHERE * rows.sum(), OVER_NOISE * std):
            continue
        low, high = axis.extent(int(bins.edges[i]), int(bins.edges[i + 1]))
        spikes[i] = float(roundest(low, high) - (points[0] if points else 0))
    return spikes


def _elsewhere(bins: Bins, rows: FloatArray, i: int) -> float:
    """Rows in bins that are not near this one."""
    near = bins.axis.slots / AROUND
    before, after = bins.edges[1:] <= bins.edges[i] - near, bins.edges[:-1] >= bins.edges[i + 1] + near
    return float(rows[before | after].sum())


def roundest(low: Fraction, high: Fraction) -> Fraction:
    """The number from ``low`` up to and without ``high`` that is a multiple of the largest of 1, 2 and 5 times a power
    of ten.

    Example:
        >>> float(roundest(Fraction("119.97"), Fraction("120.4")))
        120.0
        >>> float(roundest(Fraction("24.9"), Fraction("25.3")))
        25.0
    """
    for step in _steps(max(abs(low), abs(high))):
        multiple = math.ceil(low / step) * step
        if multiple < high:
            return multiple
    return low


def _steps(largest: Fraction) -> Iterator[Fraction]:
    """1, 2 and 5 times every power of ten, from the largest that numbers up to this can be multiples of."""
    for power in range(math.ceil(math.log10(largest)) + 1 if largest else 0, MIN_POWER, -1):
        for digit in (5, 2, 1):
            yield digit * Fraction(10) ** power
