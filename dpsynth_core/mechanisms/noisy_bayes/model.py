"""Rows from a drawn mean, covariance and shares: numbers jointly normal, then labels one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.noisy_bayes.moment_layout import MomentLayout
from dpsynth_core.mechanisms.noisy_bayes.moments import Moments
from dpsynth_core.mechanisms.noisy_bayes.posterior import NormalInverseWishart, dirichlet, normal
from dpsynth_core.mechanisms.numbers_and_labels import from_levels, from_unit
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import Positions, Uniform, codec_for
from dpsynth_core.table.schema import Schema

CHUNK_ROWS = 50_000
MIN_RIDGE = 1e-9


@dataclass(frozen=True, kw_only=True)
class MixedNormal:
    """What was learned. Free to use where the moments were paid for.

    Numbers are jointly normal; what falls outside the declared bounds is moved to them, as original rows are. A label
    is drawn with probabilities that are linear in the numbers and in the labels drawn before it, and never negative:
    where no probability had to be raised to zero, all pairwise moments are kept.
    """

    schema: Schema
    layout: MomentLayout
    mean: FloatArray
    """Of the numbers, drawn from the posterior; scaled to [-1, 1]."""
    root: FloatArray
    """Lower triangle whose product with its transpose is their covariance."""
    shares: tuple[FloatArray, ...]
    """Of every categorical variable's levels, drawn from the posterior."""
    slopes: tuple[FloatArray, ...]
    """For each related variable, the regression of its levels' indicators on what is drawn before it."""

    @classmethod
    def draw(cls, schema: Schema, layout: MomentLayout, moments: Moments, n: int, uniform: Uniform) -> MixedNormal:
        """Draw the parameters from their posterior; the slopes are plugged in."""
        d = len(layout.numbers)
        posterior = NormalInverseWishart.prior(d).updated(moments.mean[:d], moments.covariance[:d, :d], n)
        mean, root = posterior.draw(uniform)
        # Perks' prior: one row divided over the levels.
        shares = tuple(dirichlet(uniform, n * share + 1 / len(share)) for share in moments.shares)
        slopes = _slopes(layout, moments)
        return cls(schema=schema, layout=layout, mean=mean, root=root, shares=shares, slopes=slopes)

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        drawn = self.positions(rows, noise)
        return pd.DataFrame({column.name: codec_for(column).restore(drawn[column.name]) for column in self.schema})

    def positions(self, rows: int, noise: Noise) -> dict[str, Positions]:
        """The same rows, not yet as values."""
        parts = [self._rows(min(CHUNK_ROWS, rows - start), noise.uniform) for start in range(0, rows, CHUNK_ROWS)]
        numbers, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
        values = {column.name: numbers[:, j] for j, column in enumerate(self.layout.numbers)}
        labels = {variable.column.name: codes[:, f] for f, variable in enumerate(self.layout.categorical)}
        columns = {}
        for column in self.schema:
            if column.name not in values:
                positions = from_levels(column, labels[column.name])
            else:
                missing = labels[column.name] == 1 if column.nullable else None
                positions = from_unit(column, values[column.name], missing)
            columns[column.name] = positions
        return columns

    def _rows(self, rows: int, uniform: Uniform) -> tuple[FloatArray, IntArray]:
        d = len(self.mean)
        drawn = self.mean + normal(uniform, rows * d).reshape(rows, d) @ self.root.T
        numbers = np.clip(drawn, -1, 1)
        codes = np.zeros((rows, len(self.shares)), dtype=np.int64)
        # Deviations from their means of all that has been drawn so far: numbers, then indicators of labels.
        before = numbers - self.mean
        for f, share in enumerate(self.shares):
            chance = np.broadcast_to(share, (rows, len(share)))
            if f in self.layout.related:
                chance = _probabilities(share + before @ self.slopes[self.layout.related.index(f)], share)
            codes[:, f] = _chosen(chance, uniform(rows))
            if f in self.layout.related:
                before = np.hstack([before, np.eye(len(share))[codes[:, f]] - share])
        return numbers, codes


def _slopes(layout: MomentLayout, moments: Moments) -> tuple[FloatArray, ...]:
    """Linear regressions of every related variable's indicators on what is drawn before them, from the moments alone.

    The ridge is the noise on an entry of the covariance: directions that vary less say nothing.
    """
    slopes, start = [], len(layout.numbers)
    for f in layout.related:
        end = start + layout.levels[f]
        before, across = moments.covariance[:start, :start], moments.covariance[:start, start:end]
        ridge = max(moments.noise_scale, MIN_RIDGE) * np.eye(start)
        slopes.append(np.asarray(np.linalg.solve(before + ridge, across), dtype=np.float64))
        start = end
    return tuple(slopes)


def _probabilities(linear: FloatArray, share: FloatArray) -> FloatArray:
    """Never negative, adding up to one; the shares themselves where nothing is left."""
    positive = np.clip(linear, 0, None)
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1), share)


def _chosen(chance: FloatArray, uniform: FloatArray) -> IntArray:
    ends = np.cumsum(chance, axis=1)
    return np.asarray((uniform[:, None] * ends[:, -1:] >= ends[:, :-1]).sum(axis=1), dtype=np.int64)
