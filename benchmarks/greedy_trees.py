"""A greedy tree with rpart's rules, against scikit-learn growing one with the same limits: no pruning, no rpart.

python -m benchmarks.greedy_trees [--rows 5000]
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks.timing import best_times, show
from dpsynth_core.trees.cart import cart_pmse, fit_tree

LIMITS = {"minsplit": 20, "minbucket": 7, "maxdepth": 30}


def normal_rows(rows: int, columns: int, seed: int) -> np.ndarray:
    """Correlated normal columns."""
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(size=(rows, columns)), axis=1)


def scikit_tree(both: np.ndarray, label: np.ndarray) -> DecisionTreeClassifier:
    """The same limits, by its own names."""
    tree = DecisionTreeClassifier(
        min_samples_split=LIMITS["minsplit"], min_samples_leaf=LIMITS["minbucket"], max_depth=LIMITS["maxdepth"]
    )
    return tree.fit(both, label)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000, help="of each table")
    rows = parser.parse_args().rows
    start = time.perf_counter()
    cart_pmse([[0.0]], [[1.0]])
    print(f"first call, compiling or loading the compiled loops: {time.perf_counter() - start:.1f} s")
    for columns in (2, 10):
        original, synthetic = (normal_rows(rows, columns, seed) for seed in (0, 1))
        both, label = np.vstack([original, synthetic]), np.repeat([0, 1], rows)
        times = best_times(
            {
                "scikit-learn": partial(scikit_tree, both, label),
                "cart_pmse": partial(cart_pmse, original, synthetic, cp=0.001, **LIMITS),
                "fit_tree, with words": partial(fit_tree, original, synthetic, cp=0.001, **LIMITS),
            },
            rounds=9,
        )
        show(f"greedy tree, {2 * rows:,} x {columns}", times, unit="scikit-learn")


if __name__ == "__main__":
    main()
