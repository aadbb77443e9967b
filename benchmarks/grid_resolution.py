"""The paid choice of a grid against the rule from public facts: ``python -m benchmarks.grid_resolution``.

Tables of two to four numeric columns that fill the unit cube in different ways, none of them from a paper. The distance
is MMD with a Gaussian kernel whose bandwidth is a quarter of the table's own standard deviation, by random features.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.kd_grid import MIN_ROWS_TO_CHOOSE, KDGrid, balanced_bins
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.examples.base import numeric
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

FEATURES, AT_ONCE = 200, 5_000
RUNS = 2
FLOOR = 1e-4
"""Added to both distances: below it, which is smaller hardly matters."""


def _clusters(rng: np.random.Generator, n: int, d: int, number: int) -> FloatArray:
    centres, which = rng.uniform(0.1, 0.9, (number, d)), rng.integers(0, number, n)
    spread = 10 ** rng.uniform(-2.3, -1.2, (number, 1))
    return np.asarray(centres[which] + spread[which] * rng.normal(size=(n, d)))


def _curve(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    t = rng.random(n)
    waves = [0.5 + 0.4 * np.sin((i + 1) * 2 * np.pi * t) for i in range(d)]
    return np.asarray(np.column_stack(waves) + 0.02 * rng.normal(size=(n, d)))


SHAPES: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "normal": lambda rng, n, d: 0.5 + 0.17 * rng.normal(size=(n, d)),
    "narrow": lambda rng, n, d: rng.uniform(0.3, 0.7) + 0.03 * rng.normal(size=(n, d)),
    "four clusters": lambda rng, n, d: _clusters(rng, n, d, 4),
    "many clusters": lambda rng, n, d: _clusters(rng, n, d, 25),
    "skewed": lambda rng, n, d: np.exp(rng.normal(size=(n, d))) / 20,
    "curve": _curve,
    "correlated": lambda rng, n, d: 0.5 + 0.15 * (0.9 * rng.normal(size=(n, 1)) + 0.44 * rng.normal(size=(n, d))),
}


def _embedding(points: FloatArray, weights: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Mean of random Fourier features, whose distance is about the MMD."""
    total = np.zeros(2 * frequencies.shape[1])
    for start in range(0, len(points), AT_ONCE):
        angles = points[start : start + AT_ONCE] @ frequencies
        part = weights[start : start + AT_ONCE]
        total += np.concatenate([part @ np.cos(angles), part @ np.sin(angles)])
    return np.asarray(total / math.sqrt(frequencies.shape[1]))


def compare(seed: int) -> tuple[int, float, float]:
    """Columns, rows times epsilon, and the log of the chosen grid's distance over the rule's."""
    rng = np.random.default_rng([2023, seed])
    d, n = int(rng.integers(2, 5)), int(10 ** rng.uniform(3.5, 5))
    epsilon = round(MIN_ROWS_TO_CHOOSE / n * float(10 ** rng.uniform(0, 1.5)), 4)
    points = np.clip(SHAPES[list(SHAPES)[seed % len(SHAPES)]](rng, n, d), 0, 1 - 1e-9)
    names = [f"x{i}" for i in range(d)]
    facts = [numeric(name, 0.0, 1.0, bins=32, origin="public knowledge") for name in names]
    table = PrivateTable(pd.DataFrame(points, columns=names), Schema.from_dict({"columns": facts}))
    bandwidth = 0.25 * math.sqrt(float(points.var(axis=0).mean()) * d / 2)
    frequencies = rng.normal(size=(d, FEATURES)) / bandwidth
    target = _embedding(points, np.full(n, 1 / n), frequencies)
    suggested = KDGrid.suggest(table.schema, n, epsilon)
    rule = replace(suggested, bins=balanced_bins(table.schema, n, epsilon))

    def distance(mechanism: KDGrid) -> float:
        found = []
        for run in range(RUNS):
            model = mechanism.fit(table, SeededNoise(Budget.of(str(epsilon)), 10 * seed + run))
            weights = model.weights / model.weights.sum()
            found.append(float(np.linalg.norm(_embedding(model.centres(), weights, frequencies) - target)))
        return float(np.mean(found)) + FLOOR

    return d, n * epsilon, math.log(distance(suggested) / distance(rule))


def main() -> None:
    """Print the geometric mean of the ratio, by columns and by rows times epsilon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid_resolution", description=__doc__)
    parser.add_argument("--tables", type=int, default=120)
    parser.add_argument("--first", type=int, default=0, help="number of the first table, for tables not seen before")
    given = parser.parse_args()
    found = np.array([compare(seed) for seed in range(given.first, given.first + given.tables)])

    def report(title: str, chosen: FloatArray) -> None:
        logs = found[chosen.astype(bool), 2]
        if len(logs):
            error = 0.0 if len(logs) < 2 else float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
            worse = float((logs > math.log(1.25)).mean())
            ratio = f"{math.exp(float(logs.mean())):.2f} (standard error {error:.0%})"
            print(f"{title:34} {len(logs):4} tables  {ratio}  more than a quarter worse: {worse:.0%}")

    print("Distance of the suggested grid over that of the rule from public facts; below one is better.")
    report("all", np.ones(len(found)))
    for d in range(2, 5):
        report(f"{d} column(s)", found[:, 0] == d)
    for low, high in ((5_000, 15_000), (15_000, 50_000), (50_000, 160_000)):
        report(f"rows times epsilon {low:,} to {high:,}", (found[:, 1] >= low) & (found[:, 1] < high))


if __name__ == "__main__":
    main()
