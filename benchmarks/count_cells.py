"""Counting rows by cell against a bare ``np.unique`` on codes that were combined beforehand.

python -m benchmarks.count_cells [--rows 10000000]
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import dpsynth_core as dp
from benchmarks.kd_tree import normal_table
from benchmarks.timing import best_times, show
from dpsynth_core.table.counts import count_cells
from dpsynth_core.table.encoding import codec_for


def main() -> None:
    """Measure and print: few cells (a table of counts fits), and more cells than rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    chosen = parser.parse_args()
    table, schema = normal_table(chosen.rows, 3)
    private = dp.PrivateTable(table, schema)
    del table
    for bins in (32, 1024):
        names = dict.fromkeys(schema.names, bins)
        columns = [private._column(name, names) for name in schema.names]
        codes = [codec_for(c).codes(private.positions(c.name)) for c in columns]
        shape = [c.size for c in columns]
        key = np.ravel_multi_index(codes, shape)
        times = best_times(
            {
                "np.unique": partial(np.unique, key, return_counts=True),
                "count_cells": partial(count_cells, codes, shape),
                "PrivateTable.counts": partial(private.counts, bins=names),
            },
            rounds=4,
        )
        show(f"Counting {chosen.rows:,} x 3, {bins} bins a column", times, unit="np.unique")


if __name__ == "__main__":
    main()
