"""Marginals of a distribution from its potentials, in plain NumPy: over all cells, or along a forest's branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm.graphical import Step

Variables: TypeAlias = tuple[int, ...]
Tables: TypeAlias = Mapping[Variables, FloatArray]
"""A table for each set of variables, in ascending order."""


class Oracle(Protocol):
    """Turns potentials (logarithms, up to a constant) into the distribution they define."""

    def marginals(self, potentials: Tables) -> dict[Variables, FloatArray]:
        """Probabilities over the same sets of variables."""

    def steps(self, potentials: Tables) -> tuple[Step, ...]:
        """The whole distribution as conditional tables."""


@dataclass(frozen=True, kw_only=True)
class DenseOracle:
    """Keeps every joint cell."""

    sizes: tuple[int, ...]
    """Of the variables."""

    def _joint(self, potentials: Tables) -> FloatArray:
        total = np.zeros(self.sizes)
        for variables, table in potentials.items():
            total += np.expand_dims(table, self._others(variables))
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum())

    def _others(self, variables: Variables) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.sizes)) if axis not in variables)

    def marginals(self, potentials: Tables) -> dict[Variables, FloatArray]:
        """Sums over the joint cells."""
        joint = self._joint(potentials)
        return {variables: np.asarray(joint.sum(axis=self._others(variables))) for variables in potentials}

    def steps(self, potentials: Tables) -> tuple[Step, ...]:
        """All variables at once."""
        return (Step.of((), range(len(self.sizes)), self._joint(potentials)),)


@dataclass(frozen=True, kw_only=True)
class ForestOracle:
    """Passes messages along a forest: potentials over single variables, and over pairs that form no cycle."""

    sizes: tuple[int, ...]
    """Of the variables."""
    order: tuple[tuple[int, int | None], ...]
    """Every variable with its parent, parents first."""

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Sequence[Variables]) -> ForestOracle | None:
        """For these sets of variables; None if they are no forest."""
        near: dict[int, set[int]] = {variable: set() for variable in range(len(sizes))}
        if any(len(variables) > 2 for variables in sets):
            return None
        for first, second in (variables for variables in sets if len(variables) == 2):
            near[first].add(second)
            near[second].add(first)
        order: dict[int, int | None] = {}
        for root in near:
            waiting: list[tuple[int, int | None]] = [] if root in order else [(root, None)]
            while waiting:
                variable, parent = waiting.pop()
                if variable in order:
                    return None  # reached by two ways: a cycle
                order[variable] = parent
                waiting += [(other, variable) for other in sorted(near[variable]) if other != parent]
        return cls(sizes=tuple(sizes), order=tuple(order.items()))

    def _beliefs(self, potentials: Tables) -> tuple[dict[int, FloatArray], dict[int, FloatArray]]:
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

    def marginals(self, potentials: Tables) -> dict[Variables, FloatArray]:
        """From beliefs: a pair's is the parent's times the child's given it."""
        single, given = self._beliefs(potentials)
        parents = dict(self.order)
        out: dict[Variables, FloatArray] = {}
        for variables in potentials:
            if len(variables) == 1:
                out[variables] = single[variables[0]]
                continue
            first, second = variables
            if parents[second] == first:
                out[variables] = single[first][:, None] * given[second]
            else:
                out[variables] = (single[second][:, None] * given[first]).T
        return out

    def steps(self, potentials: Tables) -> tuple[Step, ...]:
        """Each variable given its parent."""
        single, given = self._beliefs(potentials)
        return tuple(
            Step.of((), (variable,), single[variable])
            if parent is None
            else Step(parents=(parent,), children=(variable,), table=given[variable])
            for variable, parent in self.order
        )
