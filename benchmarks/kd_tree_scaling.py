"""How the cost of a KD tree grows with the rows (three columns): about linearly.

python -m benchmarks.kd_tree_scaling [--max-rows 10000000]
"""

from __future__ import annotations

import argparse
from functools import partial

from benchmarks.kd_tree import normal_table, synthesize_rows
from benchmarks.timing import Spent, best_times, show


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-rows", type=int, default=10_000_000)
    chosen = parser.parse_args()
    times: dict[str, Spent] = {}
    for rows in (size for size in (10**5, 10**6, 10**7) if size <= chosen.max_rows):
        table, schema = normal_table(rows, 3)
        run = partial(synthesize_rows, table, schema, 0)
        times |= best_times({f"{rows:,} rows": run}, rounds=2)
    show("KD tree with simulation noise, three columns", times, unit="100,000 rows")


if __name__ == "__main__":
    main()
