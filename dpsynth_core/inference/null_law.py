"""The law of Mann and Whitney's U when both groups come from one continuous distribution."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError

MAX_EXACT_STEPS = 50_000_000
"""Additions that an exact law may take."""
MAX_EXACT_LOGS = 700.0
"""Natural logarithm of the largest number of arrangements: beyond it a float cannot hold their number."""
SMALL_GROUP = 24
"""Beyond this many in the smaller group, the corrected normal law is within 1e-4 of the exact one."""
SHORT = 4_000
"""Product of the groups' sizes up to which thousands of laws are kept: 16 kB each at most."""
_NODES = 801
_REACH = 8.0


def can_be_exact(n1: int, n2: int) -> bool:
    """Whether the exact law is within reach."""
    steps = min(n1, n2) * (n1 * n2 + 1)
    arrangements = math.lgamma(n1 + n2 + 1) - math.lgamma(n1 + 1) - math.lgamma(n2 + 1)
    return steps <= MAX_EXACT_STEPS and arrangements <= MAX_EXACT_LOGS


def lower_half(n1: int, n2: int) -> FloatArray:
    """P(U = u) for u from 0 to half of n1 n2, without ties; the law is symmetric about n1 n2 / 2.

    The number of arrangements with U = u is the coefficient of q^u in the Gaussian binomial
    prod_k (1 - q^(n2 + k)) / (1 - q^k), k = 1 ... n1, worked out as a power series up to the middle.

    Example:
        >>> lower_half(1, 2).tolist()  # U is 0, 1 or 2, each with chance 1/3
        [0.333..., 0.333...]
    """
    if not can_be_exact(n1, n2):
        raise ParameterError(
            "method", "exact", allowed="groups small enough to enumerate", remedy="Use the asymptotic method."
        )
    small, large = min(n1, n2), max(n1, n2)
    return (_short_half if small * large <= SHORT else _long_half)(small, large)


def _half(small: int, large: int) -> FloatArray:
    series = np.zeros(small * large // 2 + 1)
    series[0] = 1.0
    for k in range(1, small + 1):
        if large + k < len(series):
            series[large + k :] -= series[: -large - k].copy()  # times 1 - q^(n2 + k)
        padded = np.zeros(len(series) + -len(series) % k)
        padded[: len(series)] = series
        series = np.cumsum(padded.reshape(-1, k), axis=0).ravel()[: len(series)]  # divided by 1 - q^k
    law: FloatArray = series / float(math.comb(small + large, small))
    law.flags.writeable = False
    return law


# Simulated releases have small groups of all sizes, again and again; long laws are few.
_short_half, _long_half = lru_cache(maxsize=4096)(_half), lru_cache(maxsize=64)(_half)


def exact_pvalue(u: float, n1: int, n2: int) -> float:
    """Two-sided chance of a U at least as far from the middle, without ties: scipy's ``method="exact"``."""
    least = math.floor(min(u, n1 * n2 - u) + 1e-9)
    return min(1.0, 2 * float(lower_half(n1, n2)[: least + 1].sum()))


@lru_cache(maxsize=256)
def smaller_u(n1: int, n2: int, most: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Points and chances of min(U1, U2) without ties.

    Exact while the smaller group has at most 24 members; beyond that a fine rule for the normal law with its kurtosis
    corrected (Edgeworth). Given ``most``, neighbouring points of the exact law are merged to about that many.
    """
    if min(n1, n2) == 0:
        return np.zeros(1), np.ones(1)
    if min(n1, n2) > SMALL_GROUP or not can_be_exact(n1, n2):
        return _edgeworth(n1, n2)
    half = lower_half(n1, n2)
    points, chances = np.arange(len(half), dtype=np.float64), 2 * half
    if n1 * n2 % 2 == 0:
        chances[-1] /= 2  # the middle itself is there once
    if most is not None and len(points) > most:
        starts = np.arange(0, len(points), -(-len(points) // most))
        merged = np.add.reduceat(chances, starts)
        centres = np.add.reduceat(chances * points, starts) / np.where(merged > 0, merged, 1.0)
        points, chances = np.where(merged > 0, centres, points[starts]), merged
    return points, chances / chances.sum()


def _edgeworth(n1: int, n2: int) -> tuple[FloatArray, FloatArray]:
    n = n1 + n2
    mean, std = n1 * n2 / 2, math.sqrt(n1 * n2 * (n + 1) / 12)
    # Excess kurtosis of U (Fix & Hodges 1955).
    kurtosis = -1.2 * (n1**2 + n2**2 + n1 * n2 + n) / (n1 * n2 * (n + 1))
    z = np.linspace(0.0, _REACH, _NODES)
    density = np.exp(-z * z / 2) * (1 + kurtosis / 24 * (z**4 - 6 * z**2 + 3))
    weights = np.maximum(density, 0.0)
    weights[0] /= 2
    return mean - std * z, weights / weights.sum()
