"""Sums of a Gaussian kernel over all pairs of points, in compiled loops on every core, in double precision.

Measured for twice 100,000 x 5 points (``benchmarks/mmd.py``): NumPy's blocks, single precision and these loops. Single
precision is twice as fast and leaves 3e-8 on a density, which the root of a small difference makes much larger; these
loops leave about 1e-13.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.jit import compiled_sums

_BLOCK = 1024
"""Points that are worked on at a time: they stay in the processor's first cache."""
_PAIRS_PER_THREAD = 2_000_000
KernelPoints: TypeAlias = tuple[FloatArray, FloatArray]
"""Coordinates, one line for each column, times the root of gamma; and the points' square lengths."""


def kernel_points(points: FloatArray, origin: FloatArray, gamma: float) -> KernelPoints:
    """Points ready for the sums. All points of a sum need the same origin; near them it keeps the squares small."""
    centred = (points - origin) * np.sqrt(gamma)
    return np.ascontiguousarray(centred.T), np.square(centred).sum(axis=1)


def density_sums(x: KernelPoints, w: FloatArray, at: KernelPoints) -> FloatArray:
    """sum_i w_i k(at_j, x_i) for every j."""
    out = np.zeros(len(at[1]))
    _in_threads(len(at[1]), len(x[1]), lambda start, stop: _one_way(*x, w, *at, out, start, stop))
    return out


def mutual_sums(x: KernelPoints, u: FloatArray, y: KernelPoints, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """sum_j v_j k(x_i, y_j) for every i, and sum_i u_i k(x_i, y_j) for every j, from one visit to each pair."""
    at_x, parts = np.zeros(len(x[1])), []

    def work(start: int, stop: int) -> None:
        at_y = np.zeros(len(y[1]))
        _both_ways(*y, v, *x, u, at_x, at_y, start, stop)
        parts.append(at_y)

    _in_threads(len(x[1]), len(y[1]), work)
    return at_x, np.sum(parts, axis=0)


def own_sums(x: KernelPoints, w: FloatArray) -> FloatArray:
    """sum_j w_j k(x_i, x_j) for every i, from one visit to each pair."""
    n = len(x[1])
    parts: list[FloatArray] = []

    def work(start: int, stop: int) -> None:
        out = np.zeros(n)
        _among(*x, w, out, start, stop)
        parts.append(out)

    # Every part of the rows has about as many pairs: row i has n - i of them.
    _in_threads(n, n / 2, work, ends=lambda share: n - n * np.sqrt(1 - share))
    return np.asarray(np.sum(parts, axis=0))


def _in_threads(
    rows: int,
    pairs_per_row: float,
    work: Callable[[int, int], None],
    ends: Callable[[FloatArray], FloatArray] | None = None,
) -> None:
    threads = int(min(os.cpu_count() or 1, 1 + rows * pairs_per_row // _PAIRS_PER_THREAD))
    if threads == 1:
        work(0, rows)
        return
    shares = np.linspace(0.0, 1.0, threads + 1)
    cuts = np.rint(rows * shares if ends is None else ends(shares)).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))


# Loops run over slices from zero: an index that might be negative would keep the compiler from working on several
# elements at a time.


@compiled_sums
def _kernel_row(  # noqa: PLR0917
    lines: FloatArray,
    squares: FloatArray,
    start: int,
    stop: int,
    at: FloatArray,
    i: int,
    square: float,
    out: FloatArray,
) -> None:
    """The kernel between one point and those from start to stop.

    exp(t), for t up to zero, is a Taylor polynomial of t / 256, squared eight times. The polynomial leaves
    x^6 exp(-x) / (256^5 6!) at t = -x, at most 1.5e-13; rounding leaves 3e-14 of the value. Below -80 the exponential
    is 1e-35, and it is taken for that; rounding may leave a square distance just below zero.
    """
    size = stop - start
    lengths = squares[start:stop]
    for j in range(size):
        out[j] = -square - lengths[j]
    wide = lines.shape[0] - lines.shape[0] % 4
    for k in range(0, wide, 4):
        a, b, c, d = 2 * at[k, i], 2 * at[k + 1, i], 2 * at[k + 2, i], 2 * at[k + 3, i]
        first, second = lines[k, start:stop], lines[k + 1, start:stop]
        third, fourth = lines[k + 2, start:stop], lines[k + 3, start:stop]
        for j in range(size):
            out[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
    for k in range(wide, lines.shape[0]):
        a, first = 2 * at[k, i], lines[k, start:stop]
        for j in range(size):
            out[j] += a * first[j]
    for j in range(size):
        t = out[j]
        t = 0.0 if t > 0.0 else t
        t = -80.0 if t < -80.0 else t
        t *= 0.00390625
        p = 1.0 + t * (1.0 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120)))))
        p *= p
        p *= p
        p *= p
        p *= p
        p *= p
        p *= p
        p *= p
        p *= p
        out[j] = p


@compiled_sums
def _row_sum(kernel: FloatArray, w: FloatArray) -> float:
    total = 0.0
    for j in range(len(w)):
        total += w[j] * kernel[j]
    return total


@compiled_sums
def _add_row(kernel: FloatArray, weight: float, out: FloatArray) -> None:
    for j in range(len(out)):
        out[j] += weight * kernel[j]


@compiled_sums
def _one_way(  # noqa: PLR0917
    lines: FloatArray,
    squares: FloatArray,
    w: FloatArray,
    at: FloatArray,
    at_squares: FloatArray,
    out: FloatArray,
    first: int,
    last: int,
) -> None:
    kernel = np.empty(_BLOCK)
    for start in range(0, len(squares), _BLOCK):
        stop = min(start + _BLOCK, len(squares))
        for i in range(first, last):
            _kernel_row(lines, squares, start, stop, at, i, at_squares[i], kernel)
            out[i] += _row_sum(kernel, w[start:stop])


@compiled_sums
def _both_ways(  # noqa: PLR0917
    lines: FloatArray,
    squares: FloatArray,
    w: FloatArray,
    at: FloatArray,
    at_squares: FloatArray,
    weights: FloatArray,
    out: FloatArray,
    other: FloatArray,
    first: int,
    last: int,
) -> None:
    kernel = np.empty(_BLOCK)
    for start in range(0, len(squares), _BLOCK):
        stop = min(start + _BLOCK, len(squares))
        for i in range(first, last):
            _kernel_row(lines, squares, start, stop, at, i, at_squares[i], kernel)
            out[i] += _row_sum(kernel, w[start:stop])
            _add_row(kernel, weights[i], other[start:stop])


@compiled_sums
def _among(  # noqa: PLR0917
    lines: FloatArray, squares: FloatArray, w: FloatArray, out: FloatArray, first: int, last: int
) -> None:
    """Pairs (i, j) with i from first to last and j >= i; a point's pair with itself counts once."""
    kernel, n = np.empty(_BLOCK), len(squares)
    for begin in range(first, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        for i in range(first, min(last, end)):
            start = max(begin, i + 1)
            if i >= begin:
                out[i] += w[i]
            if start < end:
                _kernel_row(lines, squares, start, end, lines, i, squares[i], kernel)
                out[i] += _row_sum(kernel, w[start:end])
                _add_row(kernel, w[i], out[start:end])
