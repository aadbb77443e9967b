"""The mean of a vector over all rows, with noise: what every mechanism of this folder pays for, and all it pays for.

What one replaced row can do is decided here, in whole numbers: ``docs/proofs.md``, section 28.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.accounting import ROUNDING, SampledDraw, check_delta, gaussian_mu, sampled_delta
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress

Embedding: TypeAlias = Callable[[FloatArray], FloatArray]
"""From rows as points to their vectors, one line each, of norm one at most; by public facts alone."""
MEAN = "mean embedding of all rows"
MAX_EMBEDDED_ROWS = 2_000_000
"""Rows that are held as points."""
STEPS = 2**20
"""Steps of the lattice that make up a norm of one."""
CHUNK_VALUES = 4_000_000
"""Coordinates of vectors that are held at a time."""
RAISE, MAX_RAISES = 1.002, 500
_BELOW = 1 - 1e-9
"""Keeps rounding on the safe side: floats are off by far less."""


def on_lattice(vectors: FloatArray) -> IntArray:
    """Each vector clipped to norm one and cut towards zero on the lattice: no norm exceeds ``STEPS``.

    What is not a finite number counts as zero.
    """
    finite = np.clip(np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0), -1e9, 1e9)
    norm = np.sqrt(np.square(finite).sum(axis=1, keepdims=True))
    return np.asarray(np.trunc(finite * (STEPS / np.maximum(norm, 1.0) * _BELOW)), dtype=np.int64)


def embedded_sum(
    points: FloatArray, groups: IntArray, embedding: Embedding, *, shape: tuple[int, int], progress: Progress
) -> IntArray:
    """For each group of rows the sum of their vectors in steps of the lattice; a row belongs to one group. Private.

    ``shape`` is the number of groups and the length of a vector.
    """
    total = np.zeros(shape, dtype=np.int64)
    rows = max(1, CHUNK_VALUES // shape[1])
    for start in range(0, len(points), rows):
        progress("Embedding the rows", 0.3 * start / len(points))
        vectors, own = on_lattice(embedding(points[start : start + rows])), groups[start : start + rows]
        for group in np.unique(own):
            total[group] += vectors[own == group].sum(axis=0)
    return total


def noisy_mean(sums: IntArray, n: int, noise: Noise) -> FloatArray:
    """Sums over n rows as means, with Gaussian noise that spends the whole budget: public."""
    budget = noise.budget
    draw = mean_draw(budget.epsilon, budget.delta)
    charge = noise.open_sampled(draw, 1, epsilon=budget.epsilon, delta=budget.delta, label=MEAN)
    return np.asarray(noise.gaussian(sums, draw, charge) / (STEPS * n), dtype=np.float64)


@lru_cache(maxsize=64)
def mean_draw(epsilon: Fraction, delta: Fraction) -> SampledDraw:
    """The draw with the least noise found that keeps (epsilon, delta); all rows are its one part.

    Whatever a row was and becomes, its vector lies in a ball of radius STEPS, so the sums move by 2 STEPS at most.
    """
    check_delta(delta)
    squared = (2 * STEPS) ** 2
    least = 1 / gaussian_mu(float(epsilon), float(delta))
    for raised in range(MAX_RAISES):
        scale = math.sqrt(squared * (least * RAISE**raised) ** 2 + ROUNDING**2) * (1 + 1e-9)
        draw = SampledDraw(scale=scale, squared=squared, chosen=1, parts=1)
        if sampled_delta(draw, 1, epsilon) <= delta:
            return draw
    raise ParameterError("delta", str(delta), allowed="large enough for Gaussian noise at this epsilon")
