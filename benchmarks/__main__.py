"""Run every benchmark: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import count_cells, greedy_trees, kd_tree, kd_tree_scaling, mann_whitney, mmd, optimal_trees, read_csv

TIMED = (kd_tree, kd_tree_scaling, count_cells, read_csv, optimal_trees, greedy_trees, mmd, mann_whitney)

if __name__ == "__main__":
    for benchmark in TIMED:
        benchmark.main()
