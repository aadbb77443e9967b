"""Projection onto the simplex: the one home for counts that must not be negative and whose sum is known."""

from __future__ import annotations

import numpy as np

from dpsynth_core.arrays import FloatArray


def project_to_simplex(values: FloatArray, total: float) -> FloatArray:
    """The nearest non-negative numbers that add up to ``total`` along the last axis (Held, Wolfe & Crowder 1974).

    Example:
        >>> project_to_simplex(np.array([[3.0, 1.0, -2.0], [5.0, 3.0, 0.0]]), 6.0).tolist()
        [[4.0, 2.0, 0.0], [4.0, 2.0, 0.0]]
    """
    if total <= 0:
        return np.zeros_like(values)
    descending = -np.sort(-values, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    # With huge values rounding may leave none above its excess; the largest value then takes everything.
    positive = np.maximum((descending > excess).sum(axis=-1, keepdims=True), 1)
    return np.maximum(values - np.take_along_axis(excess, positive - 1, axis=-1), 0.0)
