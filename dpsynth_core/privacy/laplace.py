"""The law of discrete Laplace noise, P(k) = (1 - a) / (1 + a) a^|k| with a = exp(-1/scale), and what it is added to."""

from __future__ import annotations

import math
from fractions import Fraction

HISTOGRAM_SENSITIVITY = 2
"""The number of rows is public and neighbouring tables differ in one replaced row. That row leaves one cell and enters
another: two counts change, by one each, so a histogram moves by at most 2 in L1 (and by sqrt(2) in L2)."""


def laplace_tail(scale: Fraction | float, least: int) -> float:
    """P(noise >= least) for least >= 1: a^least / (1 + a)."""
    return math.exp(-least / scale) / (1 + math.exp(-1 / scale))


def laplace_variance(scale: Fraction | float) -> float:
    """Variance of the noise: 2 a / (1 - a)^2."""
    a = math.exp(-1 / scale)
    # Never zero, so that averages by inverse variance are defined where there is hardly any noise.
    return max(2 * a / (1 - a) ** 2, 1e-9)
