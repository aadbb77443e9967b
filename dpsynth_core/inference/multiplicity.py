"""Several tests at once: p-values corrected for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpsynth_core.arrays import BoolArray, FloatArray


def holm(pvalues: ArrayLike) -> list[float]:
    """p-values after Holm's step-down correction (1979).

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]), 1.0)
    return out.tolist()


def benjamini_hochberg(pvalues: ArrayLike) -> list[float]:
    """p-values after Benjamini and Hochberg's step-up correction (1995).

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03])
        [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control  # noqa: PLC0415  slow to import

    corrected: list[float] = false_discovery_control(np.asarray(pvalues, dtype=np.float64)).tolist()
    return corrected


def holm_reports(pvalues: FloatArray, alpha: float) -> BoolArray:
    """For each line of p-values, whether any is low after Holm's correction: whether the smallest is at most alpha / k.

    Entries that are not a number are tests that could not be made; they do not count.

    Example:
        >>> holm_reports(np.array([[0.02, 0.5], [0.03, 0.5], [np.nan, 0.03]]), 0.05).tolist()
        [True, False, True]
    """
    tests = np.maximum((~np.isnan(pvalues)).sum(axis=1), 1)
    smallest = np.where(np.isnan(pvalues), 1.0, pvalues).min(axis=1)
    return np.asarray(smallest <= alpha / tests, dtype=np.bool_)
