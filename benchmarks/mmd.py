"""Exact MMD between two large tables: compiled loops against NumPy's blocks, their difference, and random features.

python -m benchmarks.mmd [--rows 100000] [--columns 5]
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from benchmarks.timing import best_times, show
from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.mmd.diagnostic import mmd_with_error
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.diagnostics.mmd.random_features import random_feature_mmd

PART = 10_000
GAMMA = 0.1
BLOCK = 512


def plain_mean(x: FloatArray, y: FloatArray) -> float:
    """Mean of the kernel over all pairs by NumPy alone, in double precision."""
    total = 0.0
    for start in range(0, len(x), BLOCK):
        block = x[start : start + BLOCK]
        squares = np.square(block).sum(axis=1)[:, None] + np.square(y).sum(axis=1) - 2 * block @ y.T
        total += float(np.exp(-GAMMA * squares).sum())
    return total / (len(x) * len(y))


def plain_mmd(x: FloatArray, y: FloatArray) -> float:
    """Equation 1 by NumPy alone."""
    return math.sqrt(max(0.0, plain_mean(x, x) - 2 * plain_mean(x, y) + plain_mean(y, y)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=5)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, chosen.rows, chosen.columns))
    mmd_with_error(x[:10], y[:10], GAMMA)  # compiles
    times = best_times(
        {
            f"every pair of {PART:,} rows": lambda: mmd(x[:PART], y[:PART], GAMMA),
            f"every pair of {PART:,} rows, NumPy": lambda: plain_mmd(x[:PART], y[:PART]),
            "random features": lambda: random_feature_mmd(x, y, GAMMA, np.random.default_rng(1)),
        }
    )
    show(f"MMD, twice {chosen.rows:,} x {chosen.columns}", times, unit="random features")
    for name, function in (("compiled loops", mmd_with_error), ("NumPy", lambda a, b, _: (plain_mmd(a, b), 0.0))):
        cpu, wall = time.process_time(), time.perf_counter()
        value, _ = function(x, y, GAMMA)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(f"every pair of {chosen.rows:,} rows, {name}: {value:.12f} in {cpu:.1f} CPU s, {wall:.1f} s")


if __name__ == "__main__":
    main()
