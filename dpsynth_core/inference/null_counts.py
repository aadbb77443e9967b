"""Simulating the null through a histogram mechanism, as tables of counts, thousands at once."""

from __future__ import annotations

import math

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.histograms import GroupIndices, HistogramLaw
from dpsynth_core.inference.u_statistics import testable

CELLS_AT_ONCE = 200_000
"""Cells of all simulated tables that are held at a time."""


def null_statistics(
    law: HistogramLaw,
    released: FloatArray,
    indices: GroupIndices,
    simulations: int,
    rng: np.random.Generator,
    *,
    tied: bool,
) -> tuple[FloatArray, FloatArray]:
    """The statistic of each released table of counts, and those of simulated null releases for each.

    Not a number where there is nothing to test. ``tied`` says whether all rows of a cell have one value.
    """
    observed = _statistics(law, released, indices, tied=tied)
    simulated = np.empty((len(released), simulations))
    step = max(1, CELLS_AT_ONCE // (simulations * math.prod(law.shape)))
    for start in range(0, len(released), step):
        part = released[start : start + step]
        null = law.nuisance(part).draw(simulations, rng)
        drawn = _statistics(law, law.run(null, rng), indices, tied=tied)
        simulated[start : start + step] = drawn.reshape(len(part), -1)
    return observed, simulated


def _statistics(law: HistogramLaw, counts: FloatArray, indices: GroupIndices, *, tied: bool) -> FloatArray:
    possible = testable(np.stack(indices.of(counts), axis=1), centre=tied)
    return np.where(possible, law.statistic(counts, indices), np.nan)
