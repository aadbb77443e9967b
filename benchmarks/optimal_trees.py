"""The best tree of depth two against a greedy one of the same depth: ``python -m benchmarks.optimal_trees``."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks.timing import best_times, show
from dpsynth_core.trees.optimal import optimal_tree_pmse, warm_up


def main(rows: int = 5_000) -> None:
    warm_up()
    rng = np.random.default_rng(0)
    for columns in (2, 6, 20):
        original, synthetic = rng.normal(size=(rows, columns)), 1.1 * rng.normal(size=(rows, columns))
        both, label = np.vstack([original, synthetic]), np.repeat([0, 1], rows)
        repeats = 40 // columns

        def optimal(original: np.ndarray = original, synthetic: np.ndarray = synthetic, n: int = repeats) -> None:
            for _ in range(n):
                optimal_tree_pmse(original, synthetic)

        def greedy(both: np.ndarray = both, label: np.ndarray = label, n: int = repeats) -> None:
            for _ in range(n):
                DecisionTreeClassifier(max_depth=2).fit(both, label)

        times = best_times({"optimal tree, 32 thresholds": optimal, "greedy tree, scikit-learn": greedy}, rounds=7)
        show(f"{repeats} trees on {rows} + {rows} rows, {columns} columns", times, unit="optimal tree, 32 thresholds")


if __name__ == "__main__":
    main()
