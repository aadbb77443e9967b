"""Least squares over a tree: every noisy count that was paid for, brought into agreement.

A box's count is the sum of its halves' counts, and both were measured. Going up, a box's own measurements and the sum
of its halves are averaged by inverse variance; going down, what is left over is shared between the halves in proportion
to their variances. That is the weighted least-squares solution on a tree (Hay et al. 2010, for unequal variances).

Boxes are taken in the order in which the tree was grown: the halves of the boxes that split, pair after pair, then
what was passed on. So nothing has to be looked up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.kd_tree.growth import Level


@dataclass(frozen=True, kw_only=True)
class _Estimates:
    """What is known of the boxes of one depth."""

    value: FloatArray
    variance: FloatArray

    def halves(self, parents: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Values of left and right halves, and their variances."""
        end = 2 * parents
        return self.value[:end:2], self.value[1:end:2], self.variance[:end:2], self.variance[1:end:2]


def consistent_counts(
    levels: Sequence[Level],
    measured: NDArray[np.int64],
    *,
    leaf_variance: float,
    stand_out: float = -math.inf,
) -> FloatArray:
    """Counts of the listed leaves that agree with every noisy count on the way down to them.

    With ``stand_out`` the solution is made non-negative where the noise makes it negative, without moving rows far: on
    the way down, a half whose count does not reach that many standard deviations gives its rows to the other half, and
    where neither does the rows are spread over both.

    Args:
        levels: The tree's decisions with the noisy counts taken of inner boxes, from the root down.
        measured: Noisy count of each listed leaf, in the tree's order.
        leaf_variance: Of the leaf measurements.
        stand_out: Standard deviations that a half must reach; without it, plain least squares.

    Example:
        >>> box = {"depth": 0, "prefix": np.zeros(1, int), "counts": np.array([9]), "noisy": np.array([10.0])}
        >>> root = Level(**box, variance=np.array([2.0]), split=np.array([True]), asked=np.array([True]))
        >>> consistent_counts([root], np.array([5, 3]), leaf_variance=1.0).tolist()  # 10 above, 5 + 3 below
        [5.5, 3.5]
    """
    # Below the deepest box there is nothing to agree with.
    asked = [i for i, level in enumerate(levels) if len(level.split) or len(level.asked)]
    levels = levels[: asked[-1] + 1 if asked else 0]
    ends = np.cumsum([np.count_nonzero(~level.split) for level in levels], dtype=np.int64)
    *finished, deepest = np.split(measured.astype(np.float64), ends)
    below = _Estimates(value=deepest, variance=np.full(len(deepest), leaf_variance))
    trail = []
    for level, leaf_values in zip(reversed(levels), reversed(finished), strict=True):
        decided = _up(level, below, leaf_values, leaf_variance)
        trail.append((decided, below))
        below = _Estimates(
            value=_merged(level, decided.value, below.value), variance=_merged(level, decided.variance, below.variance)
        )
    final, out = below.value, []
    for level in levels:
        decided, below = trail.pop()
        # An empty box that is listed from here on has nothing above it to agree with.
        own = np.append(final[level.asked], decided.value[np.count_nonzero(level.asked) :])
        out.append(own[~level.split])
        final = np.append(_down(own[level.split], below, stand_out), final[~level.asked])
    return np.concatenate([*out, final])


def _up(level: Level, below: _Estimates, leaf_values: FloatArray, leaf_variance: float) -> _Estimates:
    """What is known of the boxes that took a decision, from their own measurements and from below."""
    left, right, left_variance, right_variance = below.halves(int(np.count_nonzero(level.split)))
    other_value, other_variance = np.empty(len(level.split)), np.full(len(level.split), leaf_variance)
    other_value[~level.split] = leaf_values
    other_value[level.split], other_variance[level.split] = left + right, left_variance + right_variance
    weight = other_variance / (other_variance + level.variance)
    value = weight * level.noisy + (1 - weight) * other_value
    return _Estimates(value=value, variance=(1 - weight) * other_variance)


def _merged(level: Level, decided: FloatArray, below: FloatArray) -> FloatArray:
    """By box of a level, in the order of the level above: what took a decision, and what was passed on."""
    out = np.empty(len(level.asked))
    out[level.asked] = decided[: np.count_nonzero(level.asked)]
    out[~level.asked] = below[2 * np.count_nonzero(level.split) :]
    return out


def _down(whole: FloatArray, below: _Estimates, stand_out: float) -> FloatArray:
    """The final values of the halves, given those of the boxes that split."""
    left, right, left_variance, right_variance = below.halves(len(whole))
    total = left_variance + right_variance
    rest = whole - left - right
    first = left + rest * left_variance / total
    if stand_out >= 0:
        whole = np.maximum(whole, 0.0)
        least = stand_out * np.sqrt(total)
        faint, other_faint = first < least, whole - first < least
        first = np.where(faint & other_faint, whole / 2, np.where(faint, 0.0, np.where(other_faint, whole, first)))
        first = np.clip(first, 0.0, whole)
    return np.stack([first, whole - first], 1).ravel()
