"""Sums over the rows, as whole numbers: exact, or with noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.noisy_bayes.layout import (
    COUNTS,
    GROUPS,
    LARGEST_SUM,
    MEANS,
    PAIRS,
    PRODUCTS,
    SPREADS,
    Kind,
    Layout,
    scaled,
)
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What the model is learned from, in units of half a range; private unless noise was added."""

    first: FloatArray
    """Of each number."""
    second: FloatArray
    """Of each product of two numbers, a matrix with the squares on its diagonal."""
    counts: tuple[FloatArray, ...]
    """Rows by level, for each factor."""
    groups: Mapping[tuple[int, int], FloatArray]
    """Of a number by level of a factor."""
    pairs: Mapping[tuple[int, int], FloatArray]
    """Rows by levels of two factors."""
    doubt: float
    """Scale of the noise on a sum of the ties; zero where none was added."""


def whole_sums(layout: Layout, table: PrivateTable, steps: int, kind: Kind) -> dict[str, IntArray]:
    """Every step's sums as one line of whole numbers, numbers counted in grid steps. Private."""
    numbers = [scaled(column, table, steps) for column in layout.numbers]
    codes = [factor.codes(table) for factor in layout.factors]
    levels = [factor.levels for factor in layout.factors]
    points = np.array(numbers, dtype=np.float64).reshape(len(numbers), table.n)
    first, second = points.sum(axis=1), points @ points.T  # exact: whole numbers below 2^53
    moments = second.astype(np.int64)
    if kind == "central":
        moments = table.n * moments - np.outer(first.astype(np.int64), first.astype(np.int64))
    rows, columns = np.array(layout.products, dtype=np.int64).reshape(-1, 2).T
    every = {
        MEANS: first,
        SPREADS: np.diag(moments),
        COUNTS: _joined([np.bincount(codes[f], minlength=levels[f]) for f in range(len(levels))]),
        PRODUCTS: moments[rows, columns],
        GROUPS: _joined([np.bincount(codes[f], weights=points[j], minlength=levels[f]) for j, f in layout.groups]),
        PAIRS: _joined(
            [
                np.bincount(codes[f] * levels[g] + codes[g], minlength=levels[f] * levels[g])
                for f, g in layout.pairs
            ]
        ),
    }  # fmt: skip
    return {label: every[label].astype(np.int64) for label in layout.sizes()}


def whole_sensitivities(layout: Layout, n: int, steps: int, kind: Kind) -> dict[str, int]:
    """The sensitivity of each step's whole numbers."""
    central = n - 1 if kind == "central" else 1
    units = {MEANS: steps, SPREADS: steps**2 * central, PRODUCTS: steps**2 * central, GROUPS: steps}
    # With a single row a central moment is always zero; a sensitivity must be positive all the same.
    return {label: max(1, cost * units.get(label, 1)) for label, cost in layout.sensitivities(kind).items()}


def exact_sums(layout: Layout, table: PrivateTable) -> Sums:
    """Without noise: not private."""
    steps = math.isqrt(LARGEST_SUM // table.n)
    kind: Kind = "about the middle"
    return _unfolded(layout, whole_sums(layout, table, steps, kind), table.n, steps=steps, kind=kind)


def noisy_sums(
    layout: Layout, table: PrivateTable, noise: Noise, *, shares: Mapping[str, Fraction], kind: Kind, progress: Progress
) -> Sums:
    """With discrete Laplace noise, every step paid for by its share."""
    steps = layout.steps(table.n, dict(shares), kind)
    progress("Adding up the rows", 0.0)
    sums = whole_sums(layout, table, steps, kind)
    costs = whole_sensitivities(layout, table.n, steps, kind)
    noisy = {}
    for place, (label, values) in enumerate(sums.items()):
        progress("Adding noise", 0.2 + 0.5 * place / len(sums))
        noisy[label] = noise.laplace(values, sensitivity=costs[label], epsilon=shares[label], label=label)
    ties = [layout.sensitivities(kind)[label] / shares[label] for label in (PRODUCTS, GROUPS, PAIRS) if label in shares]
    return _unfolded(layout, noisy, table.n, steps=steps, kind=kind, doubt=float(max(ties, default=Fraction(0))))


def _unfolded(
    layout: Layout, sums: Mapping[str, IntArray], n: int, *, steps: int, kind: Kind, doubt: float = 0.0
) -> Sums:
    """Lines of whole numbers as vectors and matrices in units of half a range."""
    d, levels = len(layout.numbers), [factor.levels for factor in layout.factors]
    first = sums.get(MEANS, np.zeros(0)) / steps
    second = np.diag(sums.get(SPREADS, np.zeros(0)) / steps**2)
    for value, (j, k) in zip(sums.get(PRODUCTS, np.zeros(0)) / steps**2, layout.products, strict=True):
        second[j, k] = second[k, j] = value
    if kind == "central":
        second = (second + np.outer(first, first)) / n
    group_sizes = [levels[f] for _, f in layout.groups]
    table_sizes = [levels[f] * levels[g] for f, g in layout.pairs]
    groups = _parted(sums.get(GROUPS, np.zeros(0)) / steps, group_sizes)
    pairs = _parted(sums.get(PAIRS, np.zeros(0)).astype(np.float64), table_sizes)
    return Sums(
        first=first, second=second.reshape(d, d), doubt=doubt,
        counts=tuple(_parted(sums.get(COUNTS, np.zeros(0)).astype(np.float64), levels)),
        groups=dict(zip(layout.groups, groups, strict=True)),
        pairs={
            (f, g): cells.reshape(levels[f], levels[g]) for (f, g), cells in zip(layout.pairs, pairs, strict=True)
        },
    )  # fmt: skip


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0)


def _parted(line: FloatArray, sizes: list[int]) -> list[FloatArray]:
    return np.split(line, np.cumsum(sizes)[:-1]) if sizes else []
