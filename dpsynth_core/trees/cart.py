"""Greedy classification trees with the semantics of R's rpart, and the pMSE they give.

``fit_tree`` grows the tree that ``rpart(synthetic ~ ., method = "class")`` grows: splits by Gini impurity, first of
equals first; a split stays only if it and those below it save at least ``cp`` of the root's misclassified rows for each
split. Agreement is node by node (tests/trees/rpart_reference.json), with one exception: missing values are a value of
their own here, where rpart uses surrogate splits (see ``coded``).

How well a tree tells two tables apart is computed from the original rows: it is as private as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray, Int32Array, IntArray
from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.trees import growth
from dpsynth_core.trees.coded import CodedKind, CodedTable
from dpsynth_core.trees.columns import TableLike
from dpsynth_core.trees.descriptions import CodeRange, CodeSet

MAX_DEPTH = 30
"""rpart's own limit."""


@dataclass(frozen=True, kw_only=True)
class CartSplit:
    """How a node is divided. As in rpart, the right child is the one with the larger share of synthetic rows."""

    column: str
    kind: CodedKind
    threshold: float | None
    """Rows below it, and rows without a value, go to one side; None for unordered categories. Dates count in
    microseconds since 1970, ordered categories from one."""
    below_left: bool
    """Whether the rows below the threshold are the left child."""
    left: tuple[str | None, ...]
    right: tuple[str | None, ...]
    """Categories of the left and of the right child, None for missing; empty where there is a threshold."""
    improvement: float
    """Rows times Gini impurity, before less after."""


@dataclass(frozen=True, kw_only=True)
class CartNode:
    number: int
    """One for the root; the children of k are 2k (left) and 2k + 1 (right)."""
    original: int
    synthetic: int
    split: CartSplit | None
    """None for a leaf."""
    complexity: float
    """Largest cp at which this node would be split; the fit's own cp for a leaf."""
    where: str
    """What its rows have in common, in words; empty for the root."""

    @property
    def leaf(self) -> bool:
        return self.split is None

    @property
    def depth(self) -> int:
        """Splits between the root and this node."""
        return self.number.bit_length() - 1

    @property
    def rows(self) -> int:
        return self.original + self.synthetic

    @property
    def share(self) -> float:
        """Share of synthetic rows: the propensity score of every row in it."""
        return self.synthetic / self.rows


@dataclass(frozen=True, kw_only=True)
class CartTree:
    """A tree that tells original from synthetic rows."""

    columns: tuple[str, ...]
    """In the order in which splits were tried."""
    nodes: tuple[CartNode, ...]
    """Root first, each followed by all of its left side, then all of its right side."""

    @property
    def leaves(self) -> int:
        return sum(node.leaf for node in self.nodes)

    @property
    def pmse(self) -> float:
        """Mean square of a row's propensity score less the overall share of synthetic rows."""
        counts = np.array([[node.original, node.synthetic] for node in self.nodes if node.leaf])
        return _pmse(counts[:, 0], counts[:, 1])

    @property
    def importance(self) -> dict[str, float]:
        """Sum of the improvements of each column's splits, largest first.

        rpart also credits a column for the splits it could have stood in for; that is left out: this says what the
        tree used, not what it could have used.
        """
        total = dict.fromkeys(self.columns, 0.0)
        for node in self.nodes:
            if node.split:
                total[node.split.column] += node.split.improvement
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def in_words(self, splits: int = 3) -> list[str]:
        """Both sides of the first splits, from the root down, as plain sentences.

        Column names and categories are those of the tables: show the sentences as text, never as markup.

        Example:
            >>> import pandas as pd
            >>> tree = fit_tree(pd.DataFrame({"age": [30] * 20}), pd.DataFrame({"age": [30] * 5 + [41] * 15}))
            >>> tree.in_words()
            ['age 40 or more: all of the rows are synthetic.', 'age below 40: 20% of the rows are synthetic.']
        """
        by_number = {node.number: node for node in self.nodes}
        first = sorted(number for number, node in by_number.items() if not node.leaf)[:splits]
        if not first:
            return ["The tree finds no difference between original and synthetic rows."]
        told = [by_number[child] for number in first for child in (2 * number + 1, 2 * number)]
        return [f"{node.where}: {_percent(node)} of the rows are synthetic." for node in told]


def cart_pmse(  # noqa: PLR0917  rpart's parameters, in the order that the design gives
    original: TableLike,
    synthetic: TableLike,
    cp: float = 0.001,
    minsplit: int = 20,
    minbucket: int = 7,
    maxdepth: int = 30,
) -> float:
    """How well a greedy tree tells two tables apart: 0 not at all, c (1 - c) perfectly, c the share of synthetic rows.

    The propensity mean squared error of Snoke & Slavković (2018, section 3.1), with c in the place of their 1/2, which
    is the same where the tables are equally long. Two samples from the same law do not give 0: a tree also fits noise.

    Args:
        original: A DataFrame, or an array with a column for each variable.
        synthetic: The same columns; any number of rows.
        cp: Share of the root's misclassified rows that each split must save.
        minsplit: Rows that a node needs to be split.
        minbucket: Rows that each child needs.
        maxdepth: Splits on the way to a leaf at most.

    Example:
        >>> cart_pmse([[0.0]] * 10, [[1.0]] * 10)
        0.25
    """
    table = CodedTable.of(original, synthetic)
    nodes, _, _ = _grown(table, cp=cp, minsplit=minsplit, minbucket=minbucket, maxdepth=maxdepth)
    leaves = nodes[nodes[:, growth.COLUMN] < 0]
    return _pmse(leaves[:, growth.ORIGINAL], leaves[:, growth.SYNTHETIC])


def fit_tree(
    original: TableLike,
    synthetic: TableLike,
    *,
    cp: float = 0.001,
    minsplit: int = 20,
    minbucket: int = 7,
    maxdepth: int = 30,
) -> CartTree:
    """The tree behind ``cart_pmse``, whose arguments it shares."""
    table = CodedTable.of(original, synthetic)
    nodes, numbers, order = _grown(table, cp=cp, minsplit=minsplit, minbucket=minbucket, maxdepth=maxdepth)
    conditions: list[dict[int, CodeRange | CodeSet]] = []
    complexity: list[float] = []
    root_risk = min(table.original, table.synthetic)
    codes_of = [_present_codes(table, nodes, order, node) for node in range(len(nodes))]
    for node in range(len(nodes)):
        parent = int(nodes[node, growth.PARENT])
        conditions.append({} if parent < 0 else _narrowed(table, nodes, node, conditions[parent], codes_of[node]))
        own = float(numbers[node, growth.COMPLEXITY]) / root_risk
        # A split cannot outlive the one above it.
        complexity.append(own if parent < 0 else min(own, complexity[parent]))
    children = _children(nodes)
    return CartTree(
        columns=tuple(column.name for column in table.columns),
        nodes=tuple(
            CartNode(
                number=int(nodes[node, growth.NUMBER]),
                original=int(nodes[node, growth.ORIGINAL]),
                synthetic=int(nodes[node, growth.SYNTHETIC]),
                split=_split(table, nodes[node], numbers[node], [codes_of[child] for child in children[node]]),
                complexity=complexity[node],
                where=", and ".join(held.descriptions(table.columns[j]) for j, held in conditions[node].items()),
            )
            for node in range(len(nodes))
        ),
    )


def warm_up() -> None:
    """Compile now (or load what an earlier process compiled), so that nobody waits for it later."""
    first, second = ([[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [2.0, 1.0]])
    fit_tree(first, second, minsplit=2, minbucket=1)


def _grown(
    table: CodedTable, *, cp: float, minsplit: int, minbucket: int, maxdepth: int
) -> tuple[IntArray, FloatArray, Int32Array]:
    """Nodes as growth.py describes them, and the rows by node."""
    if isinstance(cp, bool) or not isinstance(cp, int | float | np.number) or not 0 <= float(cp) < math.inf:
        raise ParameterError("cp", cp, allowed="a number from 0", remedy="Choose for instance 0.001.")
    for name, value in (("minsplit", minsplit), ("minbucket", minbucket), ("maxdepth", maxdepth)):
        high = MAX_DEPTH if name == "maxdepth" else 2**31
        check_int(name, value.item() if isinstance(value, np.integer) else value, 1, high)
    order = np.stack([column.order for column in table.columns])
    values = np.concatenate([column.values for column in table.columns])
    first = np.cumsum([0, *(len(column.values) for column in table.columns[:-1])], dtype=np.int64)
    nominal = np.array([column.kind == "categorical" for column in table.columns])
    columns = order, table.packed, values, first, nominal
    alpha = float(cp) * min(table.original, table.synthetic)
    nodes, numbers = growth.grow(columns, table.synthetic, alpha, int(minsplit), int(minbucket), int(maxdepth))
    return nodes, numbers, order


def _pmse(original: IntArray, synthetic: IntArray) -> float:
    """Mean over all rows of (p - c)^2, p the share of synthetic rows in the row's leaf (section 3.1)."""
    rows = original + synthetic
    c = float(synthetic.sum() / rows.sum())
    mean = float(rows @ np.square(synthetic / rows - c) / rows.sum())
    return min(mean, c * (1 - c))  # rounding may exceed what perfect separation gives


def _present_codes(table: CodedTable, nodes: IntArray, order: Int32Array, node: int) -> tuple[int, ...]:
    """Categories in a node, in the column that its parent was split by; empty where that column has an order."""
    parent = int(nodes[node, growth.PARENT])
    column = int(nodes[parent, growth.COLUMN])
    if parent < 0 or table.columns[column].kind != "categorical":
        return ()
    rows = order[column, nodes[node, growth.START] : nodes[node, growth.END]]
    return tuple(np.unique(table.columns[column].codes[rows]).tolist())


def _narrowed(
    table: CodedTable, nodes: IntArray, node: int, above: dict[int, CodeRange | CodeSet], codes: tuple[int, ...]
) -> dict[int, CodeRange | CodeSet]:
    """The conditions of a node: its parent's, and what the parent's split adds."""
    parent = nodes[int(nodes[node, growth.PARENT])]
    column = int(parent[growth.COLUMN])
    if codes:
        return {**above, column: CodeSet(codes=codes)}
    held = above.get(column, CodeRange(first=0, last=len(table.columns[column].values)))
    assert isinstance(held, CodeRange)  # noqa: S101  a column is ordered or it is not
    is_left = int(nodes[node, growth.NUMBER]) % 2 == 0
    cut = int(parent[growth.CUT])
    below = is_left == bool(parent[growth.BELOW_LEFT])
    narrowed = CodeRange(first=held.first, last=cut) if below else CodeRange(first=cut, last=held.last)
    return {**above, column: narrowed}


def _children(nodes: IntArray) -> list[list[int]]:
    """Left and right child of each node."""
    children: list[list[int]] = [[] for _ in range(len(nodes))]
    for node in range(1, len(nodes)):
        children[int(nodes[node, growth.PARENT])].append(node)
    return children


def _split(table: CodedTable, node: IntArray, numbers: FloatArray, codes: list[tuple[int, ...]]) -> CartSplit | None:
    if node[growth.COLUMN] < 0:
        return None
    column = table.columns[int(node[growth.COLUMN])]
    nominal = column.kind == "categorical"
    left, right = (
        tuple(None if code == column.missing else column.labels[code] for code in side) if nominal else ()
        for side in codes
    )
    return CartSplit(
        column=column.name,
        kind=column.kind,
        threshold=None if nominal else float(numbers[growth.THRESHOLD]),
        below_left=bool(node[growth.BELOW_LEFT]),
        left=left,
        right=right,
        improvement=float(numbers[growth.IMPROVEMENT]),
    )


def _percent(node: CartNode) -> str:
    if node.synthetic in (0, node.rows):
        return "all" if node.synthetic else "none"
    percent = round(100 * node.share)
    return "less than 1%" if not percent else "more than 99%" if percent == 100 else f"{percent}%"
