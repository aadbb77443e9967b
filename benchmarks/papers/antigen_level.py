"""Antigen levels of prostate patients: Montoya Perez et al. (2024), Figures 3a and 7a, with simulated patients.

The trials' table is not public. What the paper prints of it is enough to simulate groups that are as hard to tell
apart: 258 patients with no or a low risk and 242 with a high one, and a Mann-Whitney statistic of 22,713, which says
how often a patient of one group is above one of the other. That levels are log-normal, with a median of about 7, is
our own assumption.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.papers.base import ResultTable, RunOptions
from benchmarks.papers.two_groups import REAL_CURVES, TestedGroups, errors_table
from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.populations import HistogramDistribution, Population

LOW_RISK, HIGH_RISK, PAPER_U = 258, 242, 22_713
"""Patients, and the printed statistic of the test on them (section 4.1, Figure 3)."""
BINS, LOWER, UPPER = 40, 1.0, 41.0
"""One unit each, the last from 40 on."""
FINE = 400
"""Cells in which the groups' distributions are kept: a tenth of a unit."""
MEDIAN, LOG_STD = 6.5, 0.6
"""Of the group with a low risk; the other's median is higher by what the statistic says."""


def shift() -> float:
    """Between the groups' log levels: P(high > low) = ndtr(shift / (sqrt(2) std)).

    Example:
        >>> round(shift(), 3)
        0.296
    """
    return float(np.sqrt(2) * LOG_STD * ndtri(1 - PAPER_U / (LOW_RISK * HIGH_RISK)))


def antigen_level(options: RunOptions) -> Iterator[ResultTable]:
    """Type I and Type II errors on simulated antigen levels by risk: Figures 3a and 7a."""
    groups = TestedGroups(name="antigen level", both=two_populations(), bins=BINS)
    yield _groups()
    lines = [
        (title, f"n = {LOW_RISK + HIGH_RISK}", groups.by_epsilon(mechanism, test, one_in, options))
        for title, mechanism, test, one_in in REAL_CURVES
    ]
    about = f"Simulated patients, {LOW_RISK} and {HIGH_RISK}, as far apart as the paper's statistic says"
    yield errors_table("Errors on antigen levels of simulated patients: Figure 7a", lines, about, bins=BINS)


def _shares(log_median: float) -> FloatArray:
    """Of each fine cell; levels beyond the range are moved to its ends."""
    inner = np.linspace(LOWER, UPPER, FINE + 1)[1:-1]
    below = ndtr((np.log(inner) - log_median) / LOG_STD)
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


def _laws() -> tuple[FloatArray, FloatArray]:
    """Of patients with a low and with a high risk."""
    return _shares(float(np.log(MEDIAN))), _shares(float(np.log(MEDIAN)) + shift())


def two_populations() -> tuple[Population, Population]:
    """Without a difference (both groups from all patients) and with the paper's."""
    low, high = _laws()
    everybody = (LOW_RISK * low + HIGH_RISK * high) / (LOW_RISK + HIGH_RISK)

    def of(first: FloatArray, second: FloatArray) -> Population:
        laws = [
            HistogramDistribution(shares=tuple(shares.tolist()), lower=LOWER, upper=UPPER) for shares in (first, second)
        ]
        return Population(n1=LOW_RISK, n2=HIGH_RISK, first=laws[0], second=laws[1], lower=LOWER, upper=UPPER)

    return of(everybody, everybody), of(low, high)


def _groups() -> ResultTable:
    """Figure 3a: the two laws in the paper's bins."""
    low, high = (shares.reshape(BINS, -1).sum(axis=1) for shares in _laws())
    rows = [(f"{LOWER + i:g}", float(a), float(b)) for i, (a, b) in enumerate(zip(low, high, strict=True))]
    return ResultTable(
        title="Shares of simulated patients by antigen level: Figure 3a",
        notes=("Log-normal, as far apart as the paper's Mann-Whitney statistic says.",),
        columns=("from", "low risk", "high risk"),
        rows=tuple(rows),
    )
