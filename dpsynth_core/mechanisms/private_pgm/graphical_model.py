"""A distribution as a sequence of conditional tables, and how rows are drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.balancing import PairTargets
from dpsynth_core.mechanisms.private_pgm.bins import Bins
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import codec_for


@dataclass(frozen=True, kw_only=True)
class ConditionalTable:
    """Probabilities of some variables (the children) given others that are drawn before them (the parents)."""

    parents: tuple[int, ...]
    children: tuple[int, ...]
    probabilities: FloatArray
    """Parents' axes first, children's axes after."""

    @classmethod
    def of(cls, parents: Sequence[int], children: Sequence[int], joint: FloatArray) -> ConditionalTable:
        """From a joint table over both; where the parents never occur, the children are as they are overall."""
        total = joint.sum(axis=tuple(range(len(parents), joint.ndim)), keepdims=True)
        overall = joint.sum(axis=tuple(range(len(parents))), keepdims=True)
        flat = np.full(overall.shape, 1 / overall.size)
        overall = np.divide(overall, overall.sum(), out=flat, where=overall.sum() > 0)
        given = np.divide(joint, total, out=np.broadcast_to(overall, joint.shape).copy(), where=total > 0)
        return cls(parents=tuple(parents), children=tuple(children), probabilities=given)


def summed_product(
    factors: Sequence[tuple[FloatArray, Sequence[int]]], variables: Sequence[int], *, greedy: bool = False
) -> FloatArray:
    """The product of tables, each over its variables, summed over all variables but some.

    NumPy takes 52 labels, and there may be more variables than that in a schema, though not in one product: they are
    numbered anew, in the same order.
    """
    label = {v: i for i, v in enumerate(sorted({v for _, axes in factors for v in axes}))}
    operands: list[Any] = [part for table, axes in factors for part in (table, [label[v] for v in axes])]
    return np.asarray(np.einsum(*operands, [label[v] for v in variables], optimize="greedy" if greedy else False))


def marginal(tables: Sequence[ConditionalTable], variables: Sequence[int]) -> FloatArray:
    """The model's own probabilities over some variables, exact, by summing out all others."""
    factors = [(table.probabilities, (*table.parents, *table.children)) for table in tables]
    return summed_product(factors, variables, greedy=True)


@dataclass(frozen=True, kw_only=True)
class GraphicalModel:
    """Conditional tables over groups and bins of columns. Safe to show: nothing here is private."""

    tables: tuple[ConditionalTable, ...]
    """In the order in which variables are drawn."""
    bins: tuple[Bins, ...]
    """Of each column, in the schema's order."""
    variables: tuple[int, ...]
    """The variable that holds each column's bin."""
    centre: bool
    """Whether values are placed at the middle of their bin or anywhere in it."""
    targets: PairTargets | None = None
    """What pairs of drawn rows are brought near to; None: they stay as they are drawn."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, whose counts follow the model's own tables."""
        drawn = draw_rows(self.tables, rows, noise)
        codes = [drawn[variable] for variable in self.variables]
        if self.targets is not None:
            self.targets.balance(codes, noise)
        columns = {}
        for bins, code in zip(self.bins, codes, strict=True):
            positions = bins.place(code, noise, centre=self.centre)
            columns[bins.axis.column.name] = codec_for(bins.axis.column).restore(positions)
        return pd.DataFrame(columns, copy=False)


def draw_rows(tables: Sequence[ConditionalTable], rows: int, noise: Noise) -> dict[int, IntArray]:
    """Every variable's value for each row, table by table.

    Within each group of rows that share their parents' values, a child's values get their shares rounded up or down
    (systematic sampling), in an order that is random within the group. So the rows meet the model's own tables
    closely, and two children of one parent are independent given it, as the model has it.
    """
    drawn: dict[int, IntArray] = {}
    for table in tables:
        above = table.probabilities.shape[: len(table.parents)]
        below = table.probabilities.shape[len(table.parents) :]
        group = np.zeros(rows, dtype=np.int64)
        if table.parents:
            group = np.ravel_multi_index(tuple(drawn[parent] for parent in table.parents), above).astype(np.int64)
        flat = table.probabilities.reshape(-1, int(np.prod(below, dtype=np.int64)))
        values = np.unravel_index(_draw_children(flat, group, noise), below)
        drawn.update({child: value.astype(np.int64) for child, value in zip(table.children, values, strict=True)})
    return drawn


def _draw_children(table: FloatArray, group: IntArray, noise: Noise) -> IntArray:
    rows, groups = len(group), len(table)
    shuffled = noise.distinct(rows, rows)
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    counts = np.bincount(group, minlength=groups)
    start = np.cumsum(counts) - counts
    own = group[order]
    # Evenly spaced marks through the group, from a random start.
    mark = (np.arange(rows) - start[own] + noise.uniform(groups)[own]) / counts[own]
    ends = np.cumsum(table, axis=1)
    ends /= ends[:, -1:]
    # All groups in one search: group g is shifted to [g, g + 1).
    shifted = (ends + np.arange(groups)[:, None]).ravel()
    index = np.searchsorted(shifted, own + mark, side="right") - own * table.shape[1]
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    values = np.empty(rows, dtype=np.int64)
    values[order] = np.clip(index, 0, last[own])
    return values
