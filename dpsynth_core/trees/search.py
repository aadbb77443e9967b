"""Searching for the best cuts: compiled.

Every pair of columns is counted once, cell by cell. A pair of cuts divides the rows into four leaves whose sizes are
sums of a corner of that table, and each of the four serves two trees: one with the first cut at the root and one with
the second. Only the sum of a^2 / (a + o) over the leaves is looked at; the score is that less a constant.

Arrays of counts hold synthetic rows (a) first and original ones (o) second; arrays of the best a cut can do hold the
rows inside it first and those outside second.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, Int32Array, IntArray
from dpsynth_core.jit import compiled

CellPair: TypeAlias = tuple[Int32Array, Int32Array]
"""Each row's cell in two columns."""
IntPair: TypeAlias = tuple[int, int]


@compiled
def best_stump(synthetic: Int32Array, original: Int32Array, sizes: IntArray, nominal: IntArray) -> float:
    """The largest sum of a^2 / (a + o) over the two leaves of one cut."""
    made, given = float(synthetic.shape[1]), float(original.shape[1])
    counts = _rows_inside(synthetic, original, sizes, nominal)
    best = -1.0
    for i in range(len(sizes)):
        for s in range(sizes[i] - 1 + nominal[i]):
            a, o = counts[i, 0, s], counts[i, 1, s]
            best = max(best, _term(a, o) + _term(made - a, given - o))
    return best


@compiled
def best_root(synthetic: Int32Array, original: Int32Array, sizes: IntArray, nominal: IntArray) -> float:
    """The largest sum of a^2 / (a + o) over the leaves of a tree with a cut below each side of the root's."""
    rows = float(synthetic.shape[1]), float(original.shape[1])
    cuts = sizes - 1 + nominal
    counts = _rows_inside(synthetic, original, sizes, nominal)
    most = counts.shape[2]
    # For each cut as the root's: the best that a second cut can make of the rows inside, and of those outside.
    best = np.zeros((len(sizes), 2, most))
    both = np.empty((2, most, most), np.int32)
    for i in range(len(sizes)):
        _cut_twice(counts[i], rows, cuts[i], nominal[i], best[i])
        for j in range(i):
            sizes_here, nominal_here = (sizes[i], sizes[j]), (nominal[i], nominal[j])
            _count_pair((synthetic[i], synthetic[j]), sizes_here, nominal_here, both[0])
            _count_pair((original[i], original[j]), sizes_here, nominal_here, both[1])
            _cross(both, counts[i], counts[j], rows, (cuts[i], cuts[j]), best[i], best[j])
    most_gained = -1.0
    for i in range(len(sizes)):
        most_gained = max(most_gained, _best_cut(best[i], cuts[i]))
    return most_gained


@compiled
def best_pair(made: CellPair, given: CellPair, sizes: IntPair, nominal: IntPair) -> float:
    """As ``best_root``, for trees on two columns given one by one; twice the same column gives its own trees."""
    rows = float(len(made[0])), float(len(given[0]))
    cuts = sizes[0] - 1 + nominal[0], sizes[1] - 1 + nominal[1]
    both = np.empty((2, sizes[0], sizes[1]), np.int32)
    _count_pair(made, sizes, nominal, both[0])
    _count_pair(given, sizes, nominal, both[1])
    # Rows inside each cut by itself: the last line or column of a cumulative table, the sum of one that is not.
    first, second = np.zeros((2, sizes[0])), np.zeros((2, sizes[1]))
    for which in range(2):
        for s in range(sizes[0]):
            for t in range(0 if nominal[1] else sizes[1] - 1, sizes[1]):
                first[which, s] += both[which, s, t]
        for s in range(0 if nominal[0] else sizes[0] - 1, sizes[0]):
            for t in range(sizes[1]):
                second[which, t] += both[which, s, t]
    best, best_second = np.empty((2, sizes[0])), np.empty((2, sizes[1]))
    _cut_twice(first, rows, cuts[0], nominal[0], best)
    _cut_twice(second, rows, cuts[1], nominal[1], best_second)
    _cross(both, first, second, rows, cuts, best, best_second)
    return max(_term(rows[0], rows[1]), _best_cut(best, cuts[0]), _best_cut(best_second, cuts[1]))


@compiled
def all_cells(made: CellPair, given: CellPair, sizes: IntPair, wide: IntPair) -> float:
    """The sum of a^2 / (a + o) over all cells of two columns at once; ``wide`` neighbouring cells count as one."""
    a_table, o_table = _table(made, sizes, wide), _table(given, sizes, wide)
    total = 0.0
    for s in range(len(a_table)):
        for t in range(a_table.shape[1]):
            total += _term(a_table[s, t], o_table[s, t])
    return total


@compiled
def distance(made: CellPair, given: CellPair, sizes: IntPair, wide: IntPair) -> float:
    """Total variation between the shares of synthetic and of original rows in the cells of ``all_cells``."""
    a_table, o_table = _table(made, sizes, wide), _table(given, sizes, wide)
    rows, original = float(len(made[0])), float(len(given[0]))
    total = 0.0
    for s in range(len(a_table)):
        for t in range(a_table.shape[1]):
            total += abs(a_table[s, t] * original - o_table[s, t] * rows)  # integers, so nothing is rounded yet
    return total / (2.0 * rows * original)


@compiled
def _term(a: float, o: float) -> float:
    """A leaf's a^2 / (a + o), and nothing for an empty one."""
    rows = a + o
    return a * a / (rows + (rows == 0.0))


@compiled
def _table(cells: CellPair, sizes: IntPair, wide: IntPair) -> FloatArray:
    table = np.zeros(((sizes[0] - 1) // wide[0] + 1, (sizes[1] - 1) // wide[1] + 1))
    first, second = cells
    for row in range(len(first)):
        table[first[row] // wide[0], second[row] // wide[1]] += 1.0
    return table


@compiled
def _rows_inside(synthetic: Int32Array, original: Int32Array, sizes: IntArray, nominal: IntArray) -> FloatArray:
    """Rows of both tables inside each cut of each column."""
    counts = np.zeros((len(sizes), 2, sizes.max()))
    for i in range(len(sizes)):
        for row in range(synthetic.shape[1]):
            counts[i, 0, synthetic[i, row]] += 1.0
        for row in range(original.shape[1]):
            counts[i, 1, original[i, row]] += 1.0
        if not nominal[i]:
            for s in range(1, sizes[i]):
                counts[i, 0, s] += counts[i, 0, s - 1]
                counts[i, 1, s] += counts[i, 1, s - 1]
    return counts


@compiled
def _count_pair(cells: CellPair, sizes: IntPair, nominal: IntPair, table: Int32Array) -> None:
    """Rows inside both of two columns' cuts, for every pair of cuts, into ``table``."""
    lines, width = sizes
    # Without a sign, no index is looked at for whether it counts from the end.
    first, second = cells[0].view(np.uint32), cells[1].view(np.uint32)
    for s in range(lines):
        for t in range(width):
            table[s, t] = 0
    for row in range(len(first)):
        table[first[row], second[row]] += 1
    if not nominal[1]:
        for s in range(lines):
            line, total = table[s, :width], np.int32(0)
            for t in range(width):
                total += line[t]
                line[t] = total
    if not nominal[0]:
        for s in range(1, lines):
            for t in range(width):
                table[s, t] += table[s - 1, t]


@compiled
def _cross(  # noqa: PLR0917  compiled code takes arguments by place
    both: Int32Array,
    first: FloatArray,
    second: FloatArray,
    rows: tuple[float, float],
    cuts: IntPair,
    best: FloatArray,
    best_second: FloatArray,
) -> None:
    """Four leaves for each pair of cuts of two columns; either cut may be the root's.

    A line at a time, in short loops that divide several numbers at once. A leaf without rows counts as one with one
    original row, which changes nothing.
    """
    size = cuts[1]
    a_second, o_second = second[0, :size], second[1, :size]
    inside_second, outside_second = best_second[0, :size], best_second[1, :size]
    terms = np.empty((4, size))
    in_both, only_first, only_second, neither = terms[0], terms[1], terms[2], terms[3]
    for s in range(cuts[0]):
        a_both, o_both, a_first, o_first = both[0, s, :size], both[1, s, :size], first[0, s], first[1, s]
        a_rest, o_rest = rows[0] - a_first, rows[1] - o_first
        for t in range(size):
            a = float(a_both[t])
            in_both[t] = a * a / max(a + o_both[t], 1.0)
        for t in range(size):
            a = a_first - a_both[t]
            only_first[t] = a * a / max(a + (o_first - o_both[t]), 1.0)
        for t in range(size):
            a = a_second[t] - a_both[t]
            only_second[t] = a * a / max(a + (o_second[t] - o_both[t]), 1.0)
        for t in range(size):
            a = a_rest - (a_second[t] - a_both[t])
            neither[t] = a * a / max(a + (o_rest - (o_second[t] - o_both[t])), 1.0)
        for t in range(size):
            inside_second[t] = max(inside_second[t], in_both[t] + only_second[t])
        for t in range(size):
            outside_second[t] = max(outside_second[t], only_first[t] + neither[t])
        best_inside, best_outside = best[0, s], best[1, s]
        for t in range(size):
            best_inside = max(best_inside, in_both[t] + only_first[t])
            best_outside = max(best_outside, only_second[t] + neither[t])
        best[0, s], best[1, s] = best_inside, best_outside


@compiled
def _cut_twice(counts: FloatArray, rows: tuple[float, float], cuts: int, nominal: int, best: FloatArray) -> None:
    """The root's cut and the one below it on the same column: three leaves."""
    made, given = rows
    a_in, o_in, inside, outside = counts[0], counts[1], best[0], best[1]
    for s in range(cuts):
        a, o = a_in[s], o_in[s]
        # One side may stay whole: a column with a single cut leaves no second one.
        inside[s], outside[s] = _term(a, o), _term(made - a, given - o)
        for t in range(cuts):
            x, y = a_in[t], o_in[t]
            if t != s and (nominal or t > s):
                # Outside s lie what t holds (beyond s, where cells stand in a line) and the rest.
                held_a, held_o = (x, y) if nominal else (x - a, y - o)
                outside[s] = max(outside[s], _term(held_a, held_o) + _term(made - a - held_a, given - o - held_o))
            elif t < s:
                inside[s] = max(inside[s], _term(x, y) + _term(a - x, o - y))


@compiled
def _best_cut(best: FloatArray, cuts: int) -> float:
    most = -1.0
    for s in range(cuts):
        most = max(most, best[0, s] + best[1, s])
    return most
