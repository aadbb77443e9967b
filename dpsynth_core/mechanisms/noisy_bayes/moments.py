"""From sums, noisy or not, to moments that some table could have: pure post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.noisy_bayes.moment_layout import MomentLayout
from dpsynth_core.mechanisms.noisy_bayes.moment_sums import MomentSums

UNIFORM_VARIANCE = 1 / 3
"""Of a number spread evenly over [-1, 1]."""
MIN_VARIANCE = 1e-12
MIN_EIGENVALUE = 1e-9
"""Of a correlation matrix, so that it can be inverted."""


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Means and covariances of the numbers, scaled to [-1, 1], and of the indicators of every related level."""

    mean: FloatArray
    """Numbers first, then the shares of the levels."""
    covariance: FloatArray
    """In the same order; positive definite."""
    shares: tuple[FloatArray, ...]
    """Of the levels of every categorical variable, related or not; each adds up to one."""
    noise_scale: float
    """Of the noise on an entry of the covariance."""


def valid_moments(layout: MomentLayout, sums: MomentSums, n: int) -> Moments:
    """Available-case moments, forced into a valid covariance matrix.

    Where a number is missing it is left out of its own moments, by dividing by the rows that have it.
    """
    shares = tuple(_shares(counts) for counts in sums.counts)
    cases = _AvailableCases(layout, sums, shares, n)
    noise_scale = sums.noise_scale / n
    mean = np.clip(sums.first / cases.numbers, -1, 1)
    covariance = sums.second / cases.both - np.outer(mean, mean)
    # What is smaller than its noise cannot be told from it; what is larger than 1 - mean^2 cannot be, in [-1, 1].
    floor = min(max(noise_scale, MIN_VARIANCE), UNIFORM_VARIANCE)
    np.fill_diagonal(covariance, np.clip(np.diag(covariance), floor, np.maximum(1 - mean**2, floor)))
    levels = np.concatenate([shares[f] for f in layout.related]) if layout.related else np.zeros(0)
    cross = cases.cross(mean)
    joint = np.block([[covariance, cross], [cross.T, cases.tables - np.outer(levels, levels)]])
    return Moments(
        mean=np.append(mean, levels), covariance=valid_covariance(joint), shares=shares, noise_scale=noise_scale
    )


class _AvailableCases:
    """How many rows each sum is over, and the sums that involve categorical variables."""

    def __init__(self, layout: MomentLayout, sums: MomentSums, shares: tuple[FloatArray, ...], n: int) -> None:
        self._layout, self._sums, self._shares = layout, sums, shares
        self._levels: dict[int, slice] = {}
        size = 0
        for f in layout.related:
            self._levels[f] = slice(size, size + len(shares[f]))
            size += len(shares[f])
        flags = {layout.categorical[f].column.name: f for f in layout.related if layout.categorical[f].missing_flag}
        self._present = [
            self._levels[flags[column.name]].start if column.name in flags else None for column in layout.numbers
        ]
        """Index of the level that says that a number is present; None where it always is."""
        self.tables = self._tables(size)
        """Share of rows in every pair of related levels."""
        both = np.ones((len(self._present), len(self._present)))
        for j, a in enumerate(self._present):
            for k, b in enumerate(self._present):
                if a is not None or b is not None:
                    both[j, k] = self.tables[b if a is None else a, a if b is None else b]
        self.both = np.maximum(n * both, 1.0)
        """Rows in which both numbers of a pair are present."""
        self.numbers = np.diag(self.both)
        """Rows in which a number is present."""

    def _tables(self, size: int) -> FloatArray:
        tables = np.zeros((size, size))
        for f, levels in self._levels.items():
            tables[levels, levels] = np.diag(self._shares[f])
        for (f, g), cells in self._sums.pairs.items():
            joint = np.clip(cells, 0, None)
            total = joint.sum()
            joint = joint / total if total > 0 else np.outer(self._shares[f], self._shares[g])
            rows, columns = self._levels[f], self._levels[g]
            tables[rows, columns], tables[columns, rows] = joint, joint.T
        return tables

    def cross(self, mean: FloatArray) -> FloatArray:
        """Covariances between numbers and levels, over the rows in which the number is present."""
        cross = np.zeros((len(mean), len(self.tables)))
        for (j, f), sums in self._sums.groups.items():
            levels, present = self._levels[f], self._present[j]
            share = self._shares[f] if present is None else _shares(self.tables[present, levels])
            cross[j, levels] = sums / self.numbers[j] - mean[j] * share
        return cross


def _shares(counts: FloatArray) -> FloatArray:
    """Non-negative counts as shares; where nothing is left, all levels alike."""
    positive = np.clip(counts, 0, None)
    return positive / positive.sum() if positive.sum() > 0 else np.full(len(positive), 1 / len(positive))


def valid_covariance(covariance: FloatArray) -> FloatArray:
    """The variances as they are, with correlations that can occur together.

    Negative eigenvalues of the correlation matrix are set to almost nothing and its diagonal is scaled back to one.
    """
    if not len(covariance):
        return covariance
    variance = np.clip(np.diag(covariance), 0, None)
    varies = variance > MIN_VARIANCE / 2
    std = np.sqrt(np.where(varies, variance, 1.0))
    correlation = np.clip(covariance / np.outer(std, std), -1, 1)
    correlation[~varies], correlation[:, ~varies] = 0.0, 0.0
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    correlation = (vectors * np.maximum(values, MIN_EIGENVALUE)) @ vectors.T
    unit = np.sqrt(np.diag(correlation))
    std = np.sqrt(np.maximum(variance, MIN_VARIANCE))
    return np.asarray(correlation / np.outer(unit, unit) * np.outer(std, std))
