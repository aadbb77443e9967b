"""What came of the generated mistakes that were tried, from the file that is kept with the tests."""

from __future__ import annotations

import csv
from pathlib import Path

from dpsynth_core.audit.generated import GeneratedMistakes

RESULTS = Path(__file__).with_name("results.csv")
SOURCE = "unknown"
"""The source that they were made in."""
GENERATED = 523
"""Mistakes that the generator made of it."""


def last_score() -> GeneratedMistakes:
    """Of the last time that they were tried."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return GeneratedMistakes.from_rows(csv.DictReader(file), source=SOURCE, generated=GENERATED)
