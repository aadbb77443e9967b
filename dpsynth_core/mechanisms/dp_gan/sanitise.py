"""Gradients on their way back from critics: clipped one by one, rounded to a lattice of integers, added up.

What one replaced row can do is decided here, in integers: ``docs/proofs.md``, section 20.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.privacy.accounting import ROUNDING, SampledDraw

CLIP = 1.0
"""Largest norm of a gradient at one generated row (C of Chen et al. 2020)."""
STEPS = 1024
"""Steps of the lattice that make up the clipping norm."""
MAX_COORDINATE = 1e9
"""Coordinates beyond this are clipped first, so that squares are finite."""
_BELOW = 1 - 1e-9
"""Keeps rounding on the safe side: floats are off by far less."""


def clip_to_lattice(gradients: NDArray[Any]) -> IntArray:
    """Each gradient clipped to norm ``CLIP`` and cut towards zero on the lattice: no norm exceeds ``STEPS``.

    What is not a finite number counts as zero, so that no row can make a critic's failure visible.
    """
    given = np.nan_to_num(np.asarray(gradients, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    finite = np.clip(given, -MAX_COORDINATE, MAX_COORDINATE)
    norm = np.sqrt((finite**2).sum(axis=-1, keepdims=True))
    clipped = finite * (STEPS / np.maximum(norm, CLIP) * _BELOW)
    return np.asarray(np.trunc(clipped), dtype=np.int64)


def clipped_sum(gradients: NDArray[Any]) -> IntArray:
    """For each generated row the sum over critics: axes are critics, generated rows, coordinates."""
    return np.asarray(clip_to_lattice(gradients).sum(axis=0), dtype=np.int64)


def sampled_draw(*, batch: int, multiplier: float, chosen: int, parts: int) -> SampledDraw:
    """The draw that makes such a sum private, with noise of ``multiplier`` times what one row can move.

    A row belongs to one critic. Whatever its gradients were before and are now, at each of the ``batch`` generated rows
    both lie in a ball of radius ``STEPS``, so the sum moves by at most 2 STEPS sqrt(batch).
    """
    squared = batch * (2 * STEPS) ** 2
    scale = math.sqrt(multiplier**2 * squared + ROUNDING**2) * (1 + 1e-9)
    return SampledDraw(scale=scale, squared=squared, chosen=chosen, parts=parts)


def mean_gradient(noisy: IntArray, chosen: int) -> FloatArray:
    """The noisy sum as a mean gradient at each generated row."""
    return np.asarray(noisy * (CLIP / (STEPS * chosen)), dtype=np.float64)
