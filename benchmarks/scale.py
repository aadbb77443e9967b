"""Long tables: what a mechanism costs on rows that stay in a Parquet file, in CPU seconds and memory.

    python -m benchmarks.scale --rows 1000000 10000000 100000000 --tasks private_pgm kd_tree "GROUPING SETS"
    python -m benchmarks.scale --rows 10000000 --engine spark --tasks private_pgm
    python -m benchmarks.scale --rows 1000000 --tasks "50000000 synthetic rows"

Tables of five columns are made on the spot by DuckDB. Each figure is taken in a process of its own. The rival is
DuckDB's own ``GROUPING SETS`` query over the same ten pairs of columns, cut into as many cells as Private-PGM counts at
first. CPU seconds and memory include all processes that a task starts; with Spark these are Java and its workers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from itertools import combinations
from pathlib import Path
from typing import Any

CELLS = 32
FILE_ROWS = 10_000_000
"""Rows of a file; a longer table is a folder of files."""
RIVAL = "GROUPING SETS"
WRITING = " synthetic rows"
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


def write_table(path: Path, first: int, rows: int) -> None:
    """Five columns that depend on each other, from hashes of the row's number: the same table everywhere.

    Args:
        path: The file.
        first: Number of its first row; the rows of another number are others.
        rows: How many.
    """
    import duckdb  # noqa: PLC0415

    def uniform(seed: int) -> str:
        return f"((hash(i * 16 + {seed}) >> 12) + 0.5) / 4503599627370496.0"  # 52 bits

    def normal(seed: int) -> str:
        # Box and Muller (1958)
        return f"sqrt(-2 * ln({uniform(seed)})) * cos(2 * pi() * {uniform(seed + 1)})"

    query = f"""
        SELECT age, round(exp(10 + score / 2 + 0.5 * {normal(1)}), 2) AS income, score, region,
            least(50, -3 * ln({uniform(3)}) - 3 * ln({uniform(4)}) + region / 4) AS dose
        FROM (SELECT i, age, {normal(5)} + (age - 45) / 40 AS score, cast(hash(i * 16 + 7) % 20 AS BIGINT) AS region
            FROM (SELECT i, cast(greatest(0, least(100, 45 + 18 * {normal(8)})) AS BIGINT) AS age
                FROM range({first}, {first + rows}) AS numbers(i)))
    """  # noqa: S608
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION snappy)")


def table_of(rows: int, folder: Path) -> Path:
    """A file with so many rows, or a folder of files; what is there from an earlier run is used."""
    if rows <= FILE_ROWS:
        return _made(folder / f"dpsynth-scale-{rows}.parquet", 0, rows)
    if rows % FILE_ROWS:
        raise SystemExit(f"Give multiples of {FILE_ROWS:,} rows, or fewer.")
    many = folder / f"dpsynth-scale-{rows}"
    many.mkdir(exist_ok=True)
    for i in range(rows // FILE_ROWS):
        _made(many / f"{i:03}.parquet", i * FILE_ROWS, FILE_ROWS)
    return many


def _made(path: Path, first: int, rows: int) -> Path:
    if not path.exists():
        part = path.with_suffix(".part")
        write_table(part, first, rows)
        part.rename(path)
    return path


def measure(task: str, path: str, engine: str, cores: int) -> dict[str, float]:
    """One run in this process: CPU seconds and wall time, with those of Python's start."""
    peak = PeakMemory()
    if task == RIVAL:
        passes = _rival(path, cores)
    elif task.endswith(WRITING):
        passes = _write(path, int(task.split(maxsplit=1)[0]))
    else:
        passes = _run(task, path, engine, cores)
    return {"cpu": _cpu(peak), "wall": time.time() - _started(), "peak_mb": peak.end() / 2**20, "passes": passes}


class PeakMemory(threading.Thread):
    """The most memory that this process and its descendants have held together, looked at ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        self._most = 0
        self.cpu: dict[int, float] = {}
        self.start()

    def run(self) -> None:
        while not self._done.wait(0.1):
            self.look()

    def look(self) -> None:
        held = 0
        for pid in _family():
            try:
                held += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except (OSError, IndexError):  # it has ended meanwhile
                continue
            self.cpu[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        self._most = max(self._most, held)

    def end(self) -> int:
        self.look()
        self._done.set()
        return max(self._most, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _family() -> list[int]:
    """This process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    family = [os.getpid()]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _cpu(peak: PeakMemory) -> float:
    """Of this process and its descendants, those that are still running included."""
    peak.look()
    return sum(peak.cpu.values())


def _started() -> float:
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def _run(key: str, path: str, engine: str, cores: int) -> int:
    import dpsynth_core as dp  # noqa: PLC0415  a process of its own
    from dpsynth_core.table.engines.streamed_table import StreamedTable  # noqa: PLC0415

    schema = dp.Schema.from_dict(SCHEMA)
    options: dict[str, Any] = (
        {"threads": cores} if engine == "duckdb" else {"spark_url": f"local[{cores}]", "wait": 600}
    )
    table = dp.open_table(path, schema, engine=engine, **options)  # type: ignore[arg-type]
    passes = []
    run = StreamedTable.run
    StreamedTable.run = lambda self, task, total: passes.append(1) or run(self, task, total)  # type: ignore[assignment, method-assign]
    mechanism = dp.MECHANISMS[key].suggest(schema, table.n, 1)
    dp.synthesize(table, mechanism, epsilon=1)
    return len(passes)


def _write(path: str, rows: int) -> int:
    """A bundle of so many synthetic rows, by the command."""
    from dpsynth_core.cli import main as command  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder) / "schema.json"
        schema.write_text(json.dumps(SCHEMA))
        words = ["synthesize", path, "--schema", str(schema), "--engine", "duckdb", "--epsilon", "1", "--teaching"]
        out = str(Path(folder) / "release.zip")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = command([*words, "--mechanism", "private_pgm", "--set", f"rows={rows}", "--out", out])
    if status:
        raise SystemExit(status)
    return 2


def _rival(path: str, cores: int) -> int:
    import duckdb  # noqa: PLC0415

    cells = {}
    for column in SCHEMA["columns"]:
        name, lower, upper = (column[key] for key in ("name", "lower", "upper"))
        part = f"cast(({name} - ({lower})) / {upper - lower} * {CELLS} as integer)"
        cells[name] = f"least({part}, {CELLS - 1}) AS {name}"
    sets = ", ".join(f"({first}, {second})" for first, second in combinations(cells, 2))
    rows = f"SELECT {', '.join(cells.values())} FROM read_parquet(?)"  # noqa: S608
    files = str(Path(path) / "*.parquet") if Path(path).is_dir() else path
    query = f"SELECT {', '.join(cells)}, count(*) FROM ({rows}) GROUP BY GROUPING SETS ({sets})"  # noqa: S608
    duckdb.connect(config={"temp_directory": "", "threads": cores}).execute(query, [files]).fetchall()
    return 1


def main() -> None:
    """Print one line of JSON for each size and task."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    command.add_argument("--tasks", nargs="+", default=["private_pgm", "kd_tree", RIVAL])
    command.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    command.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    command.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    command.add_argument("--one", nargs=2, metavar=("TASK", "PATH"), help=argparse.SUPPRESS)
    chosen = command.parse_args()
    if chosen.one:
        print(json.dumps(measure(*chosen.one, chosen.engine, chosen.cores)))
        return
    for rows in chosen.rows:
        path = table_of(rows, chosen.folder)
        for task in chosen.tasks:
            one = ["--one", task, str(path), "--engine", chosen.engine, "--cores", str(chosen.cores)]
            command_line = [sys.executable, "-m", "benchmarks.scale", *one]
            done = subprocess.run(command_line, capture_output=True, text=True, check=False)  # noqa: S603
            lines = done.stdout.splitlines()
            found = json.loads(lines[-1]) if done.returncode == 0 else {"failed": done.stderr.splitlines()[-1:]}
            print(json.dumps({"rows": rows, "engine": chosen.engine, "task": task, **found}), flush=True)


if __name__ == "__main__":
    main()
