"""p-values from simulated null releases, given that a release leaves something to test.

A release may leave nothing to test: a small group that did not survive a threshold, say. Whoever tests holds one that
does, so simulated ones that do not are left out. See ``docs/proofs.md``, section 19.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.efforts import FEWEST

ALPHA = 0.05
"""Significance level of the analysts."""
ROUNDING = 1e-9
"""Statistics closer than this are equal."""


def simulated_pvalues(observed: FloatArray, simulated: FloatArray) -> FloatArray:
    """How unusual each observed statistic is among its own simulations, on either side of their common mean.

    The mean is over all of them, the observed one included, so that under the null they are exchangeable.

    Args:
        observed: One statistic a line; not a number where there is nothing to test, and then nor is the p-value.
        simulated: As many lines of simulated ones; not a number where there is nothing to test.

    Example:
        >>> simulated_pvalues(np.array([3.0]), np.array([[-1.0, 0.0, 1.0, np.nan]])).tolist()
        [0.25]
    """
    tested = ~np.isnan(simulated)
    drawn, times = np.where(tested, simulated, 0.0), tested.sum(axis=1)
    centre = (observed + drawn.sum(axis=1)) / (1 + times)
    distance = np.abs(observed - centre)
    as_far = (tested & (np.abs(drawn - centre[:, None]) >= distance[:, None] - ROUNDING)).sum(axis=1)
    return np.where(np.isnan(observed), np.nan, (1 + as_far) / (1 + times))


def least_favourable(statistic: float, each: Sequence[FloatArray]) -> tuple[float, int]:
    """The largest p-value over nulls, and which of them gives it.

    Not a number where it would be low, but a null leaves too few releases to test to say so.

    Args:
        statistic: Of the real release.
        each: Statistics of each null's releases that leave something to test.

    Example:
        >>> many, few = np.linspace(-1, 1, 99), np.zeros(3)
        >>> least_favourable(5.0, [many]), least_favourable(5.0, [many, few]), least_favourable(0.5, [many, few])
        ((0.01, 0), (nan, 0), (0.51, 0))
    """
    pvalues = [float(simulated_pvalues(np.array([statistic]), drawn[None])[0]) for drawn in each]
    known = [pvalue for pvalue, drawn in zip(pvalues, each, strict=True) if len(drawn) >= FEWEST]
    highest = int(np.argmax(pvalues))
    if len(known) < len(pvalues) and max(known, default=0.0) <= ALPHA:
        most = int(np.argmax([len(drawn) for drawn in each]))
        return float("nan"), most
    return pvalues[highest], highest
