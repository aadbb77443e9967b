"""The paid choice of a grid against the rule from public facts: ``python -m benchmarks.grid_resolution``.

Tables of two to four numeric columns that fill the unit cube in different ways, none of them from a paper. The distance
is MMD with a Gaussian kernel whose bandwidth is a quarter of the table's own standard deviation, by random features.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import t as student

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.kd_grid import MIN_ROWS_TO_CHOOSE, KDGrid, balanced_bins
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.examples.base import numeric
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

Shapes: TypeAlias = "dict[str, Callable[[np.random.Generator, int, int], FloatArray]]"
"""By name: rows in the unit cube, from a generator, a number of rows and a number of columns."""
FEATURES, AT_ONCE = 200, 5_000
RUNS = 2
FLOOR = 1e-4
"""Added to both distances: below it, which is smaller hardly matters."""
TITLES = {
    "Distance of the suggested grid over that of the rule from public facts; below one is better.": "log_ratio",
    "The same over the rule's grid with lost rows returned: the choice of the bins alone.": "log_ratio_returning",
}
WORSE = 1.25
"""A ratio from which the choice counts as clearly worse."""


@dataclass(frozen=True, kw_only=True)
class GridComparison:
    """The chosen grid against the rule's on one table."""

    shape: str
    columns: int
    rows: float
    """Times epsilon."""
    log_ratio: float
    """Of the suggested grid's distance over the rule's; below zero the suggestion is better."""
    log_ratio_returning: float
    """The same over the rule's grid with lost rows returned, as the suggestion returns them: what the choice of the
    bins alone does."""


def _clusters(rng: np.random.Generator, n: int, d: int, number: int) -> FloatArray:
    centres, which = rng.uniform(0.1, 0.9, (number, d)), rng.integers(0, number, n)
    spread = 10 ** rng.uniform(-2.3, -1.2, (number, 1))
    return np.asarray(centres[which] + spread[which] * rng.normal(size=(n, d)))


def _curve(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    t = rng.random(n)
    waves = [0.5 + 0.4 * np.sin((i + 1) * 2 * np.pi * t) for i in range(d)]
    return np.asarray(np.column_stack(waves) + 0.02 * rng.normal(size=(n, d)))


SHAPES: Shapes = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "normal": lambda rng, n, d: 0.5 + 0.17 * rng.normal(size=(n, d)),
    "narrow": lambda rng, n, d: rng.uniform(0.3, 0.7) + 0.03 * rng.normal(size=(n, d)),
    "four clusters": lambda rng, n, d: _clusters(rng, n, d, 4),
    "many clusters": lambda rng, n, d: _clusters(rng, n, d, 25),
    "skewed": lambda rng, n, d: np.exp(rng.normal(size=(n, d))) / 20,
    "curve": _curve,
    "correlated": lambda rng, n, d: 0.5 + 0.15 * (0.9 * rng.normal(size=(n, 1)) + 0.44 * rng.normal(size=(n, d))),
}


def _ring(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    directions = rng.normal(size=(n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(0.5 + (0.35 + 0.02 * rng.normal(size=(n, 1))) * directions)


def _spike(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Most rows all over the domain, three in ten in a corner of it."""
    corner = 0.15 + 0.01 * rng.normal(size=(n, d))
    return np.where(rng.random((n, 1)) < 0.3, corner, rng.random((n, d)))


def _stripes(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    points = rng.random((n, d))
    points[:, 0] = (rng.integers(0, 5, n) + 0.5) / 5 + 0.01 * rng.normal(size=n)
    return points


def _copies(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """All columns nearly the same, and skewed."""
    return np.asarray(rng.beta(2, 6, (n, 1)) + 0.01 * rng.normal(size=(n, d)))


FRESH_SHAPES: Shapes = {
    "heavy tails": lambda rng, n, d: 0.5 + 0.05 * rng.standard_t(2, (n, d)),
    "ring": _ring,
    "both ends": lambda rng, n, d: rng.beta(0.4, 0.4, (n, d)),
    "corner spike": _spike,
    "stripes": _stripes,
    "falling": lambda rng, n, d: rng.exponential(0.15, (n, d)),
    "nearly copies": _copies,
    "two humps": lambda rng, n, d: rng.choice([0.3, 0.7], (n, d)) + 0.06 * rng.normal(size=(n, d)),
}
"""Written after everything was settled, to confirm it: nothing was tried on them before."""


def _embedding(points: FloatArray, weights: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Mean of random Fourier features, whose distance is about the MMD."""
    total = np.zeros(2 * frequencies.shape[1])
    for start in range(0, len(points), AT_ONCE):
        angles = points[start : start + AT_ONCE] @ frequencies
        part = weights[start : start + AT_ONCE]
        total += np.concatenate([part @ np.cos(angles), part @ np.sin(angles)])
    return np.asarray(total / math.sqrt(frequencies.shape[1]))


def compare(seed: int, shapes: Shapes) -> GridComparison:
    """One table, cut by choice and by rule."""
    rng = np.random.default_rng([2023, seed])
    d, n = int(rng.integers(2, 5)), int(10 ** rng.uniform(3.5, 5))
    epsilon = round(MIN_ROWS_TO_CHOOSE / n * float(10 ** rng.uniform(0, 1.5)), 4)
    shape = list(shapes)[seed % len(shapes)]
    points = np.clip(shapes[shape](rng, n, d), 0, 1 - 1e-9)
    names = [f"x{i}" for i in range(d)]
    facts = [numeric(name, 0.0, 1.0, bins=32, origin="public knowledge") for name in names]
    table = PrivateTable(pd.DataFrame(points, columns=names), Schema.from_dict({"columns": facts}))
    bandwidth = 0.25 * math.sqrt(float(points.var(axis=0).mean()) * d / 2)
    frequencies = rng.normal(size=(d, FEATURES)) / bandwidth
    target = _embedding(points, np.full(n, 1 / n), frequencies)
    suggested = KDGrid.suggest(table.schema, n, epsilon)
    rule = KDGrid(bins=balanced_bins(table.schema, n, epsilon))

    def distance(mechanism: KDGrid) -> float:
        found = []
        for run in range(RUNS):
            model = mechanism.fit(table, SeededNoise(Budget.of(str(epsilon)), 10 * seed + run))
            weights = model.weights / model.weights.sum()
            found.append(float(np.linalg.norm(_embedding(model.centres(), weights, frequencies) - target)))
        return float(np.mean(found)) + FLOOR

    ours, by_rule, returning = (distance(each) for each in (suggested, rule, replace(rule, spread_lost=True)))
    return GridComparison(
        shape=shape,
        columns=d,
        rows=n * epsilon,
        log_ratio=math.log(ours / by_rule),
        log_ratio_returning=math.log(ours / returning),
    )


def main() -> None:
    """Print the geometric mean of the ratio, by columns and by rows times epsilon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid_resolution", description=__doc__)
    parser.add_argument("--tables", type=int, default=120)
    parser.add_argument("--first", type=int, default=0, help="number of the first table, for tables not seen before")
    parser.add_argument("--fresh", action="store_true", help="the shapes that were written to confirm the choice")
    given = parser.parse_args()
    shapes, found = FRESH_SHAPES if given.fresh else SHAPES, []
    for seed in range(given.first, given.first + given.tables):
        found.append(compare(seed, shapes))
        print(f"table {seed}: {found[-1]}, ratio {math.exp(found[-1].log_ratio):.2f}", file=sys.stderr, flush=True)
    for title, name in TITLES.items():
        print(title)
        _report("all", found, name)
        for shape in shapes:
            _report(shape, [each for each in found if each.shape == shape], name)
        for d in range(2, 5):
            _report(f"{d} columns", [each for each in found if each.columns == d], name)
        for low, high in ((5_000, 15_000), (15_000, 50_000), (50_000, 160_000)):
            chosen = [each for each in found if low <= each.rows < high]
            _report(f"rows times epsilon {low:,} to {high:,}", chosen, name)


def _report(title: str, chosen: list[GridComparison], name: str) -> None:
    """Geometric mean of the ratio with its interval of 95%, and on how many tables the suggestion was worse."""
    logs = np.array([getattr(each, name) for each in chosen])
    if len(logs) < 2:
        return
    half = float(student.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs)))
    low, middle, high = (math.exp(float(logs.mean()) + side * half) for side in (-1, 0, 1))
    worse, clearly = int((logs > 0).sum()), int((logs > math.log(WORSE)).sum())
    print(
        f"{title:34} {len(logs):4} tables  {middle:.2f} ({low:.2f} to {high:.2f})  worse: {worse}, "
        f"by more than a quarter: {clearly}"
    )


if __name__ == "__main__":
    main()
