"""From private rows to synthetic rows with a KD tree, against scikit-learn only building one.

python -m benchmarks.kd_tree [--rows 1000000] [--columns 10]
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.neighbors import KDTree as NeighbourTree

import dpsynth_core as dp
from benchmarks.timing import best_times, show
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree


def normal_table(rows: int, columns: int) -> tuple[pd.DataFrame, dp.Schema]:
    """Standard normal rows between declared bounds."""
    names = [f"x{i}" for i in range(columns)]
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(rows, columns)), columns=names)
    facts = [{"name": n, "kind": "continuous", "lower": -5, "upper": 5, "bins": 32, "public": True} for n in names]
    return table, dp.Schema.from_dict({"columns": facts})


def synthesize_rows(table: pd.DataFrame, schema: dp.Schema, seed: int | None) -> pd.DataFrame:
    """Everything between the private table and the synthetic one."""
    private = dp.PrivateTable(table, schema)
    mechanism = KDTree.suggest(schema, private.n, 1.0)
    return dp.synthesize(private, mechanism, epsilon=1.0, seed=seed).sample()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    chosen = parser.parse_args()
    table, schema = normal_table(chosen.rows, chosen.columns)
    points = table.to_numpy()
    times = best_times(
        {
            "scikit-learn build": lambda: NeighbourTree(points, leaf_size=40),
            "simulation noise": lambda: synthesize_rows(table, schema, seed=0),
            "release noise": lambda: synthesize_rows(table, schema, seed=None),
        }
    )
    show(f"KD tree, {chosen.rows:,} x {chosen.columns}", times, unit="scikit-learn build")


if __name__ == "__main__":
    main()
