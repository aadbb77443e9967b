"""Random Fourier features of the Gaussian kernel (Rahimi & Recht 2007)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray
from dpsynth_core.privacy.noise import Noise

_MIN_UNIFORM = 2.0**-54
"""Added to uniform numbers, so that none is zero."""


def frequencies(count: int, size: int, noise: Noise) -> FloatArray:
    """Drawn from the standard normal law, before any row is looked at: coordinates are in kernel widths."""
    return np.asarray(ndtri(noise.uniform(count * size) + _MIN_UNIFORM).reshape(size, count))


def fourier(points: FloatArray, omega: FloatArray) -> FloatArray:
    """[cos, sin](omega' x) / sqrt(J): of norm one, and with inner products near the kernel's values."""
    angles = points @ omega
    return np.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(omega.shape[1]))


def ascent(points: FloatArray, omega: FloatArray, wanted: FloatArray) -> FloatArray:
    """At each point the gradient of the inner product of its features with a vector."""
    angles = points @ omega
    count = omega.shape[1]
    slopes = wanted[count:] * np.cos(angles) - wanted[:count] * np.sin(angles)
    return np.asarray(slopes @ omega.T / np.sqrt(count))
