"""Pairs that were counted although the model's tables are too large to hold them: corrections of what it expects.

Where every column is related to every other, a junction tree that holds all pairs would not fit into memory. Such a
pair is counted all the same. What the count says is put on top of what the model expects of the pair, and drawn rows
are brought near to the result (``balancing``). All of this works on noisy counts: post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm.estimation import Measurement, combined
from dpsynth_core.mechanisms.private_pgm.junction_tree import Clique

SCALINGS = 20
"""Times that a corrected table is scaled to the shares of its two columns, which are known better."""
TINY = 1e-12
"""Added to every probability, so that a count can bring about what the model rules out."""


def corrected_pairs(
    expected: Mapping[Clique, FloatArray], counted: Sequence[Measurement], rows: int
) -> dict[Clique, FloatArray]:
    """Probabilities of the pairs that were counted, from those that the model expects of them."""
    out: dict[Clique, FloatArray] = {}
    for measurement in combined(counted):
        clique = measurement.clique
        out[clique] = _corrected(out.get(clique, expected[clique]), measurement, rows)
    return {clique: _with_margins(table, expected[clique]) for clique, table in out.items()}


def _corrected(table: FloatArray, measurement: Measurement, rows: int) -> FloatArray:
    """Towards the count, by the part of the difference that noise does not explain.

    With y = p + d + e, where p is expected, d has variance t^2 over the cells and the noise e has s^2, the best linear
    guess of d is (y - p) t^2 / (t^2 + s^2); the mean of (y - p)^2 estimates t^2 + s^2.
    """
    table = table + TINY
    coarser = measurement.coarser
    expected = table if coarser is None else coarser.gather(table)
    difference = measurement.values / rows - expected
    difference -= difference.mean()  # both add up to one but for the noise on the sum
    spread, noise = float(np.mean(difference**2)), (measurement.sigma / rows) ** 2
    believed = 1 - noise / spread if spread > noise else 0.0
    wanted = np.maximum(expected + believed * difference, 0.0)
    ratio = wanted / expected
    return table * (ratio if coarser is None else coarser.spread(ratio))


def _with_margins(table: FloatArray, like: FloatArray) -> FloatArray:
    """The table with the row and column sums of another (iterative proportional fitting)."""
    for _ in range(SCALINGS):
        for axis in (1, 0):
            sums = table.sum(axis=axis, keepdims=True)
            table = table * np.divide(like.sum(axis=axis, keepdims=True), sums, out=np.ones_like(sums), where=sums > 0)
    return table
