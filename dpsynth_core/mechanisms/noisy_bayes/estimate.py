"""From sums, noisy or not, to moments that some table could have: pure post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.noisy_bayes.layout import Layout
from dpsynth_core.mechanisms.noisy_bayes.sums import Sums

UNIFORM_VARIANCE = 1 / 3
"""Of a number spread evenly over [-1, 1]."""
SMALLEST_VARIANCE = 1e-12
SMALLEST_EIGENVALUE = 1e-9
"""Of a correlation matrix, so that it can be inverted."""


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Means and covariances of the numbers, scaled to [-1, 1], and of the indicators of every tied level."""

    mean: FloatArray
    """Numbers first, then the shares of the tied factors' levels."""
    covariance: FloatArray
    """In the same order; positive definite."""
    shares: tuple[FloatArray, ...]
    """Of the levels of every factor, tied or not; each adds up to one."""
    doubt: float
    """Scale of the noise on an entry of the covariance."""


def moments(layout: Layout, sums: Sums, n: int) -> Moments:
    """Available-case moments, forced into a valid covariance matrix.

    Where a number is missing it is left out of its own moments, by dividing by the rows that have it.
    """
    shares = tuple(_shares(counts) for counts in sums.counts)
    held = _Held(layout, sums, shares, n)
    doubt = sums.doubt / n
    mean = np.clip(sums.first / held.numbers, -1, 1)
    covariance = sums.second / held.both - np.outer(mean, mean)
    # What is smaller than its noise cannot be told from it; what is larger than 1 - mean^2 cannot be, in [-1, 1].
    floor = min(max(doubt, SMALLEST_VARIANCE), UNIFORM_VARIANCE)
    np.fill_diagonal(covariance, np.clip(np.diag(covariance), floor, np.maximum(1 - mean**2, floor)))
    levels = np.concatenate([shares[f] for f in layout.tied]) if layout.tied else np.zeros(0)
    joint = np.block([[covariance, held.cross(mean)], [held.cross(mean).T, held.tables - np.outer(levels, levels)]])
    return Moments(mean=np.append(mean, levels), covariance=valid(joint), shares=shares, doubt=doubt)


class _Held:
    """How many rows stand behind each sum, and the sums that involve factors."""

    def __init__(self, layout: Layout, sums: Sums, shares: tuple[FloatArray, ...], n: int) -> None:
        self._layout, self._sums, self._shares = layout, sums, shares
        self._starts: dict[int, int] = {}
        size = 0
        for f in layout.tied:
            self._starts[f], size = size, size + len(shares[f])
        self._flags = {layout.factors[f].column.name: f for f in layout.tied if layout.factors[f].flag}
        self.tables = self._tables(size)
        """Share of rows in every pair of tied levels."""
        present = [self._present(column.name) for column in layout.numbers]
        both = np.full((len(present), len(present)), 1.0)
        for j, a in enumerate(present):
            for k, b in enumerate(present):
                shown = [place for place in (a, b) if place is not None]
                both[j, k] = self.tables[shown[0], shown[-1]] if shown else 1.0
        self.both = np.maximum(n * both, 1.0)
        """Rows in which both numbers of a pair are present."""
        self.numbers = np.diag(self.both)
        """Rows in which a number is present."""

    def _present(self, name: str) -> int | None:
        """The place of the level that says that this number is present; None where it always is."""
        flag = self._flags.get(name)
        return None if flag is None else self._starts[flag]

    def _tables(self, size: int) -> FloatArray:
        tables = np.zeros((size, size))
        for f, start in self._starts.items():
            end = start + len(self._shares[f])
            tables[start:end, start:end] = np.diag(self._shares[f])
        for (f, g), cells in self._sums.pairs.items():
            rows, columns = (slice(self._starts[x], self._starts[x] + len(self._shares[x])) for x in (f, g))
            joint = np.clip(cells, 0, None)
            total = joint.sum()
            joint = joint / total if total > 0 else np.outer(self._shares[f], self._shares[g])
            tables[rows, columns], tables[columns, rows] = joint, joint.T
        return tables

    def cross(self, mean: FloatArray) -> FloatArray:
        """Covariances between numbers and levels, over the rows in which the number is present."""
        cross = np.zeros((len(mean), len(self.tables)))
        for (j, f), sums in self._sums.groups.items():
            levels = slice(self._starts[f], self._starts[f] + len(self._shares[f]))
            present = self._present(self._layout.numbers[j].name)
            share = self._shares[f] if present is None else _shares(self.tables[present, levels])
            cross[j, levels] = sums / self.numbers[j] - mean[j] * share
        return cross


def _shares(counts: FloatArray) -> FloatArray:
    """Counts without what is negative, as shares; where nothing is left, all levels alike."""
    kept = np.clip(counts, 0, None)
    return kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept))


def valid(covariance: FloatArray) -> FloatArray:
    """The variances as they are, with correlations that can occur together.

    Negative eigenvalues of the correlation matrix are set to almost nothing and its diagonal is scaled back to one.
    """
    if not len(covariance):
        return covariance
    variance = np.clip(np.diag(covariance), 0, None)
    varies = variance > SMALLEST_VARIANCE / 2
    deviation = np.sqrt(np.where(varies, variance, 1.0))
    correlation = np.clip(covariance / np.outer(deviation, deviation), -1, 1)
    correlation[~varies], correlation[:, ~varies] = 0.0, 0.0
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    correlation = (vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T
    unit = np.sqrt(np.diag(correlation))
    deviation = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
    return np.asarray(correlation / np.outer(unit, unit) * np.outer(deviation, deviation))
