"""Marginals of a distribution from its potentials, in plain NumPy: over all cells, or by messages along a forest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable

Clique: TypeAlias = tuple[int, ...]
CliqueTables: TypeAlias = Mapping[Clique, FloatArray]
"""A table for each clique, with one axis for each of its variables."""


class MarginalOracle(Protocol):
    """Turns potentials (logarithms, up to a constant) into the distribution they define."""

    def marginals(self, potentials: CliqueTables) -> dict[Clique, FloatArray]:
        """Probabilities over the same cliques."""

    def conditionals(self, potentials: CliqueTables) -> tuple[ConditionalTable, ...]:
        """The whole distribution as conditional tables."""


@dataclass(frozen=True, kw_only=True)
class DenseOracle:
    sizes: tuple[int, ...]

    def _joint(self, potentials: CliqueTables) -> FloatArray:
        total = np.zeros(self.sizes)
        for clique, table in potentials.items():
            total += np.expand_dims(table, self._others(clique))
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum())

    def _others(self, clique: Clique) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.sizes)) if axis not in clique)

    def marginals(self, potentials: CliqueTables) -> dict[Clique, FloatArray]:
        joint = self._joint(potentials)
        return {clique: np.asarray(joint.sum(axis=self._others(clique))) for clique in potentials}

    def conditionals(self, potentials: CliqueTables) -> tuple[ConditionalTable, ...]:
        return (ConditionalTable.of((), range(len(self.sizes)), self._joint(potentials)),)


@dataclass(frozen=True, kw_only=True)
class ForestOracle:
    """Passes messages along a forest: potentials over single variables, and over pairs that form no cycle."""

    sizes: tuple[int, ...]
    order: tuple[tuple[int, int | None], ...]
    """Every variable with its parent, parents first."""

    @classmethod
    def of(cls, sizes: Sequence[int], cliques: Sequence[Clique]) -> ForestOracle | None:
        """For these cliques; None if they are no forest."""
        neighbours: dict[int, set[int]] = {variable: set() for variable in range(len(sizes))}
        if any(len(clique) > 2 for clique in cliques):
            return None
        for first, second in (clique for clique in cliques if len(clique) == 2):
            neighbours[first].add(second)
            neighbours[second].add(first)
        order: dict[int, int | None] = {}
        for root in neighbours:
            waiting: list[tuple[int, int | None]] = [] if root in order else [(root, None)]
            while waiting:
                variable, parent = waiting.pop()
                if variable in order:
                    return None  # reached by two ways: a cycle
                order[variable] = parent
                waiting += [(other, variable) for other in sorted(neighbours[variable]) if other != parent]
        return cls(sizes=tuple(sizes), order=tuple(order.items()))

    def _beliefs(self, potentials: CliqueTables) -> tuple[dict[int, FloatArray], dict[int, FloatArray]]:
        """Probabilities of each variable, and of each one that has a parent given that parent (parent's axis first)."""
        up = {v: np.zeros(self.sizes[v]) + potentials.get((v,), 0.0) for v in range(len(self.sizes))}
        given: dict[int, FloatArray] = {}
        for variable, parent in reversed(self.order):
            if parent is None:
                continue
            pair = (min(parent, variable), max(parent, variable))
            edge = potentials[pair] if pair[0] == parent else potentials[pair].T
            weights = edge + up[variable]
            highest = weights.max(axis=1, keepdims=True)
            table = np.exp(weights - highest)
            total = table.sum(axis=1, keepdims=True)
            given[variable] = table / total
            up[parent] = up[parent] + (np.log(total) + highest)[:, 0]
        single: dict[int, FloatArray] = {}
        for variable, parent in self.order:
            if parent is None:
                weights = np.exp(up[variable] - up[variable].max())
                single[variable] = weights / weights.sum()
            else:
                single[variable] = single[parent] @ given[variable]
        return single, given

    def marginals(self, potentials: CliqueTables) -> dict[Clique, FloatArray]:
        """From beliefs: a pair's is the parent's times the child's given it."""
        single, given = self._beliefs(potentials)
        parents = dict(self.order)
        out: dict[Clique, FloatArray] = {}
        for clique in potentials:
            first, *rest = clique
            if not rest:
                out[clique] = single[first]
            elif parents[rest[0]] == first:
                out[clique] = single[first][:, None] * given[rest[0]]
            else:
                out[clique] = (single[rest[0]][:, None] * given[first]).T
        return out

    def conditionals(self, potentials: CliqueTables) -> tuple[ConditionalTable, ...]:
        single, given = self._beliefs(potentials)
        return tuple(
            ConditionalTable.of((), (variable,), single[variable])
            if parent is None
            else ConditionalTable(parents=(parent,), children=(variable,), probabilities=given[variable])
            for variable, parent in self.order
        )
