"""Noisy counts of consecutive bins, smoothed by an average over all ways to cut them into pieces: post-processing."""

from __future__ import annotations

import math

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.jit import compiled

PENALTY = 2.0
"""Squared error, in units of the noise variance, that one more piece must save: Mallows' criterion."""
NEGLIGIBLE = -40.0
"""Logarithm of a share below which a piece is left out."""


def averaged_pieces(noisy: FloatArray, widths: FloatArray, std: float) -> FloatArray:
    """The mean of all fits of constant density to pieces of consecutive bins, the better the fit the larger its weight.

    A cut into k pieces, each with the density that fits its bins best, has the criterion C = |noisy - fit|^2 / std^2 +
    2 k (Mallows), and the weight exp(-C / 2) (exponential weights; Leung & Barron 2006). The best cut alone would jump
    where a law is smooth and the noise leaves open where it rises.

    Example:
        >>> averaged_pieces(np.array([90.0, 110.0, 300.0, 305.0]), np.ones(4), std=10.0).round()
        array([ 95., 105., 302., 303.])
    """
    return np.asarray(_averaged_pieces(noisy / std, widths.astype(np.float64), PENALTY / 2) * std)


@compiled
def _averaged_pieces(noisy: FloatArray, widths: FloatArray, penalty: float) -> FloatArray:
    """In units of the noise. Sums over all cuts by what comes before and after a piece, as in a hidden Markov chain."""
    size = len(noisy)
    density, weight = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1))  # in logarithms
    for begin in range(size):
        squares = fitted = error = 0.0
        for end in range(begin + 1, size + 1):
            # Updated bin by bin: differences of sums of squares would cancel where counts are large.
            width, more = widths[end - 1], squares + widths[end - 1] ** 2
            missed = noisy[end - 1] - fitted * width
            error += missed**2 * squares / more
            fitted += missed * width / more
            squares = more
            density[begin, end] = fitted
            weight[begin, end] = -error / 2 - penalty
    before, after = np.zeros(size + 1), np.zeros(size + 1)
    for end in range(1, size + 1):
        largest = (before[:end] + weight[:end, end]).max()
        before[end] = largest + math.log(np.exp(before[:end] + weight[:end, end] - largest).sum())
    for begin in range(size - 1, -1, -1):
        largest = (after[begin + 1 :] + weight[begin, begin + 1 :]).max()
        after[begin] = largest + math.log(np.exp(after[begin + 1 :] + weight[begin, begin + 1 :] - largest).sum())
    # What a piece adds to the mean density begins with its first bin and ends with its last.
    changes = np.zeros(size + 1)
    for begin in range(size):
        for end in range(begin + 1, size + 1):
            logarithm = before[begin] + weight[begin, end] + after[end] - before[size]
            if logarithm < NEGLIGIBLE:
                continue
            share = math.exp(logarithm)
            changes[begin] += share * density[begin, end]
            changes[end] -= share * density[begin, end]
    return np.cumsum(changes)[:size] * widths
