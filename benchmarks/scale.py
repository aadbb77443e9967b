"""Long tables: what a mechanism costs on rows that stay in a Parquet file, in CPU seconds and memory.

    python -m benchmarks.scale --rows 1000000 10000000 --mechanisms private_pgm kd_tree

Tables of five columns are made on the spot. Each figure is taken in a process of its own. The rival is DuckDB's own
``GROUPING SETS`` query over the same ten pairs of columns, cut into as many cells as Private-PGM counts at first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PART_ROWS = 1_000_000
CELLS = 32
RIVAL = "GROUPING SETS"
SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "age", "kind": "integer", "lower": 0, "upper": 100, "public": True},
        {"name": "income", "kind": "continuous", "lower": 0, "upper": 1e6, "bins": 32, "public": True},
        {"name": "score", "kind": "continuous", "lower": -5, "upper": 5, "bins": 32, "public": True},
        {"name": "region", "kind": "integer", "lower": 0, "upper": 19, "public": True},
        {"name": "dose", "kind": "continuous", "lower": 0, "upper": 50, "bins": 32, "public": True},
    ],
    "file": {"format": "parquet"},
}


def write_table(path: Path, rows: int, seed: int = 0) -> None:
    """Five columns that depend on each other, a million rows at a time."""
    rng = np.random.default_rng(seed)
    with pq.ParquetWriter(path, _part(rng, 1).schema) as writer:
        for start in range(0, rows, PART_ROWS):
            writer.write_table(_part(rng, min(PART_ROWS, rows - start)))


def _part(rng: np.random.Generator, rows: int) -> pa.Table:
    age = np.clip(rng.normal(45, 18, rows), 0, 100).astype(np.int64)
    score = rng.standard_normal(rows) + (age - 45) / 40
    income = np.exp(10 + score / 2 + 0.5 * rng.standard_normal(rows)).round(2)
    region = rng.integers(0, 20, rows)
    dose = np.clip(rng.gamma(2, 3, rows) + region / 4, 0, 50)
    return pa.table({"age": age, "income": income, "score": score, "region": region, "dose": dose})


def measure(task: str, path: str) -> dict[str, float]:
    """One run in this process: CPU seconds, wall time and the most memory it has held."""
    wall, cpu = time.perf_counter(), _cpu()
    passes = _rival(path) if task == RIVAL else _run(task, path)
    return {
        "cpu": _cpu() - cpu,
        "wall": time.perf_counter() - wall,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "passes": passes,
    }


def _cpu() -> float:
    return sum(sum(os.times()[i] for i in pair) for pair in ((0, 1), (2, 3)))


def _run(key: str, path: str) -> int:
    import dpsynth_core as dp  # noqa: PLC0415  a process of its own
    from dpsynth_core.table.engines.streamed_table import StreamedTable  # noqa: PLC0415

    schema = dp.Schema.from_dict(SCHEMA)
    table = dp.open_table(path, schema)
    passes = []
    run = StreamedTable.run
    StreamedTable.run = lambda self, task, total: passes.append(1) or run(self, task, total)  # type: ignore[assignment, method-assign]
    mechanism = dp.MECHANISMS[key].suggest(schema, table.n, 1)
    dp.synthesize(table, mechanism, epsilon=1)
    return len(passes)


def _rival(path: str) -> int:
    import duckdb  # noqa: PLC0415

    cells = {}
    for column in SCHEMA["columns"]:
        name, lower, upper = (column[key] for key in ("name", "lower", "upper"))
        part = f"cast(({name} - ({lower})) / {upper - lower} * {CELLS} as integer)"
        cells[name] = f"least({part}, {CELLS - 1}) AS {name}"
    sets = ", ".join(f"({first}, {second})" for first, second in combinations(cells, 2))
    rows = f"SELECT {', '.join(cells.values())} FROM read_parquet(?)"  # noqa: S608
    query = f"SELECT {', '.join(cells)}, count(*) FROM ({rows}) GROUP BY GROUPING SETS ({sets})"  # noqa: S608
    duckdb.connect(config={"temp_directory": ""}).execute(query, [path]).fetchall()
    return 1


def main() -> None:
    """Print one line of JSON for each size and task."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    command.add_argument("--mechanisms", nargs="+", default=["private_pgm", "kd_tree"])
    command.add_argument("--folder", type=Path, default=Path("/tmp"))  # noqa: S108  made on the spot
    command.add_argument("--one", nargs=2, metavar=("TASK", "PATH"), help=argparse.SUPPRESS)
    chosen = command.parse_args()
    if chosen.one:
        print(json.dumps(measure(*chosen.one)))
        return
    for rows in chosen.rows:
        path = chosen.folder / f"dpsynth-scale-{rows}.parquet"
        if not path.exists():
            part = path.with_suffix(".part")
            write_table(part, rows)
            part.rename(path)
        for task in (*chosen.mechanisms, RIVAL):
            one = ["--one", task, str(path)]
            command_line = [sys.executable, "-m", "benchmarks.scale", *one]
            done = subprocess.run(command_line, capture_output=True, text=True, check=False)  # noqa: S603
            found = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr.splitlines()[-1:]}
            print(json.dumps({"rows": rows, "task": task, **found}), flush=True)


if __name__ == "__main__":
    main()
