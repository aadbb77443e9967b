"""A distribution as a sequence of conditional tables, and how rows are drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.privacy.noise import Noise


@dataclass(frozen=True, kw_only=True)
class Step:
    """New variables given earlier ones."""

    parents: tuple[int, ...]
    """Variables drawn before."""
    children: tuple[int, ...]
    """Variables drawn now, together."""
    table: FloatArray
    """Probabilities of the children given the parents: parents' axes first, children's axes after."""

    @classmethod
    def of(cls, parents: Sequence[int], children: Sequence[int], joint: FloatArray) -> Step:
        """From a joint table over both; where the parents never occur, the children are as they are overall."""
        around = tuple(range(len(parents), joint.ndim))
        whole = joint.sum(axis=around, keepdims=True)
        overall = joint.sum(axis=tuple(range(len(parents))), keepdims=True)
        flat = np.full(overall.shape, 1 / overall.size)
        overall = np.divide(overall, overall.sum(), out=flat, where=overall.sum() > 0)
        given = np.divide(joint, whole, out=np.broadcast_to(overall, joint.shape).copy(), where=whole > 0)
        return cls(parents=tuple(parents), children=tuple(children), table=given)


def draw_rows(steps: Sequence[Step], rows: int, noise: Noise) -> dict[int, IntArray]:
    """Every variable's value for each row, step by step.

    Within each group of rows that share their parents' values, a child's values get their shares rounded up or down
    (systematic sampling), in an order that is random within the group. So the table meets the model's own tables
    closely, and two children of one parent are independent given it, as the model has it.
    """
    drawn: dict[int, IntArray] = {}
    for step in steps:
        above, below = step.table.shape[: len(step.parents)], step.table.shape[len(step.parents) :]
        group = _folded([drawn[parent] for parent in step.parents], above, rows)
        table = step.table.reshape(-1, int(np.prod(below, dtype=np.int64)))
        values = np.unravel_index(_draw_children(table, group, noise), below)
        drawn.update({child: value.astype(np.int64) for child, value in zip(step.children, values, strict=True)})
    return drawn


def _folded(columns: Sequence[IntArray], shape: tuple[int, ...], rows: int) -> IntArray:
    if not columns:
        return np.zeros(rows, dtype=np.int64)
    return np.ravel_multi_index(tuple(columns), shape).astype(np.int64)


def _draw_children(table: FloatArray, group: IntArray, noise: Noise) -> IntArray:
    """A value for each row from the line of the table that its group names."""
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
    # All lines in one search: line g is shifted to [g, g + 1).
    lines = (ends + np.arange(groups)[:, None]).ravel()
    found = np.searchsorted(lines, own + mark, side="right") - own * table.shape[1]
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    values = np.empty(rows, dtype=np.int64)
    values[order] = np.clip(found, 0, last[own])
    return values


def marginal(steps: Sequence[Step], wanted: Sequence[int]) -> FloatArray:
    """The model's own probabilities over some variables, exact, by summing out all others."""
    operands: list[Any] = []
    for step in steps:
        operands += [step.table, [*step.parents, *step.children]]
    return np.asarray(np.einsum(*operands, list(wanted), optimize="greedy"))
