"""What came of the generated mistakes that were tried: ``python -m tests.audit.mutation.score`` writes the page.

The file that is kept with the tests has a line for each, and for survivors why it is harmless or that it was missed.
"""

from __future__ import annotations

import csv
import json
from importlib import resources
from pathlib import Path

from dpsynth_core.audit.generated import GeneratedMistakes
from dpsynth_core.audit.last_summary import SUMMARY
from dpsynth_core.audit.report import generated_section
from tests.audit.mutation.edits import ROOT

RESULTS = Path(__file__).with_name("results.csv")
SOURCE = "39c2464"
"""The source that they were made in."""
GENERATED = 558
"""Mistakes that the generator made of it."""
INTRODUCTION = """\
# Mistakes made in the source

Written by `python -m tests.audit.mutation.score` from `tests/audit/mutation/results.csv`; do not edit by hand.

An audit is worth what it notices. So slips of the pen are made in `privacy/`, `mechanisms/` and `table/`, one at a
time: a sensitivity is halved, a charge is dropped, noise is halved or used again, a raw value takes the place of a
noisy one (at the draw, or on a later line), a share of the budget is not split, a depth is off by one, a clip is left
out, a fact is read from the rows, a report names a row. Each edited package goes through the cheap part of the quick
audit, for the mechanisms that the file concerns: replay, enumeration, and for shared files joint laws, refusals,
prices, estimates and reading in memory. What those do not notice can be asked the other layers; the file says where
that was done. `tests/audit/mutation/__init__.py` says why no general mutation tester is used. Files that cannot break a
guarantee are left out, with the reason, in `edits.py`. The order is random within two groups: first the classes that
can hardly be harmless, then single steps and clipping, most of which are about other things than privacy. Of these two
classes the first 70 in their order were tried, and all of the KD tree's, in later source (`08f8095`). They led to a
part of the KD tree that no audited table reached, its counting in stages: the audit runs it since, and the mistakes in
it are caught; so is the refusal of rows that are drawn with nothing mixed in.
Two of the mistakes got through at first (half the sensitivity of a count of labels, and of a random walk's score); the
audit asks about them since, and they count as caught.

The deep audit on [its page](audit.md) is of later source.

A mistake counts if it breaks a guarantee. Those after which nothing runs release nothing, and those that change nothing
that a guarantee is about are listed below with the reason.
"""


def last_score() -> GeneratedMistakes:
    """Of the last time that they were tried."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return GeneratedMistakes.from_rows(csv.DictReader(file), source=SOURCE, generated=GENERATED)


def main() -> None:
    found = last_score()
    page = f"{INTRODUCTION}\n{generated_section(found)}\n"
    (ROOT / "docs" / "mutation.md").write_text(page, encoding="utf-8")
    summary = Path(str(resources.files("dpsynth_core.audit") / SUMMARY))
    stored = json.loads(summary.read_text(encoding="utf-8"))
    summary.write_text(json.dumps({**stored, "generated": found.to_dict()}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
