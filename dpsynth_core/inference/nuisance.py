"""What a null hypothesis leaves open, estimated from released counts: the groups' sizes and their one distribution.

A mechanism's noise distorts both: clipped noise adds rows to every cell, and so dilutes the smaller group more. Taking
the released counts at face value would then simulate a null that is too clean; what is known of the distortion is
undone here. See ``docs/proofs.md``, section 19.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.simplex import project_to_simplex

_ROUNDS = 4
"""Of the fixed-point iteration; it settles in two or three."""


@dataclass(frozen=True, kw_only=True)
class Nuisance:
    """For each released table."""

    sizes: IntArray
    """Rows of each group, of shape (tables, groups), adding up to n."""
    chances: FloatArray
    """Of each value, of shape (tables, values), adding up to one."""

    def draw(self, tables: int, rng: np.random.Generator) -> IntArray:
        """That many null tables for each released one: of shape (released x tables, groups, values)."""
        # The likeliest values first: once all rows are placed, the sampler stops.
        order = np.argsort(-self.chances, axis=1, kind="stable")
        chances = np.repeat(np.take_along_axis(self.chances, order, axis=1), tables, axis=0)
        order, sizes = np.repeat(order, tables, axis=0), np.repeat(self.sizes, tables, axis=0)
        out = np.empty((len(sizes), sizes.shape[1], chances.shape[1]), dtype=np.int64)
        for group, size in enumerate(sizes.T):
            np.put_along_axis(out[:, group], order, rng.multinomial(size, chances), axis=1)
        return out


def from_shares(released: FloatArray, n: int) -> Nuisance:
    """The released shares as they are."""
    share = released.sum(axis=2) / released.sum(axis=(1, 2))[:, None]
    return Nuisance(sizes=rounded_sizes(share * n, n), chances=_normalised(released.sum(axis=1)))


def from_smoothed_counts(released: FloatArray, n: int, alpha: float) -> Nuisance:
    """Released counts have mean rows (c + alpha) / (n + K alpha); solve for c."""
    _, groups, values = released.shape
    total = n + groups * values * alpha
    unsmoothed = released * (total / released.sum(axis=(1, 2))[:, None, None]) - alpha
    chances = project_to_simplex(unsmoothed.sum(axis=1), n)
    return Nuisance(sizes=rounded_sizes(unsmoothed.sum(axis=2), n), chances=_normalised(chances))


def from_noisy_counts(released: FloatArray, n: int, scale: float) -> Nuisance:
    """Released counts are max(0, c + DLap(scale)), rescaled so that they add up to the synthetic rows.

    E max(0, c + X) = c + e a^c with a = exp(-1/scale) and e = E max(0, X) = a / (1 - a^2). The factor of the rescaling,
    the groups' sizes and the common distribution are found in turn from these means.
    """
    a = math.exp(-1 / scale)
    e = a / (1 - a * a)
    share = released / released.sum(axis=(1, 2))[:, None, None]
    together, by_group = share.sum(axis=1), share.sum(axis=2)
    total = np.full(len(released), n + e * share[0].size)  # rows before rescaling, if all cells were empty but a few
    sizes, chances = by_group * n, together
    for _ in range(_ROUNDS):
        chances = project_to_simplex(together * total[:, None], n) / n
        invented = e * np.power(a, sizes[:, :, None] * chances[:, None, :]).sum(axis=2)
        total = n + invented.sum(axis=1)
        sizes = np.clip(by_group * total[:, None] - invented, 0.0, n)
    return Nuisance(sizes=rounded_sizes(sizes, n), chances=_normalised(chances))


def _normalised(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def rounded_sizes(sizes: FloatArray, n: int) -> IntArray:
    """Whole sizes that add up to n, at least one row in each group that could have any; the largest takes the rest."""
    scaled = np.maximum(sizes, 0.0)
    scaled *= n / np.maximum(scaled.sum(axis=1, keepdims=True), 1e-300)
    whole = np.maximum(np.rint(scaled).astype(np.int64), np.int64(n >= 2 * sizes.shape[1]))
    largest, lines = whole.argmax(axis=1), np.arange(len(whole))
    whole[lines, largest] += n - whole.sum(axis=1)
    for line in np.flatnonzero(whole[lines, largest] < 0):  # many small groups, all of them rounded up
        whole[line] = np.floor(scaled[line])
        left = np.argsort(whole[line] - scaled[line], kind="stable")[: n - int(whole[line].sum())]
        whole[line, left] += 1
    return whole
