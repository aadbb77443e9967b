# ruff: noqa: PLR0917  compiled loops take arrays one by one
"""Growing a classification tree the way R's rpart does (``method = "class"``, Gini), in compiled loops.

The rows of a node stand together in one stretch of ``order[j]``, sorted by the code of column j; a split rearranges the
stretch in every column and keeps its order, so that nothing is ever sorted twice. A split is searched with the
floating-point operations of rpart in its order, because two splits that are equally good on paper often differ in their
last bit there, and then the bit decides. Only counts enter, so the order of the rows does not matter. (rpart weighs
each class by its prior over its frequency times the sum of the priors; for two classes that is exactly one in doubles,
because the two rounded shares always add up to one.)
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from dpsynth_core.jit import compiled

# Fields of a grown node. Children stand after their parent, the left one right after it.
NUMBER, START, END, ORIGINAL, SYNTHETIC, LEFT, RIGHT, COLUMN, CUT, BELOW_LEFT, PARENT, PHASE, SPLITS = range(13)
IMPROVEMENT, COMPLEXITY, RISK_BELOW, THRESHOLD = range(4)

_INTS, _FLOATS = SPLITS + 1, THRESHOLD + 1
_ENTER, _LEFT_DONE, _BOTH_DONE = range(3)
_NEGLIGIBLE = 1e-10
"""Improvements below this share of the largest one seen so far are rounding errors, says rpart."""
_ROOM = 256
"""Nodes to begin with; doubled when they are used up."""

GrowthColumns: TypeAlias = tuple[Int32Array, Int32Array, FloatArray, IntArray, BoolArray]
"""What is grown on, for each column:

- order: rows sorted by code; rearranged so that each node's rows stand together
- packed: twice the code of each row, and one more where the row is synthetic
- values: the value behind each code, column after column
- first: where the column's values begin
- nominal: whether the codes have no order
"""


@compiled
def _loss(left0: float, left1: float, right0: float, right1: float) -> float:
    """Gini impurity of both sides times their rows, added up in rpart's order."""
    left, right = left0 + left1, right0 + right1
    p = left0 / left
    loss = left * (p * (1.0 - p))
    p = right0 / right
    loss += right * (p * (1.0 - p))
    p = left1 / left
    loss += left * (p * (1.0 - p))
    p = right1 / right
    return loss + right * (p * (1.0 - p))


@compiled
def _node_loss(n0: int, n1: int) -> float:
    """Gini impurity of a whole node times its rows."""
    n = float(n0 + n1)
    p = n0 / n
    loss = n * (p * (1.0 - p))
    p = n1 / n
    return loss + n * (p * (1.0 - p))


@compiled
def _ordered_cut(
    line: Int32Array, packed: Int32Array, start: int, end: int, n0: int, n1: int, minbucket: int
) -> tuple[float, int, bool]:
    """Improvement of the best cut between two values, the rows below it, and whether they form the left child."""
    whole = _node_loss(n0, n1)
    best, where, below_left = whole, 0, False
    below1 = 0
    item = packed[line[start]]
    for i in range(start, end - minbucket):
        below1 += item & 1
        following = packed[line[i + 1]]
        below = i + 1 - start
        if (item ^ following) > 1 and below >= minbucket:  # they differ in more than the class
            left1, right1 = float(below1), float(n1 - below1)
            left0, right0 = float(below - below1), float(n0 - below + below1)
            loss = _loss(left0, left1, right0, right1)
            if loss < best:
                best, where = loss, below
                below_left = left1 / (left0 + left1) < right1 / (right0 + right1)
        item = following
    return whole - best, where, below_left


@compiled
def _by_share(counts: FloatArray, size: int) -> Int32Array:
    """Places of categories by rising share of original rows; equal shares keep their order.

    Merging from runs of one upwards: NumPy's own stable sort would take longer to compile than everything else here.
    """
    share, here, there = np.empty(size), np.empty(size, np.int32), np.empty(size, np.int32)
    for k in range(size):
        share[k], here[k] = counts[0, k] / (counts[0, k] + counts[1, k]), k
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            a, b = start, min(start + width, size)
            middle, end = b, min(start + 2 * width, size)
            for k in range(start, end):
                if a < middle and (b >= end or share[here[a]] <= share[here[b]]):
                    there[k] = here[a]
                    a += 1
                else:
                    there[k] = here[b]
                    b += 1
        here, there = there, here
        width *= 2
    return here


@compiled
def _count_categories(
    line: Int32Array, packed: Int32Array, start: int, end: int, codes: Int32Array, counts: FloatArray
) -> int:
    """Write down the categories of a node and their counts; how many they are."""
    size = 0
    for i in range(start, end):
        item = packed[line[i]]
        if i == start or codes[size - 1] != item >> 1:
            codes[size] = item >> 1
            counts[0, size] = counts[1, size] = 0.0
            size += 1
        counts[item & 1, size - 1] += 1.0
    return size


@compiled
def _nominal_cut(by_share: Int32Array, counts: FloatArray, n0: int, n1: int, minbucket: int) -> tuple[float, int, bool]:
    """Improvement of the best subset, how many categories in order of share it holds, and whether it is the left.

    For two classes the best of all subsets holds the first few categories in this order (Breiman et al. 1984, 4.2.2).
    """
    whole = _node_loss(n0, n1)
    best, where, first_left = whole, 0, False
    left0, left1 = 0.0, 0.0
    for k in range(len(by_share) - 1):
        left0 += counts[0, by_share[k]]
        left1 += counts[1, by_share[k]]
        right0, right1 = n0 - left0, n1 - left1
        if left0 + left1 >= minbucket and right0 + right1 >= minbucket:
            loss = _loss(left0, left1, right0, right1)
            if loss < best:
                best, where = loss, k + 1
                first_left = left1 / (left0 + left1) < right1 / (right0 + right1)
    return whole - best, where, first_left


@compiled
def _place_cut(
    line: Int32Array, packed: Int32Array, start: int, end: int, where: int, values: FloatArray
) -> tuple[int, float]:
    """First code above the cut, and the threshold: halfway between the values on its two sides.

    Halfway between neighbouring floats is one of the two, and halfway between huge ones is infinite. rpart then sends
    rows by comparing them with the threshold, not by where the cut was meant; so does this. Missing and infinite
    values, which rpart does not rank, are cut where it was meant.
    """
    low, high = values[packed[line[start + where - 1]] >> 1], values[packed[line[start + where]] >> 1]
    if not (np.isfinite(low) and np.isfinite(high)):
        return packed[line[start + where]] >> 1, high
    middle = (low + high) / 2
    place = start + where
    while place > start and values[packed[line[place - 1]] >> 1] >= middle:
        place -= 1
    while place < end and values[packed[line[place]] >> 1] < middle:
        place += 1
    return (packed[line[place]] >> 1 if place < end else (packed[line[end - 1]] >> 1) + 1), middle


@compiled
def _rearrange(order: Int32Array, goes_left: NDArray[np.uint8], start: int, end: int, spare: Int32Array) -> int:
    """Rows of the left child first, in every column, otherwise in the same order; how many they are."""
    place = start
    for j in range(len(order)):
        line = order[j]
        place, kept = start, 0
        for i in range(start, end):
            row = line[i]
            if goes_left[row]:
                line[place] = row
                place += 1
            else:
                spare[kept] = row
                kept += 1
        for i in range(kept):
            line[place + i] = spare[i]
    return place - start


@compiled
def _enlarge(ints: IntArray, floats: FloatArray) -> tuple[IntArray, FloatArray]:
    """The same with room for twice as many nodes."""
    more_ints = np.empty((2 * len(ints), ints.shape[1]), np.int64)
    more_floats = np.empty((2 * len(ints), floats.shape[1]))
    for i in range(len(ints)):  # one by one: assigning slices would take ten times as long to compile
        for j in range(ints.shape[1]):
            more_ints[i, j] = ints[i, j]
        for j in range(floats.shape[1]):
            more_floats[i, j] = floats[i, j]
    return more_ints, more_floats


@compiled
def _split(
    node: IntArray,
    numbers: FloatArray,
    largest: float,
    columns: GrowthColumns,
    minbucket: int,
    scratch: tuple[NDArray[np.uint8], Int32Array, FloatArray],
) -> float:
    """Find the best split of a node, write it down and mark the rows of the left child.

    Returns the largest improvement seen so far in the tree; the node's own stays zero where no split is worth doing.
    The first of equally good columns wins.
    """
    order, packed, values, first, nominal = columns
    goes_left, spare, counts = scratch
    start, end, n0, n1 = node[START], node[END], node[ORIGINAL], node[SYNTHETIC]
    best, column, where, left = 0.0, -1, 0, False
    for j in range(len(order)):
        line, own = order[j], packed[j]
        if (own[line[start]] ^ own[line[end - 1]]) <= 1:
            continue  # a constant
        if nominal[j]:
            by_share = _by_share(counts, _count_categories(line, own, start, end, spare, counts))
            improvement, cut, below_left = _nominal_cut(by_share, counts, n0, n1, minbucket)
        else:
            improvement, cut, below_left = _ordered_cut(line, own, start, end, n0, n1, minbucket)
        largest = max(largest, improvement)
        if improvement > largest * _NEGLIGIBLE and improvement > best:
            best, column, where, left = improvement, j, cut, below_left
    if column < 0:
        return largest
    line, own = order[column], packed[column]
    if nominal[column]:
        # counted again: a later column may have used the same space
        size = _count_categories(line, own, start, end, spare, counts)
        by_share = _by_share(counts, size)
        for k in range(size):
            counts[0, by_share[k]] = k < where
        k = 0
        for i in range(start, end):
            while spare[k] != own[line[i]] >> 1:
                k += 1
            goes_left[line[i]] = (counts[0, k] == 1.0) == left
    else:
        node[CUT], numbers[THRESHOLD] = _place_cut(line, own, start, end, where, values[first[column] :])
        for i in range(start, end):
            goes_left[line[i]] = (own[line[i]] >> 1 < node[CUT]) == left
    node[COLUMN], node[BELOW_LEFT], numbers[IMPROVEMENT] = column, left, best
    return largest


@compiled
def _settle(me: int, ints: IntArray, floats: FloatArray, alpha: float) -> bool:
    """Complexity of a node from its grown children; whether its split reaches alpha and so may stay.

    The complexity is the risk that a split saves, for each split below that does not fall before it. A child falls
    first if its own complexity is the smaller one.
    """
    left, right = ints[me, LEFT], ints[me, RIGHT]
    risk = min(ints[me, ORIGINAL], ints[me, SYNTHETIC])
    left_risk, left_splits = floats[left, RISK_BELOW], ints[left, SPLITS]
    right_risk, right_splits = floats[right, RISK_BELOW], ints[right, SPLITS]
    complexity = (risk - (left_risk + right_risk)) / (left_splits + right_splits + 1)
    left_first = floats[right, COMPLEXITY] > floats[left, COMPLEXITY]
    for turn in range(2):
        child = left if left_first == (turn == 0) else right
        if complexity <= floats[child, COMPLEXITY]:
            break
        if child == left:
            left_risk, left_splits = float(min(ints[left, ORIGINAL], ints[left, SYNTHETIC])), 0
        else:
            right_risk, right_splits = float(min(ints[right, ORIGINAL], ints[right, SYNTHETIC])), 0
        complexity = (risk - (left_risk + right_risk)) / (left_splits + right_splits + 1)
    floats[me, COMPLEXITY] = complexity
    if complexity <= alpha:
        floats[me, RISK_BELOW], ints[me, SPLITS] = risk, 0
        return False
    floats[me, RISK_BELOW], ints[me, SPLITS] = left_risk + right_risk, left_splits + right_splits + 1
    return True


@compiled
def grow(
    columns: GrowthColumns, synthetic: int, alpha: float, minsplit: int, minbucket: int, maxdepth: int
) -> tuple[Any, Any]:
    """Grow the tree, left child before right, and undo each split that turns out not to reach alpha.

    Args:
        columns: The rows by column.
        synthetic: How many rows are synthetic.
        alpha: Least saved risk for each split: cp times the risk of the root.
        minsplit: Rows that a node needs to be split.
        minbucket: Rows that each child needs.
        maxdepth: Splits on the way to a leaf at most.
    """
    order, packed = columns[0], columns[1]
    rows = order.shape[1]
    goes_left, spare = np.empty(rows, np.uint8), np.empty(rows, np.int32)
    scratch = goes_left, spare, np.empty((2, rows))
    ints, floats = np.empty((_ROOM, _INTS), np.int64), np.empty((_ROOM, _FLOATS))
    ints[0], floats[0] = 0, 0.0
    ints[0, NUMBER], ints[0, END], ints[0, ORIGINAL], ints[0, SYNTHETIC] = 1, rows, rows - synthetic, synthetic
    ints[0, COLUMN] = ints[0, PARENT] = -1
    floats[0, COMPLEXITY] = min(rows - synthetic, synthetic)
    me, size, largest = 0, 1, 0.0
    while me >= 0:
        if size == len(ints):
            ints, floats = _enlarge(ints, floats)
        start, end = ints[me, START], ints[me, END]
        risk = float(min(ints[me, ORIGINAL], ints[me, SYNTHETIC]))
        if ints[me, PHASE] == _ENTER:
            # What this split could save at most, given what the splits above left to be saved.
            hope = min(risk, floats[me, COMPLEXITY])
            if end - start >= minsplit and hope > alpha and ints[me, NUMBER] < 1 << maxdepth:
                largest = _split(ints[me], floats[me], largest, columns, minbucket, scratch)
            if ints[me, COLUMN] < 0:
                floats[me, COMPLEXITY], floats[me, RISK_BELOW] = alpha, risk
                me = ints[me, PARENT]
                continue
            child_start, child_end = start, start + _rearrange(order, goes_left, start, end, spare)
            ints[me, LEFT], ints[me, PHASE] = size, _LEFT_DONE
        elif ints[me, PHASE] == _LEFT_DONE:
            left = ints[me, LEFT]
            hope = (risk - floats[left, RISK_BELOW]) / (ints[left, SPLITS] + 1)
            hope = max(hope, risk - min(ints[left, ORIGINAL], ints[left, SYNTHETIC]))
            hope = min(hope, floats[me, COMPLEXITY])
            child_start, child_end = ints[left, END], end
            ints[me, RIGHT], ints[me, PHASE] = size, _BOTH_DONE
        else:
            if not _settle(me, ints, floats, alpha):
                size = me + 1  # whatever stands after it is below it
                ints[me, COLUMN] = -1
            me = ints[me, PARENT]
            continue
        ints[size], floats[size] = 0, 0.0
        ints[size, NUMBER] = 2 * ints[me, NUMBER] + (ints[me, PHASE] == _BOTH_DONE)
        ints[size, START], ints[size, END], ints[size, PARENT], ints[size, COLUMN] = child_start, child_end, me, -1
        for i in range(child_start, child_end):
            ints[size, SYNTHETIC] += packed[0, order[0, i]] & 1
        ints[size, ORIGINAL] = child_end - child_start - ints[size, SYNTHETIC]
        floats[size, COMPLEXITY] = hope - alpha
        me, size = size, size + 1
    return ints[:size], floats[:size]
