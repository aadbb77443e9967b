"""MMD between two large tables by random features, against every pair of rows on a part of them.

python -m benchmarks.mmd [--rows 100000] [--columns 5]
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.timing import best_times, show
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.diagnostics.mmd.random_features import random_feature_mmd

PART = 10_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=5)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, chosen.rows, chosen.columns))
    times = best_times(
        {
            f"every pair of {PART:,} rows": lambda: mmd(x[:PART], y[:PART], 0.1),
            "random features": lambda: random_feature_mmd(x, y, 0.1, np.random.default_rng(1)),
        }
    )
    show(f"MMD, twice {chosen.rows:,} x {chosen.columns}", times, unit="random features")


if __name__ == "__main__":
    main()
