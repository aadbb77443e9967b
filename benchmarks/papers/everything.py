"""All experiments at reduced repetitions, and the pictures of the papers' figures: ``make papers``.

Results go to a folder, one JSON file for each experiment, with what was computed on the way beside them: a run that was
stopped goes on where it was, and an experiment that is finished is not run again. Two experiments run at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
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
    "antigen_level": ReducedRun(reps=100, seconds=10),
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
    batch = Batch(runs=REDUCED, out=given.out, data=given.data)
    try:
        failed = batch.run()
    except KeyboardInterrupt:
        print(f"\nStopped. What is finished is in {given.out}; run this again to go on.")
        return 130
    draw_all(given.out, given.pictures or given.out / "pictures")
    print(f"\n{batch.timing()} Results are in {given.out}.")
    for name in failed:
        print(f"{name} failed; see {given.out / name}.log. Run this again to go on.")
    return 1 if failed else 0


@dataclass(kw_only=True)
class Batch:
    """Experiments in processes of their own, two at a time, the longest first."""

    runs: dict[str, ReducedRun]
    out: Path
    data: Path | None
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)

    def run(self) -> list[str]:
        """Run what is not finished; returns the names of those that failed."""
        waiting = [name for name in self.runs if not _finished(self.out / f"{name}.json")]
        waiting.sort(key=lambda name: -self.runs[name].seconds)
        failed: list[str] = []
        pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        started = {pool.submit(self._run, name): name for name in waiting}
        pending = set(started)
        try:
            while pending:
                self._show({started[each] for each in pending})
                ended, pending = wait(pending, timeout=1.0, return_when=FIRST_COMPLETED)
                failed += [started[each] for each in ended if not each.result()]
        finally:
            # Nothing more is started, and what runs is ended; its store has what it had computed.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in self._processes.values():
                process.terminate()
            pool.shutdown()
        self._show(set())
        return failed

    def timing(self) -> str:
        """Processor time of all runs that led to these results, also of those that were stopped."""
        lines = self._timings.read_text(encoding="utf-8").splitlines() if self._timings.exists() else []
        entries = [json.loads(line) for line in lines]
        seconds, cpu = (sum(entry[key] for entry in entries) for key in ("seconds", "processor"))
        each = f"{seconds / SIDE_BY_SIDE:,.0f} s on each of {SIDE_BY_SIDE} cores"
        return f"{cpu:,.0f} s of processor time, {each}, all runs together."

    @property
    def _timings(self) -> Path:
        return self.out / "timings.jsonl"

    def _run(self, name: str) -> bool:
        """One experiment; its result appears only when it is complete."""
        unfinished, command = self.out / f"{name}.unfinished", self._command(name)
        began = self._began[name] = time.monotonic()
        with unfinished.open("w") as result, (self.out / f"{name}.log").open("a") as log:
            process = subprocess.Popen(command, stdout=result, stderr=log, env=ONE_THREAD)  # noqa: S603
            self._processes[name] = process
            _, status, spent = os.wait4(process.pid, 0)  # not process.wait(), which does not tell the processor time
        process.returncode = os.waitstatus_to_exitcode(status)
        del self._processes[name]
        entry = {
            "experiment": name,
            "seconds": time.monotonic() - began,
            "processor": spent.ru_utime + spent.ru_stime,
            "code": process.returncode,
        }
        with self._timings.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if process.returncode == 0:
            unfinished.replace(self.out / f"{name}.json")
        return process.returncode == 0

    def _command(self, name: str) -> list[str]:
        run = self.runs[name]
        command = [sys.executable, "-m", "benchmarks.papers", name, "--json", "--reps", str(run.reps)]
        command += ["--shrink", str(run.shrink), "--store", str(self.out / f"{name}.store.jsonl")]
        return command if self.data is None else [*command, "--data", str(self.data)]

    def _show(self, pending: set[str]) -> None:
        """The bar: what is finished, and of what runs the part that its expected time says, until it is finished."""
        total = sum(run.seconds for run in self.runs.values())
        left, running = 0.0, []
        for name in pending:
            expected, began = self.runs[name].seconds, self._began.get(name)
            if began is not None:
                running.append(name)
            left += expected * (1 if began is None else max(0.05, 1 - (time.monotonic() - began) / expected))
        said = f"{len(self.runs) - len(pending)} of {len(self.runs)} finished"
        _bar(1 - left / total, f"{said}; {', '.join(sorted(running))}" if running else said)


def _finished(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return False
    return True


def _bar(share: float, what: str) -> None:
    filled = round(BAR * share)
    bar = "#" * filled + "." * (BAR - filled)
    print(f"\r[{bar}] {share:4.0%}  {what:70.70}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # however it is stopped, what it started ends too
    sys.exit(main())
