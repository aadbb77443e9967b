"""Simulating the null through a histogram mechanism, as tables of counts, thousands at once."""

from __future__ import annotations

import math

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.histograms import GroupIndices, HistogramLaw

CELLS_AT_ONCE = 200_000
"""Cells of all simulated tables that are held at a time."""


def null_statistics(
    law: HistogramLaw, released: FloatArray, indices: GroupIndices, simulations: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The statistic of each released table of counts, and those of simulated null releases for each."""
    observed = law.statistic(released, indices)
    simulated = np.empty((len(released), simulations))
    step = max(1, CELLS_AT_ONCE // (simulations * math.prod(law.shape)))
    for start in range(0, len(released), step):
        part = released[start : start + step]
        null = law.nuisance(part).draw(simulations, rng)
        simulated[start : start + step] = law.statistic(law.run(null, rng), indices).reshape(len(part), -1)
    return observed, simulated
