"""The command line: ``python -m benchmarks.papers NAME [--reps N] [--json]``; without a name, a list of names."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers import DEFAULT_REPS, EXPERIMENTS
from benchmarks.papers.base import ResultStore, RunOptions
from dpsynth_core.errors import DPSynthError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment and print its tables as they are finished; progress goes to the error stream."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.name is None:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:24} {(experiment.__doc__ or '').splitlines()[0]}")
        return 0
    if given.name not in EXPERIMENTS:
        parser.error(f"There is no experiment {given.name!r}. Choose from: {', '.join(EXPERIMENTS)}.")
    reps = DEFAULT_REPS.get(given.name, RunOptions.reps) if given.reps is None else given.reps
    try:
        options = RunOptions(
            reps=reps,
            secure=given.secure,
            data=given.data,
            shrink=given.shrink,
            report=_report,
            store=ResultStore(given.store),
        )
    except DPSynthError as error:
        parser.error(str(error))
    tables = EXPERIMENTS[given.name](options)
    if given.json:
        print(json.dumps([table.plain() for table in tables], indent=2, allow_nan=False))
        return 0
    for table in tables:
        print(table.text(), end="\n\n", flush=True)
    return 0


def _report(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description="Reproduce the papers' results.")
    parser.add_argument("name", nargs="?", help="the experiment; without it, the experiments are listed")
    usual = ", ".join([f"{RunOptions.reps}", *(f"{name}: {reps}" for name, reps in DEFAULT_REPS.items())])
    parser.add_argument("--reps", type=int, help=f"repetitions of every random run (default {usual})")
    parser.add_argument("--json", action="store_true", help="print JSON instead of aligned text")
    parser.add_argument("--secure", action="store_true", help="use release noise instead of seeded simulation noise")
    parser.add_argument("--data", type=Path, help="folder of published data sets; without it, rows are simulated")
    parser.add_argument("--store", type=Path, help="file of results so far: a run that was stopped goes on from there")
    parser.add_argument("--shrink", type=int, default=1, help="divide the number of rows, for a quick look")
    return parser


if __name__ == "__main__":
    sys.exit(main())
