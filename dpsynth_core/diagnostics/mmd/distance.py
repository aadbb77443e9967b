"""Distances between weighted point sets through a Gaussian kernel (Kreačić et al. 2023, section 1.3.1).

The kernel is k(x, y) = exp(-gamma |x - y|^2). Everything rests on one quantity, the kernel density
KD(x) = sum_i w_i k(x, x_i); the inner product of two sets is the average of one's density over the other's points, and
the maximum mean discrepancy (MMD) follows from three inner products. Exact: every pair of points is visited, in
compiled loops and in double precision throughout (``kernel_sums``).

A distance to private rows is private itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.mmd.kernel_sums import density_sums, kernel_points, mutual_sums, own_sums
from dpsynth_core.errors import ParameterError

_LARGEST = 1e100
"""Of coordinates, weights and gamma: their products stay finite."""


def mmd(
    X: ArrayLike,
    Y: ArrayLike,
    gamma: float,
    wx: ArrayLike | None = None,
    wy: ArrayLike | None = None,
    *,
    xx: float | None = None,
) -> float:
    """Distance of two point sets in the kernel's Hilbert space: the biased (V-statistic) MMD, Equation 1.

    Zero means that the sets agree, one that they are small and far apart; the largest value is the square root of two.
    Two samples of n rows from one law are about sqrt(2 (1 - kernel mean) / n) apart. Rounding leaves about 1e-8.

    Args:
        X: Points, one per row; a vector is a single column.
        Y: Points with as many columns.
        gamma: Of the kernel exp(-gamma |x - y|^2); a bandwidth h is gamma = 1 / (2 h^2).
        wx: Weight of each point of ``X``, scaled to sum to one; None: all equal.
        wy: Weight of each point of ``Y``, likewise.
        xx: ``kernel_mean(X, X, gamma, wx, wx)`` where it is known, which spares the larger set's own pairs.

    Example:
        >>> mmd([[0.0]], [[1.0]], gamma=0.5)  # sqrt(2 - 2 exp(-1/2))
        0.8870956...
    """
    if xx is not None and not 0 <= xx <= 1:
        raise ParameterError("xx", xx, allowed="an inner product of normalised weights: from 0 to 1")
    first = kernel_mean(X, X, gamma, wx, wx) if xx is None else float(xx)
    # Equation 1; the difference is never negative but for rounding.
    squared = first - 2 * kernel_mean(X, Y, gamma, wx, wy) + kernel_mean(Y, Y, gamma, wy, wy)
    return math.sqrt(max(0.0, squared))


def kernel_mean(
    X: ArrayLike, Y: ArrayLike, gamma: float, wx: ArrayLike | None = None, wy: ArrayLike | None = None
) -> float:
    """Inner product of two weighted point sets: kappa(P, Q) = sum_ij wx_i wy_j k(x_i, y_j).

    Where both sets are the very same objects, every pair of points is visited once instead of twice.
    """
    rate = _rate(gamma)
    x, y = _both(X, "Y", Y)
    u = _weights("wx", wx, len(x))
    if X is Y and wx is wy:
        return float(u @ own_sums(kernel_points(x, x.mean(axis=0), rate), u))
    return float(u @ _density(y, x, rate, _weights("wy", wy, len(y))))


def kernel_density(X: ArrayLike, gamma: float, at: ArrayLike, wx: ArrayLike | None = None) -> FloatArray:
    """Kernel density of a weighted point set at each query point: KD(x) = sum_i w_i k(x, x_i)."""
    rate = _rate(gamma)
    x, queries = _both(X, "at", at)
    return _density(x, queries, rate, _weights("wx", wx, len(x)))


def witnesses(X: ArrayLike, Y: ArrayLike, gamma: float) -> tuple[FloatArray, FloatArray]:
    """KD_P - KD_Q at every point of ``X`` and at every point of ``Y``, visiting each pair of points once.

    Their means differ by MMD^2, and their variances give its standard error.
    """
    rate = _rate(gamma)
    x, y = _both(X, "Y", Y)
    u, v = _weights("wx", None, len(x)), _weights("wy", None, len(y))
    origin = x.mean(axis=0)
    first, second = kernel_points(x, origin, rate), kernel_points(y, origin, rate)
    at_x, at_y = mutual_sums(first, u, second, v)
    return own_sums(first, u) - at_x, at_y - own_sums(second, v)


def sup_density_distance(  # noqa: PLR0917  the order of arguments is that of the other distances
    X: ArrayLike, Y: ArrayLike, gamma: float, at: ArrayLike, wx: ArrayLike | None = None, wy: ArrayLike | None = None
) -> float:
    """Largest |KD_P(x) - KD_Q(x)| over the given query points: a lower estimate of the supremum over all x.

    Both densities lie between zero and one, so this does too, and it is at most ``mmd`` (Cauchy-Schwarz).
    """
    return float(np.abs(kernel_density(X, gamma, at, wx) - kernel_density(Y, gamma, at, wy)).max())


def _density(x: FloatArray, at: FloatArray, gamma: float, w: FloatArray) -> FloatArray:
    """sum_i w_i exp(-gamma |at - x_i|^2); the centre of the points becomes the origin, so that squares stay small."""
    origin = x.mean(axis=0)
    return density_sums(kernel_points(x, origin, gamma), w, kernel_points(at, origin, gamma))


def _both(X: ArrayLike, parameter: str, other: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = _points("X", X), _points(parameter, other)
    if y.shape[1] != x.shape[1]:
        allowed = f"as many columns as the other points: {x.shape[1]}"
        raise ParameterError(parameter, f"{y.shape[1]} column(s)", allowed=allowed)
    return x, y


def _points(parameter: str, given: ArrayLike) -> FloatArray:
    points = _numbers(parameter, given)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or not points.size:
        raise ParameterError(parameter, f"shape {points.shape}", allowed="one or more rows of one or more columns")
    return points


def _weights(parameter: str, given: ArrayLike | None, size: int) -> FloatArray:
    if given is None:
        return np.full(size, 1.0 / size)
    weights = _numbers(parameter, given)
    if weights.shape != (size,):
        raise ParameterError(parameter, f"shape {weights.shape}", allowed=f"one weight for each of the {size} points")
    largest = float(weights.max())
    if float(weights.min()) < 0 or largest == 0:
        raise ParameterError(parameter, "negative or all zero", allowed="numbers from 0, not all of them zero")
    scaled = weights / largest  # so that the sum of huge weights is still a number
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def _numbers(parameter: str, given: ArrayLike) -> FloatArray:
    try:
        numbers: NDArray[Any] = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        # NumPy's own error would quote a cell.
        raise ParameterError(parameter, "not numeric", allowed="finite numbers") from None
    if not (np.abs(numbers) <= _LARGEST).all():
        raise ParameterError(parameter, "not finite", allowed=f"finite numbers up to {_LARGEST:g} in size")
    return numbers


def _rate(gamma: float) -> float:
    if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < float(gamma) <= _LARGEST:
        raise ParameterError("gamma", gamma, allowed=f"a number greater than 0, at most {_LARGEST:g}")
    return float(gamma)
