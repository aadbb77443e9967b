"""Least squares over a tree: every noisy count that was paid for, brought into agreement.

A box's count is the sum of its halves' counts, and both were measured. Going up, a box's own measurements and the sum
of its halves are averaged by inverse variance; going down, what is left over is shared between the halves in proportion
to their variances. That is the weighted least-squares solution on a tree (Hay et al. 2010, for unequal variances).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.kd_tree.growth import Leaves, Level


@dataclass(frozen=True, kw_only=True)
class _Estimates:
    """Boxes of one depth, sorted by prefix, with what is known of each."""

    prefix: IntArray
    value: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, prefix: IntArray, value: FloatArray, variance: FloatArray) -> _Estimates:
        order = np.argsort(prefix)
        return cls(prefix=prefix[order], value=value[order], variance=variance[order])

    def find(self, prefix: IntArray) -> IntArray:
        return np.searchsorted(self.prefix, prefix).astype(np.int64)


def consistent_counts(
    leaves: Leaves,
    levels: Sequence[Level],
    measured: NDArray[np.int64],
    *,
    leaf_variance: float,
    stop: int,
    stand_out: float = -math.inf,
) -> FloatArray:
    """Counts of the listed leaves that agree with every noisy count on the way down to them.

    With ``stand_out`` the solution is made non-negative where the noise makes it negative, without moving rows far: on
    the way down, a half whose count does not reach that many standard deviations gives its rows to the other half, and
    where neither does the rows are spread over both.

    Args:
        leaves: The boxes of the tree.
        levels: Its decisions with the noisy counts taken of inner boxes, from the root down.
        measured: Noisy count of each listed leaf.
        leaf_variance: Of the leaf measurements.
        stop: Depth of the deepest leaves.
        stand_out: Standard deviations that a half must reach; without it, plain least squares.
    """
    below = _finished(leaves, measured, leaf_variance, stop)
    trail = [below]
    for level in reversed(levels):
        below = _up(level, below, _finished(leaves, measured, leaf_variance, level.depth))
        trail.append(below)
    final = trail.pop()
    out = np.zeros(len(measured))
    for level in levels:
        here = leaves.depth == level.depth
        out[here] = final.value[final.find(leaves.prefix[here])]
        final = _down(level, final, trail.pop(), stand_out)
    here = leaves.depth == stop
    out[here] = final.value[final.find(leaves.prefix[here])]
    return out


def _finished(leaves: Leaves, measured: NDArray[np.int64], variance: float, depth: int) -> _Estimates:
    here = leaves.depth == depth
    value = measured[here].astype(np.float64)
    return _Estimates.of(leaves.prefix[here], value, np.full(len(value), variance))


def _up(level: Level, below: _Estimates, finished: _Estimates) -> _Estimates:
    """What is known of the boxes of a level from their own measurements and from below."""
    other_value, other_variance = np.empty(len(level.prefix)), np.empty(len(level.prefix))
    leaf = ~level.split
    own = finished.find(level.prefix[leaf])
    other_value[leaf], other_variance[leaf] = finished.value[own], finished.variance[own]
    left = below.find(level.prefix[level.split] << 1)
    other_value[level.split] = below.value[left] + below.value[left + 1]
    other_variance[level.split] = below.variance[left] + below.variance[left + 1]
    weight = other_variance / (other_variance + level.variance)
    value = weight * level.noisy + (1 - weight) * other_value
    passed = below.find(level.passed << 1)
    return _Estimates.of(
        np.concatenate([level.prefix, level.passed]),
        np.concatenate([value, below.value[passed]]),
        np.concatenate([(1 - weight) * other_variance, below.variance[passed]]),
    )


def _down(level: Level, above: _Estimates, below: _Estimates, stand_out: float) -> _Estimates:
    """The final values one level further down."""
    value = below.value.copy()
    parents = level.prefix[level.split]
    left = below.find(parents << 1)
    total = below.variance[left] + below.variance[left + 1]
    whole = above.value[above.find(parents)]
    rest = whole - below.value[left] - below.value[left + 1]
    first = value[left] + rest * below.variance[left] / total
    if stand_out >= 0:
        whole = np.maximum(whole, 0.0)
        least = stand_out * np.sqrt(total)
        faint, other_faint = first < least, whole - first < least
        first = np.where(faint & other_faint, whole / 2, np.where(faint, 0.0, np.where(other_faint, whole, first)))
        first = np.clip(first, 0.0, whole)
    value[left], value[left + 1] = first, whole - first
    passed = below.find(level.passed << 1)
    value[passed] = above.value[above.find(level.passed)]
    return _Estimates(prefix=below.prefix, value=value, variance=below.variance)
