"""The tree of depth at most two that tells synthetic from original rows best: the exact optimum, not a greedy one.

The score is pMSE = (1/N) sum_i (p_i - c)^2 (Snoke & Slavković, section 3.1), with p_i the share of synthetic rows in
row i's leaf and c their share overall. A leaf with a synthetic and o original rows contributes
((1 - c) a - c o)^2 / (a + o); for tables of equal size that is (a - o)^2 / (4 (a + o)).

The trees are those with cuts from ``dpsynth_core.trees.cuts``: made from the synthetic table alone. The maximum over
such a family moves by less than 1/N when an original row is replaced (1/(2n) for equal sizes): docs/proofs.md. A greedy
tree, which is what CART grows, has no such bound.
"""

from __future__ import annotations

import numpy as np

from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.trees.columns import TableLike
from dpsynth_core.trees.cuts import CutTable
from dpsynth_core.trees.search import best_root, best_stump

MAX_BINS = 1024
"""Tables of two columns' cells have at most about its square."""


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
    if isinstance(depth, bool) or depth not in (0, 1, 2):
        raise ParameterError("depth", depth, allowed="0, 1 or 2", remedy="Deeper trees: dpsynth_core.trees.cart.")
    check_int("bins", bins, 1, MAX_BINS)
    table = CutTable.of(original, synthetic, bins=bins)
    if depth == 0:
        return 0.0
    sizes = np.array([column.size for column in table.cells])
    nominal = np.array([column.nominal for column in table.cells], dtype=np.int64)
    gain = (best_stump if depth == 1 else best_root)(table.synthetic, table.original, sizes, nominal)
    rows_made = int(table.synthetic.shape[1])
    rows = rows_made + int(table.original.shape[1])
    # sum ((1-c) a - c o)^2 / (a+o) = sum a^2 / (a+o) - m^2 / N: the search needs no more than the first sum.
    return float(max(0.0, gain - rows_made * rows_made / rows)) / rows


def warm_up() -> None:
    """Compile now (or load what an earlier process compiled), so that nobody waits for it later."""
    table = np.arange(2_048.0).reshape(-1, 2)  # as many rows as it takes for quantiles without sorting
    for depth in (1, 2):
        optimal_tree_pmse(table, table, depth=depth)
