"""Reading a file by a declared layout and encoding its cells, against pandas only reading it.

python -m benchmarks.read_csv [--rows 1000000]
"""

from __future__ import annotations

import argparse
import io

import numpy as np
import pandas as pd

import dpsynth_core as dp
from benchmarks.timing import best_times, show
from dpsynth_core.ledger.file_fingerprint import file_fingerprints

FACTS = {
    "file": {},
    "columns": [
        *({"name": f"x{i}", "kind": "continuous", "lower": -5, "upper": 5, "bins": 32} for i in range(4)),
        *({"name": f"k{i}", "kind": "integer", "lower": 0, "upper": 1000, "bins": 32} for i in range(3)),
        {"name": "colour", "kind": "categorical", "categories": ["red", "green", "blue"]},
        {"name": "smokes", "kind": "boolean"},
        {"name": "day", "kind": "date", "lower": "2000-01-01", "upper": "2030-12-31", "bins": 32},
    ],
}


def mixed_csv(rows: int) -> bytes:
    """A file with every kind of column."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            **{f"x{i}": rng.normal(size=rows).round(3) for i in range(4)},
            **{f"k{i}": rng.integers(0, 1000, rows) for i in range(3)},
            "colour": rng.choice(["red", "green", "blue"], rows),
            "smokes": rng.random(rows) < 0.5,
            "day": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), unit="D"),
        }
    )
    return table.to_csv(index=False).encode()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    chosen = parser.parse_args()
    csv, schema = mixed_csv(chosen.rows), dp.Schema.from_dict(FACTS)
    times = best_times(
        {
            "pandas.read_csv": lambda: pd.read_csv(io.BytesIO(csv)),
            "read_table": lambda: dp.read_table(csv, schema=schema),
            "read and encode": lambda: dp.PrivateTable(dp.read_table(csv, schema=schema), schema),
            "name of its account": lambda: file_fingerprints(csv, key=b"0" * 32),
        }
    )
    show(f"Reading {chosen.rows:,} x 10", times, unit="pandas.read_csv")


if __name__ == "__main__":
    main()
