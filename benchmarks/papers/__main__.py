"""The command line: ``python -m benchmarks.papers NAME [--reps N] [--json]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers import REPETITIONS, REPRODUCE
from benchmarks.papers.base import Experiment, Setup
from dpsynth_core.errors import DPSynthError

DEFAULT = Setup()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment, print its tables as they are finished; progress goes to the error stream."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.list:
        for name, experiment in sorted(REPRODUCE.items()):
            print(f"{name:12} {(experiment.__doc__ or '').splitlines()[0]}")
        return 0
    if chosen.name not in REPRODUCE:
        wrong = "Which experiment?" if chosen.name is None else f"There is no experiment {chosen.name!r}."
        parser.error(f"{wrong} Choose from: {', '.join(sorted(REPRODUCE))}.")
    reps = REPETITIONS.get(chosen.name, DEFAULT.reps) if chosen.reps is None else chosen.reps
    try:
        setup = Setup(reps=reps, secure=chosen.secure, data=chosen.data, shrink=chosen.shrink, say=_say)
    except DPSynthError as error:
        parser.error(str(error))
    _print(REPRODUCE[chosen.name], setup, as_json=chosen.json)
    return 0


def _print(experiment: Experiment, setup: Setup, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([table.plain() for table in experiment(setup)], indent=2, allow_nan=False))
        return
    for table in experiment(setup):
        print(table.text(), end="\n\n", flush=True)


def _say(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description="The papers' results again.")
    parser.add_argument("name", nargs="?", help=f"experiment: {', '.join(sorted(REPRODUCE))}")
    parser.add_argument("--list", action="store_true", help="name the experiments and stop")
    usual = ", ".join([f"{DEFAULT.reps}", *(f"{name}: {reps}" for name, reps in REPETITIONS.items())])
    parser.add_argument("--reps", type=int, default=None, help=f"repetitions of every random run ({usual})")
    parser.add_argument("--json", action="store_true", help="print JSON instead of aligned text")
    parser.add_argument("--secure", action="store_true", help="release noise instead of seeded simulation noise")
    parser.add_argument("--data", type=Path, default=DEFAULT.data, help="folder of published data sets")
    parser.add_argument("--shrink", type=int, default=DEFAULT.shrink, help="divide numbers of rows, for a quick look")
    return parser


if __name__ == "__main__":
    sys.exit(main())
