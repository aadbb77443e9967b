"""How wide a bin should be, for a standard normal variable, in closed form (Kreačić et al. 2023, section H, Figure 6).

For teaching: everything here is known beforehand, and nothing is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpsynth_core.arrays import FloatArray
from dpsynth_core.privacy.laplace import laplace_variance

SIDE_BINS = 5
"""Bins on each side of the middle one (k): eleven in all, as in Figure 6."""
BANDWIDTH = 1.0
"""Of the kernel exp(-x^2 / (2 gamma^2))."""
RANGE = 5.0
"""A grid that is counted covers this many standard deviations on each side."""


@dataclass(frozen=True, kw_only=True)
class BinWidths:
    """How far bins of each width are from the normal law."""

    widths: FloatArray
    """In standard deviations."""
    divergence: FloatArray
    """KL divergence of eleven uniforms with the best weights."""
    distance: FloatArray
    """MMD of the same, rows at the centres."""
    noisy: FloatArray
    """Root of the expected squared MMD of a grid over the whole range, its counts with noise."""

    @property
    def best(self) -> float:
        """The width with the least distance once there is noise."""
        return float(self.widths[np.argmin(self.noisy)])


def best_weights(width: float, side_bins: int = SIDE_BINS) -> FloatArray:
    """Weights of 2k + 1 uniforms of that width that minimise the KL divergence (Equations 26 and 27, c = width / 2).

    Example:
        >>> best_weights(1.0, side_bins=1).round(3).tolist()
        [0.274, 0.452, 0.274]
    """
    i = np.arange(-side_bins, side_bins + 1)
    weights = np.exp(-2 * np.square(i * width / 2))
    return np.asarray(weights / weights.sum())


def kl_divergence(width: float, weights: FloatArray) -> float:
    """Of a mixture of uniforms from the standard normal law (Equation 25, C = width / 2)."""
    k, half = len(weights) // 2, width / 2
    i = np.arange(-k, k + 1)
    entropy = float(np.sum(weights * np.log(weights / width)))
    return entropy + 0.5 * math.log(2 * math.pi) + float(np.sum(weights * half**2 / 6 * (12 * i**2 + 1)))


def squared_mmd(points: FloatArray, weights: FloatArray) -> float:
    """Between the standard normal law and weighted points (section H.1, with weights in the place of 1/n)."""
    g = BANDWIDTH**2
    cross = math.sqrt(g / (1 + g)) * float(weights @ np.exp(-np.square(points) / (2 * (1 + g))))
    own = float(weights @ np.exp(-np.square(points[:, None] - points) / (2 * g)) @ weights)
    return max(0.0, math.sqrt(g / (2 + g)) - 2 * cross + own)


def noisy_squared_mmd(bins: int, *, epsilon: float, rows: int) -> float:
    """Expected, for counts of equal bins over the range that get discrete Laplace noise and are not rescaled.

    Noise of different bins is independent and k(x, x) = 1, so every bin adds the variance of its share.
    """
    edges = np.linspace(-RANGE, RANGE, bins + 1)
    shares = np.diff(ndtr(edges))
    rounding = squared_mmd((edges[1:] + edges[:-1]) / 2, shares)
    return rounding + bins * laplace_variance(2 / epsilon) / rows**2


def bin_widths(*, epsilon: float, rows: int) -> BinWidths:
    """For grids of 4 to 80 bins over the range.

    Example:
        >>> bin_widths(epsilon=0.1, rows=500).best > bin_widths(epsilon=10, rows=500).best
        True
    """
    bins = np.arange(4, 81)
    widths = 2 * RANGE / bins
    k = np.arange(-SIDE_BINS, SIDE_BINS + 1)
    return BinWidths(
        widths=widths,
        divergence=np.array([kl_divergence(w, best_weights(w)) for w in widths]),
        distance=np.array([math.sqrt(squared_mmd(k * w, best_weights(w))) for w in widths]),
        noisy=np.array([math.sqrt(noisy_squared_mmd(int(b), epsilon=epsilon, rows=rows)) for b in bins]),
    )
