"""Reading many damaged files as the app does, and counting what must not happen."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

from dpsynth_core.errors import MAX_MESSAGE, IntakeError
from dpsynth_core.runs.reading import ReadingLimits, read_file, run_apart
from tests.fuzz.batch import read_all
from tests.fuzz.mutation import CANARY, mutated, seeds

MAX_SECONDS = 8.0
BATCH = 50
KEY = bytes(32)
LIMITS = ReadingLimits(cpu_seconds=300, seconds=600)


@dataclass(kw_only=True)
class FuzzReport:
    """What came of the files."""

    files: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    crashes: list[int] = field(default_factory=list)
    """Seeds of files that ended the process, or with an error that is no refusal."""
    hangs: list[int] = field(default_factory=list)
    leaks: list[int] = field(default_factory=list)
    """Seeds of files whose message holds a cell, or is too long."""
    longest: float = 0.0
    """CPU seconds of the slowest file."""
    peak_bytes: int = 0

    @property
    def clean(self) -> bool:
        return not (self.crashes or self.hangs or self.leaks)

    def add(self, number: int, outcome: str, message: str, seconds: float) -> None:
        """One file, by the seed that makes it again."""
        self.files += 1
        self.outcomes[outcome] += 1
        self.longest = max(self.longest, seconds)
        if outcome == "crash":
            self.crashes.append(number)
        if seconds > MAX_SECONDS:
            self.hangs.append(number)
        if CANARY in message or len(message) > MAX_MESSAGE:
            self.leaks.append(number)


def content_of(number: int) -> bytes:
    """The damaged file of a number: the same every time."""
    rng = random.Random(number)
    good = seeds()
    kind = rng.choices(("parquet", "excel", "text"), (5, 5, 1))[0]
    return mutated(rng.choice(good[kind]), rng)


def fuzz(files: int, first: int = 0) -> FuzzReport:
    """Read files in batches, each batch in a process as an upload has; a batch that ends early is taken apart."""
    report = FuzzReport()
    for start in range(first, first + files, BATCH):
        numbers = range(start, min(start + BATCH, first + files))
        contents = [content_of(number) for number in numbers]
        try:
            outcomes, peak = run_apart(read_all, contents, KEY, limits=LIMITS)
        except IntakeError:
            for number, content in zip(numbers, contents, strict=True):
                report.add(number, *_alone(content))
            continue
        report.peak_bytes = max(report.peak_bytes, peak)
        for number, outcome in zip(numbers, outcomes, strict=True):
            report.add(number, *outcome)
    return report


def _alone(content: bytes) -> tuple[str, str, float]:
    began = time.monotonic()
    try:
        read_file(content, key=KEY)
    except IntakeError as refusal:
        died = "GiB of memory" in str(refusal) or "was stopped" in str(refusal) or "could not be read" in str(refusal)
        return ("limit" if died else "refused"), str(refusal), time.monotonic() - began
    return "read", "", time.monotonic() - began
