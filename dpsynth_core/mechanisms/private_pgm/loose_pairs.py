"""Pairs that were counted although the model's tables are too large to hold them: corrections of what it expects.

Where every column is related to every other, a junction tree that holds all pairs would not fit into memory. Such a
pair is counted all the same. What the count says is put on top of what the model expects of the pair, and drawn rows
are brought near to the result (``balancing``). All of this works on noisy counts: post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import wrightomega

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

    Let a cell with m expected rows hold x, where x - m has the variance v m: chance alone gives v = 1, relations that
    the model misses give more. Its count y has noise s besides, so the sum of (y - m)^2 over the cells is about v rows
    and cells s^2. The guess is where (x - y)^2 / 2 s^2 + (x ln(x / m) - x) / v is least, that is x + p ln(x / m) = y
    with p = s^2 / v. Near m it is m + (y - m) v m / (v m + s^2), the best linear one, and it is never negative.
    """
    coarser = measurement.coarser
    table = table + TINY
    expected = rows * (table if coarser is None else coarser.gather(table))
    counted = measurement.values + (rows - measurement.values.sum()) / measurement.values.size
    noise = measurement.sigma**2
    spread = (float(((counted - expected) ** 2).sum()) - expected.size * noise) / rows
    if spread <= 0:
        return table
    pull = noise / spread
    # With w = x / p: w + ln w = y / p + ln(m / p), which Wright's function solves.
    ratio = pull * wrightomega(counted / pull + np.log(expected / pull)) / expected
    return np.asarray(table * (ratio if coarser is None else coarser.spread(ratio)))


def _with_margins(table: FloatArray, like: FloatArray) -> FloatArray:
    """The table with the row and column sums of another (iterative proportional fitting)."""
    for _ in range(SCALINGS):
        for axis in (1, 0):
            sums = table.sum(axis=axis, keepdims=True)
            table = table * np.divide(like.sum(axis=axis, keepdims=True), sums, out=np.ones_like(sums), where=sums > 0)
    return table
