"""Searching for the best cuts: compiled.

Every pair of columns is counted once, cell by cell. A pair of cuts divides the rows into four leaves whose sizes are
sums of a corner of that table, and each of the four serves two trees: one with the first cut at the root and one with
the second. Only the sum of a^2 / (a + o) over the leaves is looked at; the score is that less a constant.
"""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray, Int32Array, IntArray
from dpsynth_core.jit import compiled


@compiled
def best_stump(
    synthetic: Int32Array, original: Int32Array, sizes: IntArray, nominal: IntArray
) -> tuple[float, int, int]:
    """The largest sum of a^2 / (a + o) over the two leaves of one cut, and which cut that is."""
    made, given = float(synthetic.shape[1]), float(original.shape[1])
    a_in, o_in = rows_inside(synthetic, sizes, nominal), rows_inside(original, sizes, nominal)
    best, column, cut = -1.0, 0, 0
    for i in range(len(sizes)):
        for s in range(sizes[i] - 1 + nominal[i]):
            a, o = a_in[i, s], o_in[i, s]
            gain = term(a, o) + term(made - a, given - o)
            if gain > best:
                best, column, cut = gain, i, s
    return best, column, cut


@compiled
def best_root(
    synthetic: Int32Array, original: Int32Array, sizes: IntArray, nominal: IntArray
) -> tuple[float, int, int]:
    """The largest sum of a^2 / (a + o) over the leaves of a tree with a cut below each side of the root's."""
    made, given = float(synthetic.shape[1]), float(original.shape[1])
    a_in, o_in = rows_inside(synthetic, sizes, nominal), rows_inside(original, sizes, nominal)
    most = a_in.shape[1]
    # For each cut as the root's: the best that a second cut can make of the rows inside, and of those outside.
    inside, outside = np.zeros((len(sizes), most)), np.zeros((len(sizes), most))
    a_table, o_table = np.empty((most, most)), np.empty((most, most))
    for i in range(len(sizes)):
        cut_twice(a_in[i], o_in[i], made, given, sizes[i] - 1 + nominal[i], nominal[i], inside[i], outside[i])
        for j in range(i):
            count_pair(synthetic[i], synthetic[j], sizes[i], sizes[j], nominal[i], nominal[j], a_table)
            count_pair(original[i], original[j], sizes[i], sizes[j], nominal[i], nominal[j], o_table)
            for s in range(sizes[i] - 1 + nominal[i]):
                cross(
                    a_table[s],
                    o_table[s],
                    a_in[i, s],
                    o_in[i, s],
                    a_in[j],
                    o_in[j],
                    made,
                    given,
                    sizes[j] - 1 + nominal[j],
                    inside[i],
                    outside[i],
                    s,
                    inside[j],
                    outside[j],
                )
    best, column, cut = -1.0, 0, 0
    for i in range(len(sizes)):
        for s in range(sizes[i] - 1 + nominal[i]):
            if inside[i, s] + outside[i, s] > best:
                best, column, cut = inside[i, s] + outside[i, s], i, s
    return best, column, cut


@compiled
def term(a: float, o: float) -> float:
    """A leaf's a^2 / (a + o), and nothing for an empty one."""
    rows = a + o
    return a * a / (rows + (rows == 0.0))


@compiled
def rows_inside(cells: Int32Array, sizes: IntArray, nominal: IntArray) -> FloatArray:
    """Rows inside each cut of each column."""
    counts = np.zeros((len(sizes), sizes.max()))
    for i in range(len(sizes)):
        for row in range(cells.shape[1]):
            counts[i, cells[i, row]] += 1.0
        if not nominal[i]:
            for s in range(1, sizes[i]):
                counts[i, s] += counts[i, s - 1]
    return counts


@compiled
def count_pair(  # noqa: PLR0917  compiled code takes arguments by place
    first: Int32Array,
    second: Int32Array,
    lines: int,
    width: int,
    first_nominal: int,
    second_nominal: int,
    table: FloatArray,
) -> None:
    """Rows inside both of two columns' cuts, for every pair of cuts, into ``table``."""
    for s in range(lines):
        for t in range(width):
            table[s, t] = 0.0
    for row in range(len(first)):
        table[first[row], second[row]] += 1.0
    if not second_nominal:
        for s in range(lines):
            for t in range(1, width):
                table[s, t] += table[s, t - 1]
    if not first_nominal:
        for s in range(1, lines):
            for t in range(width):
                table[s, t] += table[s - 1, t]


@compiled
def cross(  # noqa: PLR0917  compiled code takes arguments by place
    a_both: FloatArray,
    o_both: FloatArray,
    a_first: float,
    o_first: float,
    a_second: FloatArray,
    o_second: FloatArray,
    made: float,
    given: float,
    cuts: int,
    inside: FloatArray,
    outside: FloatArray,
    s: int,
    inside_second: FloatArray,
    outside_second: FloatArray,
) -> None:
    """Four leaves for cut s of one column and each cut of another; either cut may be the root's."""
    best_inside, best_outside = inside[s], outside[s]
    for t in range(cuts):
        a, o = a_both[t], o_both[t]
        both = term(a, o)
        only_first = term(a_first - a, o_first - o)
        only_second = term(a_second[t] - a, o_second[t] - o)
        neither = term(made - a_first - a_second[t] + a, given - o_first - o_second[t] + o)
        best_inside = max(best_inside, both + only_first)
        best_outside = max(best_outside, only_second + neither)
        inside_second[t] = max(inside_second[t], both + only_second)
        outside_second[t] = max(outside_second[t], only_first + neither)
    inside[s], outside[s] = best_inside, best_outside


@compiled
def cut_twice(  # noqa: PLR0917  compiled code takes arguments by place
    a_in: FloatArray,
    o_in: FloatArray,
    made: float,
    given: float,
    cuts: int,
    nominal: int,
    inside: FloatArray,
    outside: FloatArray,
) -> None:
    """The root's cut and the one below it on the same column: three leaves."""
    for s in range(cuts):
        a, o = a_in[s], o_in[s]
        # One side may stay whole: a column with a single cut leaves no second one.
        inside[s], outside[s] = term(a, o), term(made - a, given - o)
        for t in range(cuts):
            x, y = a_in[t], o_in[t]
            if t != s and (nominal or t > s):
                # Outside s lie what t holds (beyond s, where cells stand in a line) and the rest.
                held, kept = (x, y) if nominal else (x - a, y - o)
                outside[s] = max(outside[s], term(held, kept) + term(made - a - held, given - o - kept))
            elif t < s:
                inside[s] = max(inside[s], term(x, y) + term(a - x, o - y))


@compiled
def best_pair(  # noqa: PLR0917  compiled code takes arguments by place
    synthetic: Int32Array,
    other_synthetic: Int32Array,
    original: Int32Array,
    other_original: Int32Array,
    size: int,
    other_size: int,
    nominal: int,
    other_nominal: int,
) -> float:
    """As ``best_root``, for trees on two columns given one by one; twice the same column gives its own trees."""
    made, given = float(len(synthetic)), float(len(original))
    cuts, other_cuts = size - 1 + nominal, other_size - 1 + other_nominal
    a_table, o_table = np.empty((size, other_size)), np.empty((size, other_size))
    count_pair(synthetic, other_synthetic, size, other_size, nominal, other_nominal, a_table)
    count_pair(original, other_original, size, other_size, nominal, other_nominal, o_table)
    # Rows inside each cut by itself: the last line or column of a cumulative table, the sum of one that is not.
    a_in, o_in = np.empty(size), np.empty(size)
    for s in range(size):
        a_in[s], o_in[s] = 0.0, 0.0
        for t in range(0 if other_nominal else other_size - 1, other_size):
            a_in[s] += a_table[s, t]
            o_in[s] += o_table[s, t]
    a_other, o_other = np.zeros(other_size), np.zeros(other_size)
    for s in range(0 if nominal else size - 1, size):
        for t in range(other_size):
            a_other[t] += a_table[s, t]
            o_other[t] += o_table[s, t]
    inside, outside = np.empty(size), np.empty(size)
    inside_other, outside_other = np.empty(other_size), np.empty(other_size)
    cut_twice(a_in, o_in, made, given, cuts, nominal, inside, outside)
    cut_twice(a_other, o_other, made, given, other_cuts, other_nominal, inside_other, outside_other)
    for s in range(cuts):
        cross(
            a_table[s],
            o_table[s],
            a_in[s],
            o_in[s],
            a_other,
            o_other,
            made,
            given,
            other_cuts,
            inside,
            outside,
            s,
            inside_other,
            outside_other,
        )
    best = made * made / (made + given)
    for s in range(cuts):
        best = max(best, inside[s] + outside[s])
    for t in range(other_cuts):
        best = max(best, inside_other[t] + outside_other[t])
    return best


@compiled
def all_cells(  # noqa: PLR0917  compiled code takes arguments by place
    synthetic: Int32Array,
    other_synthetic: Int32Array,
    original: Int32Array,
    other_original: Int32Array,
    size: int,
    other_size: int,
    wide: int,
    other_wide: int,
) -> float:
    """The sum of a^2 / (a + o) over all cells of two columns at once; ``wide`` neighbouring cells count as one."""
    a_table = _table(synthetic, other_synthetic, size, other_size, wide, other_wide)
    o_table = _table(original, other_original, size, other_size, wide, other_wide)
    total = 0.0
    for s in range(len(a_table)):
        for t in range(a_table.shape[1]):
            total += term(a_table[s, t], o_table[s, t])
    return total


@compiled
def distance(  # noqa: PLR0917
    synthetic: Int32Array,
    other_synthetic: Int32Array,
    original: Int32Array,
    other_original: Int32Array,
    size: int,
    other_size: int,
    wide: int,
    other_wide: int,
) -> float:
    """Total variation between the shares of synthetic and of original rows in the cells of ``all_cells``."""
    a_table = _table(synthetic, other_synthetic, size, other_size, wide, other_wide)
    o_table = _table(original, other_original, size, other_size, wide, other_wide)
    made, given = float(len(synthetic)), float(len(original))
    total = 0.0
    for s in range(len(a_table)):
        for t in range(a_table.shape[1]):
            total += abs(a_table[s, t] * given - o_table[s, t] * made)  # whole numbers, so nothing is rounded yet
    return total / (2.0 * made * given)


@compiled
def _table(  # noqa: PLR0917
    cells: Int32Array, other: Int32Array, size: int, other_size: int, wide: int, other_wide: int
) -> FloatArray:
    table = np.zeros(((size - 1) // wide + 1, (other_size - 1) // other_wide + 1))
    for row in range(len(cells)):
        table[cells[row] // wide, other[row] // other_wide] += 1.0
    return table
