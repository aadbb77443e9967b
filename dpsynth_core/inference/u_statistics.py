"""U of many tables of untied values at once, by one sort of whole numbers."""

from __future__ import annotations

import numpy as np
from scipy.special import erfc

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.inference.mann_whitney import EXACT_UP_TO, mann_whitney_counts
from dpsynth_core.inference.null_law import exact_pvalue

MAX_SORTED = 50_000
"""Rows up to which every simulated row is ranked; beyond, sums of very many ranks are drawn instead."""
_VALUE_BITS = 38


def u_of_rows(values: FloatArray, first: int, *, lower: float, upper: float) -> IntArray:
    """2 U1 for each line of ``values``, the first ``first`` entries of which are the first group.

    Values are told apart to one part in 2^38 of the range, beyond which order is arbitrary.
    """
    tables, n = values.shape
    share = np.clip((values - lower) / (upper - lower), 0.0, 1.0)
    fine = np.minimum((share * 2.0**_VALUE_BITS).astype(np.int64), 2**_VALUE_BITS - 1)
    is_first = np.arange(n) < first
    key = np.arange(tables)[:, None] << (_VALUE_BITS + 1) | fine << 1 | is_first
    return _won(key.ravel(), np.full(tables, n))


def u_within_cells(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> IntArray:
    """2 U1 for each table of counts when rows lie anywhere in their cells, so that nothing is tied."""
    counts = np.stack([second, first], axis=2).astype(np.int64)
    which = np.repeat(np.arange(counts.size), counts.ravel())  # (table, cell, group) of each row
    fine = rng.integers(0, 2**_VALUE_BITS, size=len(which))
    key = which >> 1 << (_VALUE_BITS + 1) | fine << 1 | which & 1
    return _won(key, counts.sum(axis=(1, 2)))


def _won(key: IntArray, sizes: IntArray) -> IntArray:
    """Sorted by table and value, with the group in the last bit: each first-group row wins the second's before it."""
    is_first = np.sort(key) & 1
    losers = np.cumsum(1 - is_first)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    running = np.concatenate([[0], np.cumsum(is_first * losers)])
    before = np.concatenate([[0], losers])[starts]  # losers of earlier tables
    members = np.concatenate([[0], np.cumsum(is_first)])
    won: IntArray = running[ends] - running[starts] - before * (members[ends] - members[starts])
    won *= 2
    return won


def testable(released: FloatArray, *, centre: bool) -> BoolArray:
    """Which released tables of counts leave something to test: both groups, and more than one value.

    Rows that lie anywhere in their cell differ even if all are in one.
    """
    tests = mann_whitney_counts(released[:, 0], released[:, 1], degenerate="one")
    return tests.defined if centre else tests.n1 * tests.n2 > 0


def ordinary_pvalues(
    released: FloatArray, rng: np.random.Generator, *, centre: bool, max_sorted: int = MAX_SORTED
) -> FloatArray:
    """The ordinary test on each released table of counts, rows at their cell's centre or anywhere in it.

    Not a number where there is nothing to test. Beyond ``max_sorted`` rows in the two groups, what rows within a cell
    add to U is drawn from the normal law instead of ranking every row.
    """
    tests = mann_whitney_counts(released[:, 0], released[:, 1], degenerate="one")
    if centre:
        return np.where(tests.defined, tests.pvalue, np.nan)
    pairs = tests.n1 * tests.n2
    defined = pairs > 0
    if (tests.n1 + tests.n2).max() > max_sorted:
        # Within a cell U has mean ab/2 and variance ab(a + b + 1)/12; the sum over so many rows is normal.
        first, second = released[:, 0], released[:, 1]
        within = (first * second * (first + second + 1)).sum(axis=1) / 12
        u = tests.statistic + np.sqrt(within) * rng.standard_normal(len(within))
    else:
        u = u_within_cells(released[:, 0], released[:, 1], rng) / 2
    std = np.sqrt(np.where(defined, pairs / 12 * (tests.n1 + tests.n2 + 1), 1.0))
    pvalue = np.clip(erfc((np.abs(u - pairs / 2) - 0.5) / std / np.sqrt(2.0)), 0.0, 1.0)
    # A very small group gets the exact law, as it does in the test on rows.
    for i in np.flatnonzero(defined & (np.minimum(tests.n1, tests.n2) <= EXACT_UP_TO)):
        pvalue[i] = exact_pvalue(float(np.clip(u[i], 0, pairs[i])), int(tests.n1[i]), int(tests.n2[i]))
    return np.where(defined, pvalue, np.nan)
