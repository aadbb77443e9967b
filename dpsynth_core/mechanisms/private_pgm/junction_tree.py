"""Exact inference in NumPy: the distribution that potentials over cliques define, on a junction tree of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable, summed_product

Clique: TypeAlias = tuple[int, ...]
"""Variables in ascending order."""
CliqueTables: TypeAlias = Mapping[Clique, FloatArray]
"""A table for each clique, with one axis for each of its variables."""
Edge: TypeAlias = tuple[int, int]
"""From one node of the tree to a neighbour."""


def eliminated(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> list[Clique]:
    """Maximal cliques of a chordal graph that holds all of these, by eliminating the cheapest variable first."""
    neighbours: dict[int, set[int]] = {variable: set() for variable in range(len(sizes))}
    for clique in cliques:
        for variable in clique:
            neighbours[variable] |= set(clique) - {variable}
    found: list[frozenset[int]] = []
    while neighbours:
        cost = {v: math.prod(sizes[other] for other in (*near, v)) for v, near in neighbours.items()}
        variable = min(cost, key=lambda name: (cost[name], name))
        near = neighbours.pop(variable)
        together = frozenset(near | {variable})
        if not any(together <= other for other in found):
            found.append(together)
        for other in near:
            neighbours[other] = (neighbours[other] | near) - {other, variable}
    return [tuple(sorted(clique)) for clique in found]


def table_cells(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> list[int]:
    """Cells of each table that exact inference needs."""
    return [math.prod(sizes[variable] for variable in clique) for clique in eliminated(sizes, cliques)]


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """A maximal clique, with the variables that it shares with its parent first."""

    clique: Clique
    """Separator, then what is new."""
    separator: Clique
    parent: int | None

    @property
    def new(self) -> Clique:
        return self.clique[len(self.separator) :]


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    sizes: tuple[int, ...]
    nodes: tuple[TreeNode, ...]
    """Parents before children; the first is the root."""

    @classmethod
    def of(cls, sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> JunctionTree:
        """A tree of maximal cliques that holds all of these: a spanning tree of largest separators (Prim)."""
        sets = [frozenset(clique) for clique in eliminated(sizes, cliques)]
        joined = {0}
        nearest = {j: (len(sets[0] & sets[j]), 0) for j in range(1, len(sets))}
        index, nodes = {0: 0}, [TreeNode(clique=tuple(sorted(sets[0])), separator=(), parent=None)]
        while len(joined) < len(sets):
            j = max(nearest, key=lambda k: (nearest[k][0], -k))
            parent = nearest.pop(j)[1]
            separator = tuple(sorted(sets[j] & sets[parent]))
            index[j] = len(nodes)
            new = tuple(sorted(sets[j] - sets[parent]))
            nodes.append(TreeNode(clique=separator + new, separator=separator, parent=index[parent]))
            joined.add(j)
            for k, (size, _) in nearest.items():
                if len(sets[j] & sets[k]) > size:
                    nearest[k] = (len(sets[j] & sets[k]), j)
        return cls(sizes=tuple(sizes), nodes=tuple(nodes))

    @cached_property
    def cells(self) -> int:
        """Of all tables together."""
        return sum(math.prod(self.shape(node.clique)) for node in self.nodes)

    def shape(self, variables: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.sizes[variable] for variable in variables)

    def home(self, clique: Sequence[int]) -> int | None:
        """The smallest node that holds these variables."""
        wanted = frozenset(clique)
        holding = [i for i, node in enumerate(self.nodes) if wanted <= frozenset(node.clique)]
        return min(holding, key=lambda i: math.prod(self.shape(self.nodes[i].clique)), default=None)

    def added_cells(self, pair: Clique) -> int:
        """Cells that the tree grows by, at most, if it is to hold this pair as well.

        One of the two variables is added to every node on the way from the other's to its own; the last of these nodes
        holds both.
        """
        if self.home(pair) is not None:
            return 0
        first, second = pair
        return min(self._carried_cells(first, second), self._carried_cells(second, first))

    def _carried_cells(self, carried: int, to: int) -> int:
        """Cells that are added if one variable is carried along the tree to another."""
        starts = [i for i, node in enumerate(self.nodes) if carried in node.clique]
        cells = dict.fromkeys(starts, 0)
        waiting = list(starts)
        best = math.inf
        while waiting:
            i = waiting.pop()
            if to in self.nodes[i].clique:
                best = min(best, cells[i])
                continue
            for other in self.neighbours[i]:
                if other not in cells:
                    size = math.prod(self.shape(self.nodes[other].clique))
                    cells[other] = cells[i] + size * (self.sizes[carried] - 1)
                    waiting.append(other)
        return int(best)

    @cached_property
    def neighbours(self) -> dict[int, list[int]]:
        near: dict[int, list[int]] = {i: [] for i in range(len(self.nodes))}
        for i, node in enumerate(self.nodes):
            if node.parent is not None:
                near[i].append(node.parent)
                near[node.parent].append(i)
        return near

    def separator(self, edge: Edge) -> Clique:
        """What the two nodes of an edge share."""
        first, second = edge
        return self.nodes[second if self.nodes[second].parent == first else first].separator


@dataclass(frozen=True, kw_only=True)
class Coarsening:
    """How the cells of a clique's table are gathered into fewer: for each axis the coarser value of each finer one."""

    maps: tuple[IntArray, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(each.max()) + 1 for each in self.maps)

    @cached_property
    def _matrices(self) -> list[FloatArray | None]:
        """For each axis what sums its values, or None where they stay as they are."""
        return [
            None if size == len(each) else np.equal.outer(np.arange(size), each).astype(np.float64)
            for size, each in zip(self.shape, self.maps, strict=True)
        ]

    @cached_property
    def _index(self) -> tuple[IntArray, ...]:
        return np.ix_(*self.maps)

    def gather(self, table: FloatArray) -> FloatArray:
        """Sums over the finer cells."""
        for axis, matrix in enumerate(self._matrices):
            if matrix is None:
                continue
            if table.ndim <= 2:
                table = matrix @ table if axis == 0 else table @ matrix.T
            else:
                table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
        return table

    def spread(self, table: FloatArray) -> FloatArray:
        """Every finer cell gets its coarser one's value."""
        return np.asarray(table[self._index])


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where a clique's table goes in its node: which axes, in which order."""

    node: int
    order: tuple[int, ...]
    """The clique's axes in the order of the node's."""
    shape: tuple[int, ...]
    """With ones where the node has variables that the clique has not."""
    others: tuple[int, ...]
    """The node's axes that are summed out."""
    back: tuple[int, ...]
    """The order that undoes ``order``."""


class Inference:
    """Marginals of a distribution from its potentials, for one tree and a fixed list of cliques, or coarser ones."""

    def __init__(
        self, tree: JunctionTree, cliques: Sequence[Clique], coarser: Sequence[Coarsening | None] | None = None
    ) -> None:
        self.tree = tree
        self._coarser = coarser or [None] * len(cliques)
        self._placements = [self._place(clique) for clique in cliques]
        self._flat = [
            (math.prod(tree.shape(node.separator)), math.prod(tree.shape(node.new)), tree.shape(node.clique))
            for node in tree.nodes
        ]
        self._to_parent = [
            None if node.parent is None else self._place_in(node.separator, node.parent) for node in tree.nodes
        ]

    def _place(self, clique: Clique) -> Placement:
        node = self.tree.home(clique)
        assert node is not None, "the tree was made to hold it"  # noqa: S101
        return self._place_in(clique, node)

    def _place_in(self, clique: Clique, node: int) -> Placement:
        axes = self.tree.nodes[node].clique
        order = tuple(clique.index(v) for v in axes if v in clique)
        return Placement(
            node=node,
            order=order,
            shape=tuple(self.tree.sizes[v] if v in clique else 1 for v in axes),
            others=tuple(i for i, v in enumerate(axes) if v not in clique),
            back=tuple(int(i) for i in np.argsort(order)),
        )

    def conditionals(self, potentials: Sequence[FloatArray]) -> tuple[float, list[FloatArray]]:
        """The logarithm of the normalising sum, and each node's new variables given its separator."""
        logs = [np.zeros(shape) for _, _, shape in self._flat]
        for potential, coarser, place in zip(potentials, self._coarser, self._placements, strict=True):
            table = potential if coarser is None else coarser.spread(potential)
            logs[place.node] += table.transpose(place.order).reshape(place.shape)
        given: list[FloatArray] = [np.empty(0)] * len(logs)
        total = 0.0
        for i in range(len(logs) - 1, -1, -1):
            above, below, shape = self._flat[i]
            weights = logs[i].reshape(above, below)
            highest = weights.max(axis=1, keepdims=True)
            table = np.exp(weights - highest)
            summed = table.sum(axis=1, keepdims=True)
            table /= summed
            given[i] = table.reshape(shape)
            message = (np.log(summed) + highest)[:, 0]
            above_node = self._to_parent[i]
            if above_node is None:
                total = float(message[0])
            else:
                up = message.reshape(self.tree.shape(self.tree.nodes[i].separator))
                logs[above_node.node] += up.transpose(above_node.order).reshape(above_node.shape)
        return total, given

    def beliefs(self, given: Sequence[FloatArray]) -> list[FloatArray]:
        """Probabilities over each node's clique."""
        out: list[FloatArray] = []
        for i, table in enumerate(given):
            place = self._to_parent[i]
            if place is None:
                out.append(table)
                continue
            above, below, shape = self._flat[i]
            weight = out[place.node].sum(axis=place.others).transpose(place.back)
            out.append((table.reshape(above, below) * weight.reshape(above, 1)).reshape(shape))
        return out

    def marginals(self, beliefs: Sequence[FloatArray]) -> list[FloatArray]:
        """Probabilities over the cliques."""
        out = []
        for coarser, place in zip(self._coarser, self._placements, strict=True):
            table = np.asarray(beliefs[place.node].sum(axis=place.others).transpose(place.back))
            out.append(table if coarser is None else coarser.gather(table))
        return out


@dataclass(frozen=True, kw_only=True)
class FittedTree:
    """A distribution on a junction tree."""

    tree: JunctionTree
    given: tuple[FloatArray, ...]
    """Each node's new variables given its separator."""
    beliefs: tuple[FloatArray, ...]
    """Probabilities over each node's clique."""

    def tables(self) -> tuple[ConditionalTable, ...]:
        """In the order in which variables are drawn."""
        return tuple(
            ConditionalTable(parents=node.separator, children=node.new, probabilities=table)
            for node, table in zip(self.tree.nodes, self.given, strict=True)
        )

    def within(self, variables: Sequence[int], node: int) -> FloatArray:
        """Probabilities over variables of one node, in the order given."""
        return summed_product([(self.beliefs[node], self.tree.nodes[node].clique)], variables)

    def marginal(self, variables: Clique) -> FloatArray | None:
        """Probabilities over variables that lie in one node; None where no node holds them."""
        node = self.tree.home(variables)
        return None if node is None else self.within(variables, node)

    def singles(self) -> list[FloatArray]:
        """Probabilities of every variable."""
        return [self.within((v,), self.tree.home((v,)) or 0) for v in range(len(self.tree.sizes))]

    def pairs(self) -> dict[Clique, FloatArray]:
        """Probabilities of every pair of variables, exact.

        Within a node they are sums. Otherwise the variables behind an edge are carried along it as probabilities of
        each of them together with the separator, which is all that the nodes ahead depend on.
        """
        out: dict[Clique, FloatArray] = {}
        for i, node in enumerate(self.tree.nodes):
            for pair in combinations(sorted(node.clique), 2):
                if pair not in out:
                    out[pair] = self.within(pair, i)
        carried: dict[Edge, tuple[list[int], FloatArray]] = {}
        for edge in self._edges():
            behind, table = self._carry(edge, carried)
            carried[edge] = behind, table
            separator = self.tree.separator(edge)
            for variable in self.tree.nodes[edge[1]].clique:
                if variable in separator or all(_sorted(variable, other) in out for other in behind):
                    continue
                # P(behind, variable) = sum over the separator of P(behind, separator) P(variable | separator).
                ahead = self._given_separator((variable,), edge[1], separator)
                joint = table @ ahead.reshape(-1, self.tree.sizes[variable])
                start = 0
                for other in behind:
                    part = joint[start : start + self.tree.sizes[other]]
                    start += self.tree.sizes[other]
                    joined = _sorted(variable, other)
                    if joined not in out:
                        out[joined] = part if other < variable else part.T
        return out

    def _edges(self) -> list[Edge]:
        """All edges in both directions, each after those that lead to its beginning."""
        up = [(i, node.parent) for i, node in enumerate(self.tree.nodes) if node.parent is not None]
        return [*reversed(up), *((parent, child) for child, parent in up)]

    def _carry(self, edge: Edge, carried: Mapping[Edge, tuple[list[int], FloatArray]]) -> tuple[list[int], FloatArray]:
        """Variables behind an edge, and their probabilities together with its separator, one below the other."""
        source, target = edge
        separator = self.tree.separator(edge)
        cells = math.prod(self.tree.shape(separator))
        behind, rows = [], []
        for variable in self.tree.nodes[source].clique:
            if variable not in separator:
                behind.append(variable)
                rows.append(self.within((variable, *separator), source).reshape(-1, cells))
        for other in self.tree.neighbours[source]:
            if other == target:
                continue
            variables, table = carried[other, source]
            shared = self.tree.separator((other, source))
            ahead = tuple(v for v in separator if v not in shared)
            given = self._given_separator(ahead, source, shared)
            row = len(self.tree.sizes)  # a label that is no variable
            held = table.reshape(-1, *self.tree.shape(shared))
            moved = summed_product([(held, (row, *shared)), (given, (*shared, *ahead))], (row, *separator))
            behind += variables
            rows.append(moved.reshape(-1, cells))
        return behind, np.concatenate(rows) if rows else np.empty((0, cells))

    def _given_separator(self, variables: Clique, node: int, separator: Clique) -> FloatArray:
        """Probabilities of a node's variables given others of it, whose axes come first."""
        joint = self.within((*separator, *variables), node)
        axes = tuple(range(len(separator), joint.ndim))
        total = joint.sum(axis=axes, keepdims=True)
        return np.asarray(np.divide(joint, total, out=np.zeros_like(joint), where=total > 0))


def _sorted(first: int, second: int) -> Clique:
    return (first, second) if first < second else (second, first)
