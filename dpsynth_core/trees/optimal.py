"""The tree of depth at most two that tells synthetic from original rows best: the exact optimum, not a greedy one.

The score is pMSE = (1/N) sum_i (p_i - c)^2 (Snoke & Slavković, section 3.1), with p_i the share of synthetic rows in
row i's leaf and c their share overall. A leaf with a synthetic and o original rows contributes
((1 - c) a - c o)^2 / (a + o); for tables of equal size that is (a - o)^2 / (4 (a + o)).

The trees are those with cuts from ``dpsynth_core.trees.cuts``: made from the synthetic table alone. The maximum over
such a family moves by less than 1/N when an original row is replaced (1/(2n) for equal sizes): docs/proofs.md. A greedy
tree, which is what CART grows, has no such bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import BoolArray, Int32Array, IntArray
from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.trees.columns import TableLike
from dpsynth_core.trees.cuts import ColumnCells, CutTable
from dpsynth_core.trees.search import best_root, best_stump

MAX_BINS = 1024
"""Tables of two columns' cells have at most about its square."""
_ROUNDING = 1e-12
"""A relative gain below this is none."""


@dataclass(frozen=True, kw_only=True)
class OptimalLeaf:
    """Rows that the tree does not tell apart."""

    synthetic: int
    """Synthetic rows in it (a)."""
    original: int
    """Original rows in it (o)."""


@dataclass(frozen=True, kw_only=True)
class OptimalSplit:
    """A question that sends rows to one of two subtrees."""

    variable: str
    """Column that is asked about."""
    cut: str
    """What rows inside satisfy, in words."""
    inside: OptimalNode
    """Rows that do."""
    outside: OptimalNode
    """Rows that do not."""


OptimalNode: TypeAlias = OptimalLeaf | OptimalSplit


@dataclass(frozen=True, kw_only=True)
class OptimalTree:
    """A best tree, and how well it does."""

    pmse: float
    """Mean squared distance of the leaves' shares of synthetic rows from the overall share: 0 to 1/4."""
    root: OptimalNode
    """Its first question, or a leaf if none helps."""

    def leaves(self) -> tuple[OptimalLeaf, ...]:
        """From inside to outside."""
        return _leaves(self.root)


def optimal_tree_pmse(original: TableLike, synthetic: TableLike, depth: int = 2, bins: int = 32) -> float:
    """How well the best tree of a depth tells the tables apart: 0 not at all, 1/4 perfectly (equal sizes).

    Args:
        original: Private rows. The result is private too.
        synthetic: Rows with the same columns; decides where the tree may cut.
        depth: Questions on a path: 0, 1 or 2.
        bins: At most so many thresholds for a column of numbers, or categories with a cut of their own.

    Example:
        >>> optimal_tree_pmse(original=[1.0, 2.0, 3.0, 9.0], synthetic=[1.0, 2.0, 3.0, 4.0])  # 9 stands out
        0.0625
    """
    depth, table = _check(original, synthetic, depth, bins)
    if depth == 0:
        return 0.0
    gain = _SEARCHES[depth](table.synthetic, table.original, *_pack(table.cells))[0]
    rows_made = int(table.synthetic.shape[1])
    rows = rows_made + int(table.original.shape[1])
    # sum ((1-c) a - c o)^2 / (a+o) = sum a^2 / (a+o) - m^2 / N: the search needs no more than the first sum.
    return float(max(0.0, gain - rows_made * rows_made / rows)) / rows


def optimal_tree(original: TableLike, synthetic: TableLike, *, depth: int = 2, bins: int = 32) -> OptimalTree:
    """The best tree itself; parameters as for ``optimal_tree_pmse``."""
    depth, table = _check(original, synthetic, depth, bins)
    every = np.ones(table.synthetic.shape[1], dtype=bool), np.ones(table.original.shape[1], dtype=bool)
    root = _subtree(table, *every, depth)
    made, given = int(table.synthetic.shape[1]), int(table.original.shape[1])
    share = made / (made + given)
    gains = [((1 - share) * f.synthetic - share * f.original) ** 2 / (f.synthetic + f.original) for f in _leaves(root)]
    return OptimalTree(pmse=sum(gains) / (made + given), root=root)


def warm_up() -> None:
    """Compile now (or load what an earlier process compiled), so that nobody waits for it later."""
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    for depth in (1, 2):
        optimal_tree_pmse(table, table, depth=depth)


def _check(original: TableLike, synthetic: TableLike, depth: int, bins: int) -> tuple[int, CutTable]:
    if isinstance(depth, bool) or depth not in (0, 1, 2):
        raise ParameterError("depth", depth, allowed="0, 1 or 2", remedy="Deeper trees: dpsynth_core.trees.cart.")
    check_int("bins", bins, 1, MAX_BINS)
    return depth, CutTable.of(original, synthetic, bins=bins)


def _pack(cells: tuple[ColumnCells, ...]) -> tuple[IntArray, IntArray]:
    """For compiled code: how many cells each column has and whether they are nominal."""
    return np.array([c.size for c in cells]), np.array([c.nominal for c in cells], dtype=np.int64)


def _split(table: CutTable, made: BoolArray, given: BoolArray, column: int, cut: int, depth: int) -> OptimalNode:  # noqa: PLR0917
    cells = table.cells[column]

    def inside(rows: Int32Array) -> BoolArray:
        held: BoolArray = rows[column] == cut if cells.nominal else rows[column] <= cut
        return held

    a, o = inside(table.synthetic), inside(table.original)
    held = np.count_nonzero(made & a) + np.count_nonzero(given & o)
    if held in (0, np.count_nonzero(made) + np.count_nonzero(given)):
        return _subtree(table, made, given, depth - 1)  # a question that all answer alike
    return OptimalSplit(
        variable=table.columns[column],
        cut=cells.describe(cut),
        inside=_subtree(table, made & a, given & o, depth - 1),
        outside=_subtree(table, made & ~a, given & ~o, depth - 1),
    )


def _subtree(table: CutTable, made: BoolArray, given: BoolArray, depth: int) -> OptimalNode:
    """The best tree for some of the rows; a leaf where no cut helps."""
    a, o = int(np.count_nonzero(made)), int(np.count_nonzero(given))
    if depth and a and o:
        rows = np.ascontiguousarray(table.synthetic[:, made]), np.ascontiguousarray(table.original[:, given])
        gain, column, cut = _SEARCHES[depth](*rows, *_pack(table.cells))
        if gain > a * a / (a + o) * (1 + _ROUNDING):
            return _split(table, made, given, int(column), int(cut), depth)
    return OptimalLeaf(synthetic=a, original=o)


def _leaves(node: OptimalNode) -> tuple[OptimalLeaf, ...]:
    return (node,) if isinstance(node, OptimalLeaf) else (*_leaves(node.inside), *_leaves(node.outside))


_SEARCHES = {1: best_stump, 2: best_root}
"""By depth."""
