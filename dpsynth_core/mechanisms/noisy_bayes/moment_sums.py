"""Sums over the rows, as integers: exact, or with noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.noisy_bayes.moment_layout import (
    COUNTS,
    COVARIANCES,
    GROUP_MEANS,
    MAX_SUM,
    MEANS,
    PAIR_COUNTS,
    RELATIONS,
    VARIANCES,
    MomentKind,
    MomentLayout,
)
from dpsynth_core.mechanisms.numbers_and_labels import to_unit
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress
from dpsynth_core.table.private_rows import PrivateRows, RowsAtHand


@dataclass(frozen=True, kw_only=True)
class MomentSums:
    """What the model is learned from, in units of half a range; private unless noise was added."""

    first: FloatArray
    """Of each number."""
    second: FloatArray
    """Of each product of two numbers, a matrix with the squares on its diagonal."""
    counts: tuple[FloatArray, ...]
    """Rows by level, for each categorical variable."""
    groups: Mapping[tuple[int, int], FloatArray]
    """Of a number by level of a categorical variable."""
    pairs: Mapping[tuple[int, int], FloatArray]
    """Rows by levels of two categorical variables."""
    noise_scale: float
    """Of the noise on a sum about two columns; zero where none was added."""


@dataclass(frozen=True, kw_only=True)
class RowMoments:
    """What each row adds to the sums: its numbers, their products, and counts by label."""

    layout: MomentLayout
    steps: int

    @property
    def columns(self) -> tuple[str, ...]:
        layout = self.layout
        return tuple(dict.fromkeys([*(c.name for c in layout.numbers), *(v.column.name for v in layout.categorical)]))

    def total(self, rows: RowsAtHand) -> IntArray:
        """All sums end to end: first moments, the matrix of second ones, counts, sums by label, counts of pairs."""
        layout, levels = self.layout, self.layout.levels
        # On the integer grid from -steps to steps over the declared range.
        numbers = [np.rint(to_unit(column, rows.positions(column.name)) * self.steps) for column in layout.numbers]
        codes = [variable.codes(rows) for variable in layout.categorical]
        points = np.array(numbers, dtype=np.float64).reshape(len(numbers), rows.n)
        first, second = points.sum(axis=1), points @ points.T  # exact: integers below 2^53
        counts = [np.bincount(codes[f], minlength=levels[f]) for f in range(len(levels))]
        groups = [np.bincount(codes[f], weights=points[j], minlength=levels[f]) for j, f in layout.number_by_label]
        pairs = [
            np.bincount(codes[f] * levels[g] + codes[g], minlength=levels[f] * levels[g]) for f, g in layout.label_pairs
        ]
        return np.concatenate([first, second.ravel(), *counts, *groups, *pairs]).astype(np.int64)


def integer_sums(layout: MomentLayout, table: PrivateRows, steps: int, kind: MomentKind) -> dict[str, IntArray]:
    """Every stage's sums as one vector of integers, numbers counted in grid steps. Private."""
    d, sizes = len(layout.numbers), layout.sizes()
    lengths = [d, d * d, *(sizes.get(label, 0) for label in (COUNTS, GROUP_MEANS, PAIR_COUNTS))]
    added = table.sums(RowMoments(layout=layout, steps=steps))
    first, second, counts, groups, pairs = np.split(added, np.cumsum(lengths)[:-1])
    moments = second.reshape(d, d)
    if kind == "central":
        moments = table.n * moments - np.outer(first, first)
    rows, columns = np.array(layout.number_pairs, dtype=np.int64).reshape(-1, 2).T
    every = {
        MEANS: first,
        VARIANCES: np.diag(moments),
        COUNTS: counts,
        COVARIANCES: moments[rows, columns],
        GROUP_MEANS: groups,
        PAIR_COUNTS: pairs,
    }
    return {label: every[label] for label in sizes}


def integer_sensitivities(layout: MomentLayout, n: int, steps: int, kind: MomentKind) -> dict[str, int]:
    central = n - 1 if kind == "central" else 1
    units = {MEANS: steps, VARIANCES: steps**2 * central, COVARIANCES: steps**2 * central, GROUP_MEANS: steps}
    # With a single row a central moment is always zero; a sensitivity must be positive all the same.
    return {label: max(1, cost * units.get(label, 1)) for label, cost in layout.sensitivities(kind).items()}


def exact_sums(layout: MomentLayout, table: PrivateRows) -> MomentSums:
    """Without noise: not private."""
    steps = math.isqrt(MAX_SUM // table.n)
    return _from_integers(layout, integer_sums(layout, table, steps, "middle"), table.n, steps=steps, kind="middle")


def noisy_sums(
    layout: MomentLayout,
    table: PrivateRows,
    noise: Noise,
    *,
    shares: Mapping[str, Fraction],
    kind: MomentKind,
    progress: Progress,
) -> MomentSums:
    """With discrete Laplace noise, every stage paid for by its share."""
    steps = layout.steps(table.n, dict(shares), kind)
    progress("Adding up the rows", 0.0)
    sums = integer_sums(layout, table, steps, kind)
    costs = integer_sensitivities(layout, table.n, steps, kind)
    noisy = {}
    for i, (label, values) in enumerate(sums.items()):
        progress("Adding noise", 0.2 + 0.5 * i / len(sums))
        noisy[label] = noise.laplace(values, sensitivity=costs[label], epsilon=shares[label], label=label)
    scales = [layout.sensitivities(kind)[label] / shares[label] for label in RELATIONS if label in shares]
    noise_scale = float(max(scales, default=Fraction(0)))
    return _from_integers(layout, noisy, table.n, steps=steps, kind=kind, noise_scale=noise_scale)


def _from_integers(
    layout: MomentLayout,
    sums: Mapping[str, IntArray],
    n: int,
    *,
    steps: int,
    kind: MomentKind,
    noise_scale: float = 0.0,
) -> MomentSums:
    """Vectors of integers as vectors and matrices in units of half a range."""

    def values(label: str, unit: int = 1) -> FloatArray:
        return np.asarray(sums.get(label, np.zeros(0)) / unit)

    d, levels = len(layout.numbers), layout.levels
    first, second = values(MEANS, steps), np.diag(values(VARIANCES, steps**2))
    for value, (j, k) in zip(values(COVARIANCES, steps**2), layout.number_pairs, strict=True):
        second[j, k] = second[k, j] = value
    if kind == "central":
        second = (second + np.outer(first, first)) / n
    groups = _parted(values(GROUP_MEANS, steps), [levels[f] for _, f in layout.number_by_label])
    tables = _parted(values(PAIR_COUNTS), [levels[f] * levels[g] for f, g in layout.label_pairs])
    pairs = {(f, g): table.reshape(levels[f], -1) for (f, g), table in zip(layout.label_pairs, tables, strict=True)}
    return MomentSums(
        first=first,
        second=second.reshape(d, d),
        counts=tuple(_parted(values(COUNTS), levels)),
        groups=dict(zip(layout.number_by_label, groups, strict=True)),
        pairs=pairs,
        noise_scale=noise_scale,
    )


def _parted(values: FloatArray, sizes: list[int]) -> list[FloatArray]:
    return np.split(values, np.cumsum(sizes)[:-1]) if sizes else []
