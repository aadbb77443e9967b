"""The command line: ``python -m dpsynth_core.audit [--deep] [--json] [--write docs/audit.md]``."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpsynth_core.audit.generated import GeneratedMistakes
from dpsynth_core.audit.kept_portions import KeptPortions
from dpsynth_core.audit.last_summary import SUMMARY
from dpsynth_core.audit.leaving import Files, no_files
from dpsynth_core.audit.report import markdown, summary
from dpsynth_core.audit.suite import Mutants, no_mutants, run_audit

REPETITIONS = 200


def main(
    arguments: Sequence[str] | None = None,
    mutants: Mutants = no_mutants,
    files: Files = no_files,
    generated: GeneratedMistakes | None = None,
) -> int:
    """Run the audit; 0 if nothing failed and no mutant survived, else 1. Progress goes to the error stream."""
    chosen = _parser().parse_args(arguments)
    kept = None
    seed = secrets.randbits(32) if chosen.seed is None else chosen.seed
    if chosen.resume is not None:
        last = KeptPortions.last_seed(chosen.resume, deep=chosen.deep) if chosen.seed is None else None
        seed = seed if last is None else last
        kept = KeptPortions.of(chosen.resume, seed=seed, deep=chosen.deep)
    _say(f"Seed {seed}: repeat this run with --seed {seed}.")
    repetitions = chosen.repetitions if chosen.repetitions is not None else REPETITIONS if chosen.deep else 0
    audit = run_audit(
        deep=chosen.deep,
        seed=seed,
        repetitions=repetitions,
        workers=chosen.workers,
        say=_say,
        mutants=mutants,
        files=files,
        kept=kept,
    )
    audit = replace(audit, generated=generated)
    short = json.dumps(summary(audit), indent=2, allow_nan=False)
    print(short if chosen.json else markdown(audit))
    if chosen.write is not None:
        chosen.write.write_text(markdown(audit) + "\n", encoding="utf-8")
        Path(__file__).with_name(SUMMARY).write_text(short + "\n", encoding="utf-8")
    return 0 if audit.passed else 1


def _say(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dpsynth_core.audit", description="Try to break every guarantee.")
    parser.add_argument("--deep", action="store_true", help="more of everything; every layer asks about every mutant")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of the page")
    parser.add_argument("--seed", type=int, help="repeat a run; without it a fresh one is drawn and logged")
    parser.add_argument("--repetitions", type=int, help=f"of the statistical part (deep: {REPETITIONS}, else 0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (%(default)s)")
    parser.add_argument(
        "--resume", type=Path, metavar="FOLDER", help="keep what is done there, and go on where the last run stopped"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="store the page, and the summary that the app shows")
    return parser


if __name__ == "__main__":
    sys.exit(main())
