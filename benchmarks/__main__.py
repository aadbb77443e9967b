"""Run every benchmark: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import counting, discoveries, growth, kd_tree, mmd, optimal_trees, reading, trees

if __name__ == "__main__":
    for benchmark in (kd_tree, growth, counting, reading, optimal_trees, trees, mmd, discoveries):
        benchmark.main()
