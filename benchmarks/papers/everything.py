"""All experiments at reduced repetitions, and the pictures of the papers' figures: ``make papers``.

Results go to a folder, one JSON file for each experiment, with what was computed on the way beside them: a run that was
stopped goes on where it was, and an experiment that is finished is not run again. Two experiments run at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.papers.pictures import draw_all

SIDE_BY_SIDE = 2
BAR = 40
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Two experiments on two cores: threads of their own would only be in each other's way."""


@dataclass(frozen=True, kw_only=True)
class ReducedRun:
    """How much of an experiment is run."""

    reps: int = 1
    shrink: int = 1
    seconds: float = 60.0
    """Processor time to expect, roughly: the bar's share, and the longest goes first."""


REDUCED: dict[str, ReducedRun] = {
    "body_mass_index": ReducedRun(reps=100, seconds=25),
    "classification_task": ReducedRun(shrink=5, seconds=110),
    "false_discoveries": ReducedRun(reps=20, seconds=200),
    "gan_discoveries": ReducedRun(shrink=4, seconds=150),
    "gaussian_mixtures": ReducedRun(reps=2, shrink=10, seconds=15),
    "mean_embeddings": ReducedRun(shrink=10, seconds=15),
    "mixed_columns": ReducedRun(shrink=5, seconds=35),
    "number_of_bins": ReducedRun(reps=50, seconds=25),
    "regression_coefficients": ReducedRun(reps=8, seconds=360),
    "release_pmse": ReducedRun(reps=2, seconds=570),
    "tree_sensitivity": ReducedRun(reps=10, seconds=15),
    "utility": ReducedRun(shrink=5, seconds=150),
}
"""For every experiment; the seconds were measured on a busy machine."""


def main() -> int:
    """Run what is missing, draw the pictures, and say how long it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.everything", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/papers"), help="folder of results")
    parser.add_argument("--data", type=Path, help="folder of published data sets; without it, rows are simulated")
    parser.add_argument("--pictures", type=Path, help="folder of pictures; by default below the folder of results")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    runs = REDUCED
    waiting = [name for name in runs if not _finished(given.out / f"{name}.json")]
    waiting.sort(key=lambda name: -runs[name].seconds)
    total = sum(run.seconds for run in runs.values())
    done = total - sum(runs[name].seconds for name in waiting)
    began, failed = time.monotonic(), []
    _show(done / total, f"{len(runs) - len(waiting)} of {len(runs)} finished before")
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        started = {pool.submit(_run, name, runs[name], given.out, given.data): name for name in waiting}
        for finished in as_completed(started):
            name = started[finished]
            if not finished.result():
                failed.append(name)
            done += runs[name].seconds
            _show(done / total, name)
    draw_all(given.out, given.pictures or given.out / "pictures")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime
    print(f"\n{time.monotonic() - began:.0f} s, {cpu:.0f} s of processor time. Results are in {given.out}.")
    for name in failed:
        print(f"{name} failed; see {given.out / name}.log. Run this again to go on.")
    return 1 if failed else 0


def _run(name: str, run: ReducedRun, out: Path, data: Path | None) -> bool:
    """One experiment in a process of its own; its result appears only when it is complete."""
    command = [sys.executable, "-m", "benchmarks.papers", name, "--json", "--reps", str(run.reps)]
    command += ["--shrink", str(run.shrink), "--store", str(out / f"{name}.store.jsonl")]
    command += [] if data is None else ["--data", str(data)]
    unfinished = out / f"{name}.unfinished"
    with unfinished.open("w") as result, (out / f"{name}.log").open("a") as log:
        code = subprocess.run(command, stdout=result, stderr=log, env=ONE_THREAD, check=False).returncode  # noqa: S603
    if code == 0:
        unfinished.replace(out / f"{name}.json")
    return code == 0


def _finished(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return False
    return True


def _show(share: float, what: str) -> None:
    filled = round(BAR * share)
    bar = "#" * filled + "." * (BAR - filled)
    print(f"\r[{bar}] {share:4.0%}  {what:40.40}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
