"""How many generated mistakes the audit notices: ``python -m tests.audit.mutation --results found.csv [--most 50]``.

Finished ones are kept in the file and not tried again. The order is shuffled once and for all, so that any number of
them is a fair sample.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path

# Loaded before the package, so that every child has them at once.
import numba
import numpy
import opendp.prelude
import pandas
import scipy.stats

from tests.audit.mutation.edits import Edit, edits
from tests.audit.mutation.harness import try_edit
from tests.audit.mutation.strangers import STRANGERS

LIBRARIES = (numba, numpy, opendp.prelude, pandas, scipy.stats)
FIELDS = ("name", "outcome", "layer", "detail", "seconds")


def shuffled() -> list[Edit]:
    every = sorted(edits(), key=lambda edit: edit.name)
    random.Random(22).shuffle(every)
    return every


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.mutation", description=__doc__)
    parser.add_argument("--stranger", choices=STRANGERS, help="try one that was planted by hand, and nothing else")
    parser.add_argument("--results", type=Path, default=Path("mutation.csv"), help="a CSV file that is added to")
    parser.add_argument("--most", type=int, default=10**6, help="mistakes to try now")
    chosen = parser.parse_args()
    if chosen.stranger:
        verdict = try_edit(STRANGERS[chosen.stranger].edit)
        print(verdict.outcome, verdict.layer, verdict.detail)
        return
    done: list[dict[str, str]] = []
    if chosen.results.exists():
        with chosen.results.open(encoding="utf-8", newline="") as file:
            done = list(csv.DictReader(file))
    known = {row["name"] for row in done}
    todo = [edit for edit in shuffled() if edit.name not in known][: chosen.most]
    with chosen.results.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not known:
            writer.writeheader()
        for number, edit in enumerate(todo, start=1):
            verdict = try_edit(edit)
            writer.writerow(asdict(verdict))
            file.flush()
            print(f"{number} of {len(todo)}: {verdict.outcome} {verdict.layer} {edit.name}", flush=True)
            done.append({key: str(value) for key, value in asdict(verdict).items()})
    print(dict(Counter(row["outcome"] for row in done)))


if __name__ == "__main__":
    main()
