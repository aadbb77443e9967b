"""Regressions that are private by themselves: what the same epsilon would buy without a synthetic table.

Both add noise to the moments of columns scaled to [-1, 1] and solve for the coefficients. With w the outcome scaled to
[-1, 1], least squares solves X'X b = X'w; the second-order expansion of the logistic likelihood at zero, as Zhang et
al. take it, solves X'X b = 2 X'w with w = -1 or 1. So one pair of moments serves both.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.regression.design import Design
from dpsynth_core.inference.regression.fitting import own_units
from dpsynth_core.privacy.noise import Noise

STEPS = 2**12
"""Grid steps from the middle of a range to its end, so that moments are whole numbers."""


def functional_sensitivity(columns: int) -> int:
    """Zhang et al. (2012) for d columns in [-1, 1], the constant one included: 2 d^2 + 4 d.

    A row's share in the objective has d^2 coefficients of at most one (X'X) and d of at most two (-2 X'w); replacing
    the row changes their sum by at most twice d^2 + 2 d.
    """
    return 2 * columns**2 + 4 * columns


def functional_mechanism(design: Design, noise: Noise, *, logistic: bool = False) -> FloatArray:
    """Coefficients from the perturbed objective (the l1 mechanism), in the columns' own units, intercept first."""
    epsilon, d = noise.budget.epsilon, len(design.terms) + 1
    points, w = _grid(design)
    # Exact: whole numbers below 2^53 up to 5e8 rows.
    products, linear = points.T @ points, 2 * points.T @ w
    upper = np.triu_indices(d)
    sums = np.append(products[upper], linear).astype(np.int64)
    cost = functional_sensitivity(d)
    noisy = noise.laplace(sums, sensitivity=cost * STEPS**2, epsilon=epsilon, label="functional mechanism") / STEPS**2
    A = np.zeros((d, d))
    A[upper] = noisy[: len(upper[0])]
    A = A + np.triu(A, 1).T
    if not design.nullable:
        A[0, 0] = design.rows  # public; otherwise how many rows have an outcome is a moment like any other
    # Section 6 of the paper: a ridge of four standard deviations of the noise, then the eigenvalues that are positive.
    ridge = 4 * math.sqrt(2) * cost / float(epsilon)
    unit = _solve(A + ridge * np.eye(d), noisy[len(upper[0]) :] / 2, floor=0.0)
    return own_units(design.terms, design.outcome, (2 if logistic else 1) * unit, logistic=logistic)


def k_norm_mechanism(design: Design, noise: Noise, *, logistic: bool = False) -> FloatArray:
    """Coefficients from moments with noise of density exp(-epsilon |v|_inf / 2) (Awan & Slavković).

    Every moment is taken so that it lies in [-1, 1] for one row: x_j, 2 x_j^2 - 1, x_j x_k, w, w x_j, all of them zero
    without an outcome, and 1 or -1 for having one. Replacing a row moves none by more than 2. The noise is drawn with
    floats, which is good for comparing and not for releasing.
    """
    points, w = _grid(design)
    d = points.shape[1]
    upper = np.triu_indices(d, 1)
    products, linear = points.T @ points / STEPS**2, points.T @ w / STEPS**2
    squares = 2 * np.diag(products)[1:] - design.n
    moments = np.concatenate([products[upper], squares, [2 * design.n - design.rows], linear])
    noise.open_charge("l-infinity mechanism", sensitivity=2, epsilon=noise.budget.epsilon)
    # A point of the unit cube times a Gamma(m + 1) radius has that density: their Algorithm for K = the cube.
    radius = float(special.gammaincinv(len(moments) + 1, noise.uniform(1)[0])) * 2 / float(noise.budget.epsilon)
    noisy = moments + radius * (2 * noise.uniform(len(moments)) - 1)
    A = np.zeros((d, d))
    A[upper] = noisy[: len(upper[0])]
    A = A + A.T
    present = (noisy[-d - 1] + design.rows) / 2 if design.nullable else design.rows
    np.fill_diagonal(A, np.append(present, (noisy[len(upper[0]) : len(upper[0]) + d - 1] + present) / 2))
    # Directions that vary less than the noise's mean size, radius / 2, cannot be told from it.
    floor = (len(moments) + 1) / float(noise.budget.epsilon)
    unit = _solve(A, noisy[-d:], floor=floor)
    return own_units(design.terms, design.outcome, (2 if logistic else 1) * unit, logistic=logistic)


def _grid(design: Design) -> tuple[FloatArray, FloatArray]:
    """Terms with the constant one, and the outcome, in whole grid steps."""
    points = np.column_stack([np.ones(design.n), design.X])
    return np.rint(points * STEPS), np.rint(design.y * STEPS)


def _solve(A: FloatArray, b: FloatArray, *, floor: float) -> FloatArray:
    """A^-1 b over the directions whose eigenvalue exceeds the floor."""
    values, vectors = np.linalg.eigh(A)
    kept = values > floor
    return np.asarray((vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ b))
