"""Making a column from natural parameters and fixed randomness: compiled, used for scores and for samples alike.

A column's *natural* parameters are one flat array: its own (location, scale, skew, or cut points, or logits), the
probability of being missing, the weight of the column's own randomness, and the weights of earlier features.
"""

from __future__ import annotations

import math

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.jit import compiled
from dpsynth_core.mechanisms.pmse.column_models import NOMINAL, ORDERED, SKEWED

MAX_EXPLAINED = 0.995
"""Share of a latent variable's variance that earlier columns may explain: correlations beyond are scaled down."""
MIN_SPREAD = 0.02
"""Of an indicator, so that a category nobody has does not become a huge feature."""


@compiled
def natural(layout: IntArray, theta: FloatArray, correlation: FloatArray) -> FloatArray:
    """Unconstrained parameters in natural terms; ``correlation`` is that of the earlier features."""
    form, levels, nullable, before = layout[0], layout[1], layout[3], layout[4]
    own = levels - 1 if form >= ORDERED else 3
    given = levels - 1 if form >= ORDERED else 2 + (form == SKEWED)
    weights = (levels - 1) * before if form == NOMINAL else before
    out = np.zeros(own + 2 + weights)
    if form < ORDERED:
        out[0], out[1] = theta[0], math.exp(min(max(theta[1], -50.0), 50.0))
        if form == SKEWED:
            out[2] = min(max(theta[2], -3.0), 3.0)
    elif form == ORDERED:
        passed = 1.0
        for k in range(own):
            passed *= 1.0 - _logistic(theta[k])
            out[k] = _normal_quantile(1.0 - passed)
    else:
        for k in range(own):
            out[k] = theta[k]
    if nullable:
        out[own] = _logistic(theta[given])
    out[own + 1] = 1.0
    start = given + nullable
    if form == NOMINAL:
        _nominal_weights(levels, before, theta, start, out)
    elif before and len(theta) > start:
        _correlated_weights(before, theta, start, correlation, own, out)
    return out


@compiled
def _correlated_weights(  # noqa: PLR0917
    before: int, theta: FloatArray, start: int, correlation: FloatArray, own: int, out: FloatArray
) -> None:
    """Weights from correlations: w = R^-1 r, and what is left for the column's own randomness.

    A feature whose parameter is not a number is not used: its weight is zero, and its correlation follows.
    """
    used = np.flatnonzero(~np.isnan(theta[start : start + before]))
    w, among = np.empty(len(used)), np.empty((len(used), len(used)))
    for i in range(len(used)):
        w[i] = math.tanh(theta[start + used[i]])
        for k in range(len(used)):
            among[i, k] = correlation[used[i], used[k]]
    _solve(among, w, len(used))
    explained = 0.0
    for i in range(len(used)):
        explained += math.tanh(theta[start + used[i]]) * w[i]
    factor = 1.0
    if explained > MAX_EXPLAINED:
        factor = math.sqrt(MAX_EXPLAINED / explained)
        explained = MAX_EXPLAINED
    out[own + 1] = math.sqrt(1.0 - max(explained, 0.0))
    for i in range(len(used)):
        out[own + 2 + used[i]] = factor * w[i]


@compiled
def _nominal_weights(levels: int, before: int, theta: FloatArray, start: int, out: FloatArray) -> None:
    own = levels - 1
    for k in range(own):
        spread = 0.0
        for f in range(before):
            weight = theta[start + k * before + f]
            if math.isnan(weight):
                continue  # not used
            out[own + 2 + k * before + f] = weight
            spread += weight * weight
        # A logit averaged over a normal sum of variance v is flatter: about logit(a / sqrt(1 + 0.35 v)).
        out[k] *= math.sqrt(1.0 + 0.35 * spread)


@compiled
def draw_column(  # noqa: PLR0912, PLR0917  one branch for each form
    layout: IntArray,
    given: FloatArray,
    features: FloatArray,
    z: FloatArray,
    gap: FloatArray,
    values: FloatArray,
    latent: FloatArray,
) -> None:
    """Values of a column (missing as NaN) and, for numbers and ordered labels, the latent normal variable."""
    form, levels, steps, nullable, before = layout[0], layout[1], layout[2], layout[3], layout[4]
    rows = len(z)
    own = levels - 1 if form >= ORDERED else 3
    if form == NOMINAL:
        _draw_nominal(levels, before, given, features, z, values)
    elif levels == 1:
        for row in range(rows):
            values[row] = 0.0
    else:
        for row in range(rows):
            latent[row] = given[own + 1] * z[row]
        for f in range(before):
            weight = given[own + 2 + f]
            if weight != 0.0:
                for row in range(rows):
                    latent[row] += weight * features[f, row]
        if form == ORDERED:
            for row in range(rows):
                index = 0.0
                for k in range(own):
                    index += latent[row] > given[k]
                values[row] = index
        else:
            _scale(given[0], given[1], given[2], steps, latent, values)
    if nullable:
        for row in range(rows):
            if gap[row] < given[own]:
                values[row] = np.nan


@compiled
def _scale(location: float, scale: float, skew: float, steps: int, latent: FloatArray, values: FloatArray) -> None:  # noqa: PLR0917
    for row in range(len(latent)):
        if abs(skew) > 1e-3:
            x = location + scale * math.expm1(skew * latent[row]) / skew
        else:
            x = location + scale * latent[row]
        values[row] = min(max(x, 0.0), 1.0)
    if steps:
        for row in range(len(latent)):
            values[row] = np.rint(values[row] * steps) / steps


@compiled
def _draw_nominal(  # noqa: PLR0917
    levels: int, before: int, given: FloatArray, features: FloatArray, z: FloatArray, values: FloatArray
) -> None:
    """Inverse of the cumulative multinomial logit; the first category is the one that others are compared with."""
    rows, own = len(z), levels - 1
    if not own:
        for row in range(rows):
            values[row] = 0.0
        return
    logits = np.empty((own, rows))
    for k in range(own):
        for row in range(rows):
            logits[k, row] = given[k]
        for f in range(before):
            weight = given[own + 2 + k * before + f]
            if weight != 0.0:
                for row in range(rows):
                    logits[k, row] += weight * features[f, row]
    for row in range(rows):
        top = 0.0
        for k in range(own):
            top = max(top, logits[k, row])
        total = math.exp(-top)
        for k in range(own):
            logits[k, row] = math.exp(logits[k, row] - top)
            total += logits[k, row]
        sought = z[row] * total - math.exp(-top)
        index = 0
        while sought >= 0.0 and index < own:
            sought -= logits[index, row]
            index += 1
        values[row] = index


@compiled
def feature_scales(layout: IntArray, values: FloatArray, centre: FloatArray, spread: FloatArray) -> None:
    """Mean and standard deviation of a column's features before they are scaled."""
    form, levels = layout[0], layout[1]
    if form != NOMINAL:
        for k in range(len(centre)):
            centre[k], spread[k] = 0.0, 1.0
        return
    for k in range(levels - 1):
        share = 0.0
        for row in range(len(values)):
            share += values[row] == k + 1.0
        share /= len(values)
        centre[k], spread[k] = share, max(math.sqrt(share * (1.0 - share)), MIN_SPREAD)


@compiled
def features_of(  # noqa: PLR0917
    layout: IntArray, values: FloatArray, latent: FloatArray, centre: FloatArray, spread: FloatArray, out: FloatArray
) -> None:
    """The numbers that later columns are predicted from."""
    form, levels = layout[0], layout[1]
    if form != NOMINAL:
        if levels != 1:
            for row in range(len(values)):
                out[0, row] = latent[row]
        return
    for k in range(levels - 1):
        for row in range(len(values)):
            out[k, row] = ((values[row] == k + 1.0) - centre[k]) / spread[k]


@compiled
def correlations(features: FloatArray, size: int) -> FloatArray:
    """Of the first features with each other, from the sample."""
    out = np.zeros((max(size, 1), max(size, 1)))
    for i in range(size):
        out[i, i] = 1.0
        for j in range(i):
            total = 0.0
            for row in range(features.shape[1]):
                total += features[i, row] * features[j, row]
            out[i, j] = out[j, i] = min(max(total / features.shape[1], -0.999), 0.999)
    return out


@compiled
def _solve(matrix: FloatArray, x: FloatArray, size: int) -> None:
    """Gauss-Jordan elimination in place of ``x``: a singular matrix must not raise, and few columns need no BLAS.

    A little is added to the diagonal, so that it always ends well.
    """
    a = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            a[i, j] = matrix[i, j] + 1e-3 * (i == j)
    for i in range(size):
        a[i, i] = max(a[i, i], 1e-6)
        for k in range(size):
            if k != i:
                factor = a[k, i] / a[i, i]
                for j in range(i, size):
                    a[k, j] -= factor * a[i, j]
                x[k] -= factor * x[i]
    for i in range(size):
        x[i] /= a[i, i]


@compiled
def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(x, -500.0), 500.0)))


@compiled
def _normal_quantile(p: float) -> float:
    """By bisection of the error function: exact to 1e-9, and few are needed."""
    low, high = -9.0, 9.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if 0.5 * math.erfc(-middle / math.sqrt(2.0)) < p:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
