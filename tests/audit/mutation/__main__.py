"""How many generated mistakes the audit notices: ``python -m tests.audit.mutation --results found.csv [--most 50]``.

Finished ones are kept in the file and not tried again. First come the kinds of mistakes that can hardly be harmless,
then single steps and clipping, much of which is about other things than privacy; within each of the two the order is
shuffled once and for all, so that any number of them is a fair sample.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import random
import zlib
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

# Loaded before the package, so that every child has them at once.
import numba
import numpy
import opendp.prelude
import pandas
import scipy.stats

from tests.audit.mutation.edits import Edit, edits
from tests.audit.mutation.harness import Verdict, try_edit
from tests.audit.mutation.strangers import STRANGERS

LIBRARIES = (numba, numpy, opendp.prelude, pandas, scipy.stats)
FIELDS = ("name", "family", "outcome", "layer", "detail", "seconds", "thorough")
SURVIVED = "survived"


LAST = ("off by one", "clipping")


def shuffled() -> list[Edit]:
    every = sorted(edits(), key=lambda edit: edit.name)
    random.Random(22).shuffle(every)
    return sorted(every, key=lambda edit: edit.family in LAST)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.mutation", description=__doc__)
    parser.add_argument("--stranger", choices=STRANGERS, help="try one that was planted by hand, and nothing else")
    parser.add_argument("--results", type=Path, default=Path("mutation.csv"), help="a CSV file that is added to")
    parser.add_argument("--most", type=int, default=10**6, help="mistakes to try now")
    parser.add_argument("--thorough", action="store_true", help="ask the other layers about those that survived")
    parser.add_argument(
        "--part", default="0/1", help="such as 1/4: the second of four parts, for processes side by side"
    )
    chosen = parser.parse_args()
    if chosen.stranger:
        verdict = tried(STRANGERS[chosen.stranger].edit)
        print(verdict.outcome, verdict.layer, verdict.detail)
        return
    done = _read(chosen.results)
    unasked = {name for name, row in done.items() if row["outcome"] == SURVIVED and not row["thorough"]}
    part, parts = map(int, chosen.part.split("/"))
    every = [edit for edit in shuffled() if zlib.crc32(edit.name.encode()) % parts == part]
    todo = [edit for edit in every if (edit.name in unasked if chosen.thorough else edit.name not in done)]
    for number, edit in enumerate(todo[: chosen.most], start=1):
        verdict = try_edit(edit, thorough=chosen.thorough)
        earlier = float(done[edit.name]["seconds"]) if edit.name in done else 0.0
        row = asdict(replace(verdict, seconds=round(verdict.seconds + earlier, 1)))
        done = _added(chosen.results, {**row, "thorough": "yes" * chosen.thorough})
        print(f"{number} of {len(todo)}: {verdict.outcome} {verdict.layer} {edit.name}", flush=True)
    print(len(todo) - chosen.most, "left;", dict(Counter(row["outcome"] for row in done.values())))


def tried(edit: Edit) -> Verdict:
    """By the cheap questions and, if need be, by the others."""
    verdict = try_edit(edit)
    return try_edit(edit, thorough=True) if verdict.outcome == SURVIVED else verdict


def _read(results: Path) -> dict[str, dict[str, str]]:
    if not results.exists():
        return {}
    with results.open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def _added(results: Path, row: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The file with one more line, whatever other processes add to it at the same time."""
    with results.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = _read(results)
        done[str(row["name"])] = {key: str(value) for key, value in row.items()}
        fresh = results.with_suffix(".part")
        with fresh.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(done.values())
        fresh.replace(results)
    return done


if __name__ == "__main__":
    main()
