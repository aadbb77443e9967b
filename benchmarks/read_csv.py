"""Reading and fingerprinting a table against pandas only reading it.

python -m benchmarks.read_csv [--rows 1000000]
"""

from __future__ import annotations

import argparse
import io

import pandas as pd

import dpsynth_core as dp
from benchmarks.kd_tree import normal_table
from benchmarks.timing import best_times, show
from dpsynth_core.ledger.fingerprint import fingerprint


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    chosen = parser.parse_args()
    table, _ = normal_table(chosen.rows, 3)
    csv = table.round(3).to_csv(index=False).encode()
    times = best_times(
        {
            "pandas.read_csv": lambda: pd.read_csv(io.BytesIO(csv)),
            "read_table": lambda: dp.read_table(csv),
            "fingerprint": lambda: fingerprint(table, key=b"0" * 32),
        }
    )
    show(f"Reading {chosen.rows:,} x 3", times, unit="pandas.read_csv")


if __name__ == "__main__":
    main()
