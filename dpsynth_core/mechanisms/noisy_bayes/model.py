"""Rows from a drawn mean, covariance and shares: numbers jointly normal, then labels one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.mechanisms.noisy_bayes.estimate import Moments
from dpsynth_core.mechanisms.noisy_bayes.layout import Layout, ends
from dpsynth_core.mechanisms.noisy_bayes.posterior import NormalInverseWishart, Uniform, dirichlet, normal
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions, codec_for
from dpsynth_core.table.schema import Schema

AT_ONCE = 50_000
"""Rows that are drawn together."""
LEAST_RIDGE = 1e-9


@dataclass(frozen=True, kw_only=True)
class MixedNormal:
    """What was learned. Free to use where the moments were paid for.

    Numbers are jointly normal; what falls outside the declared bounds is moved to them, as original rows are. A label
    is drawn with probabilities that are linear in the numbers and in the labels drawn before it, and never negative:
    where no probability had to be raised to zero, all pairwise moments are kept.
    """

    schema: Schema
    """The columns."""
    layout: Layout
    """Which of them are numbers, which labels."""
    mean: FloatArray
    """Of the numbers, drawn from the posterior; scaled to [-1, 1]."""
    root: FloatArray
    """Lower triangle whose product with its transpose is their covariance."""
    shares: tuple[FloatArray, ...]
    """Of every factor's levels, drawn from the posterior."""
    slopes: tuple[FloatArray, ...]
    """For each tied factor, its levels' covariances with what is drawn before it, divided by the variance of that."""

    @classmethod
    def draw(cls, schema: Schema, layout: Layout, known: Moments, n: int, uniform: Uniform) -> MixedNormal:
        """Draw the parameters from their posterior; the slopes are plugged in."""
        d = len(layout.numbers)
        posterior = NormalInverseWishart.prior(d).updated(known.mean[:d], known.covariance[:d, :d], n)
        mean, root = posterior.draw(uniform)
        # Perks' prior: one row shared out over the levels.
        shares = tuple(dirichlet(uniform, n * share + 1 / len(share)) for share in known.shares)
        return cls(
            schema=schema, layout=layout, mean=mean, root=root, shares=shares, slopes=_slopes(layout, known)
        )  # fmt: skip

    @property
    def covariance(self) -> FloatArray:
        """Of the numbers, scaled to [-1, 1]."""
        return np.asarray(self.root @ self.root.T)

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows."""
        parts = [
            self._rows(min(AT_ONCE, rows - start), noise.uniform) for start in range(0, rows, AT_ONCE)
        ]  # fmt: skip
        numbers = np.concatenate([part[0] for part in parts])
        codes = np.concatenate([part[1] for part in parts])
        places = {column.name: j for j, column in enumerate(self.layout.numbers)}
        factors = {factor.column.name: f for f, factor in enumerate(self.layout.factors)}
        columns = {}
        for column in self.schema:
            code = codes[:, factors[column.name]] if column.name in factors else None
            if column.name in places:
                gaps = None if code is None else code == 1
                positions = _placed(column, numbers[:, places[column.name]], gaps)
            else:
                positions = _labelled(column, code, self.layout.factors[factors[column.name]].levels)
            columns[column.name] = codec_for(column).restore(positions)
        return pd.DataFrame(columns)

    def _rows(self, rows: int, uniform: Uniform) -> tuple[FloatArray, IntArray]:
        d = len(self.mean)
        drawn = self.mean + normal(uniform, rows * d).reshape(rows, d) @ self.root.T
        numbers = np.clip(drawn, -1, 1)
        codes = np.zeros((rows, len(self.shares)), dtype=np.int64)
        # Deviations from their means of all that has been drawn so far: numbers, then indicators of labels.
        before = numbers - self.mean
        for f, share in enumerate(self.shares):
            chance = np.broadcast_to(share, (rows, len(share)))
            if f in self.layout.tied:
                chance = _probabilities(share + before @ self.slopes[self.layout.tied.index(f)], share)
            codes[:, f] = _chosen(chance, uniform(rows))
            if f in self.layout.tied:
                before = np.hstack([before, np.eye(len(share))[codes[:, f]] - share])
        return numbers, codes


def _slopes(layout: Layout, known: Moments) -> tuple[FloatArray, ...]:
    """Linear regressions of every tied factor's indicators on what is drawn before them, from the moments alone.

    The ridge is what an entry of the covariance is uncertain by: directions that vary less tell nothing.
    """
    slopes, start = [], len(layout.numbers)
    for f in layout.tied:
        end = start + layout.factors[f].levels
        before, across = known.covariance[:start, :start], known.covariance[:start, start:end]
        ridge = max(known.doubt, LEAST_RIDGE) * np.eye(start)
        slopes.append(np.asarray(np.linalg.solve(before + ridge, across), dtype=np.float64))
        start = end
    return tuple(slopes)


def _probabilities(linear: FloatArray, share: FloatArray) -> FloatArray:
    """Never negative, adding up to one; the shares themselves where nothing is left."""
    kept = np.clip(linear, 0, None)
    total = kept.sum(axis=1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), share)


def _chosen(chance: FloatArray, uniform: FloatArray) -> IntArray:
    """One level for each row, with these probabilities."""
    ends = np.cumsum(chance, axis=1)
    return np.asarray((uniform[:, None] * ends[:, -1:] >= ends[:, :-1]).sum(axis=1), dtype=np.int64)


def _placed(column: Column, unit: FloatArray, gaps: BoolArray | None) -> Positions:
    """Numbers from [-1, 1] in the column's own positions."""
    low, high = ends(column)
    values = np.clip(low + (unit + 1) / 2 * (high - low), low, high)
    return Positions(values=values if column.lattice is None else np.rint(values).astype(np.int64), missing=gaps)


def _labelled(column: Column, code: IntArray | None, levels: int) -> Positions:
    """Levels as labels, or as values of a number that has few; the last level of a nullable column is missing."""
    assert code is not None  # noqa: S101  a column that is not a number is a factor
    if not column.nullable:
        return Positions(values=code, missing=None)
    gaps = code == levels - 1
    return Positions(values=np.where(gaps, 0, code), missing=gaps)
