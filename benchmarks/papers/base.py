"""What an experiment is given and what it returns: small tables of numbers that carry their uncertainty."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over repetitions."""

    mean: float
    error: float
    """Standard error of the mean; NaN if there was one repetition."""
    reps: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Mean and standard error of independent repetitions."""
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(mean=float(np.mean(values)), error=error, reps=len(values))

    def __str__(self) -> str:
        if math.isnan(self.error):
            return f"{self.mean:.3g}"
        # Two digits of the error decide how many digits of the mean mean something.
        digits = max(0, 1 - math.floor(math.log10(self.error))) if self.error > 0 else 4
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


CellValue: TypeAlias = str | float | Estimate | None
"""A word, a number that was computed or published, a mean of repetitions, or nothing."""


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A result, for people and for programs."""

    title: str
    notes: tuple[str, ...] = ()
    """What a reader must know: sizes, what was simulated, which way is better."""
    columns: tuple[str, ...]
    rows: tuple[tuple[CellValue, ...], ...]
    """One cell for each column."""

    def text(self) -> str:
        """Aligned columns under the title and the notes."""
        cells = [self.columns, *(tuple(_shown(cell) for cell in row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        cells.insert(1, tuple("-" * width for width in widths))
        padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells)
        lines = ["  ".join(row).rstrip() for row in padded]
        return "\n".join([self.title, *self.notes, "", *lines])

    def plain(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        return {"title": self.title, "notes": list(self.notes), "rows": rows}


def _shown(cell: CellValue) -> str:
    if cell is None:
        return "-"
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def _plain(cell: CellValue) -> object:
    if not isinstance(cell, Estimate):
        return cell
    error = None if math.isnan(cell.error) else cell.error  # JSON has no word for "not a number"
    return {"mean": cell.mean, "standard_error": error, "reps": cell.reps}


def _ignore(_: str) -> None:
    """The default: progress is not shown."""


class ResultStore:
    """Results that were computed before, one line of JSON each, so that a long run goes on where it was stopped."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._values: dict[str, Any] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:  # empty, or the run was stopped while it wrote this line
                    continue
                self._values[entry["key"]] = entry["value"]

    def once(self, key: str, compute: Callable[[], Any]) -> Any:
        """What is stored under a key; computed and stored if nothing is. Values must be what JSON can hold."""
        if key not in self._values:
            self._values[key] = value = compute()
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    # The line before may have been cut off.
                    file.write("\n" + json.dumps({"key": key, "value": value}) + "\n")
        return self._values[key]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What an experiment is given."""

    reps: int = 10
    """Repetitions of every random run."""
    secure: bool = False
    """Whether to draw release noise, which cannot be repeated, instead of simulation noise from seeds 0, 1, ..."""
    data: Path | None = None
    """Folder of published data; where a file is missing, rows are simulated from the same distribution."""
    shrink: int = 1
    """Divide every number of rows by this, for a quick look."""
    report: Callable[[str], None] = _ignore
    """Called with what is being done."""
    store: ResultStore = field(default_factory=ResultStore)
    """Where experiments that take long keep what they have computed."""

    def __post_init__(self) -> None:
        for parameter, value in (("reps", self.reps), ("shrink", self.shrink)):
            if value < 1:
                raise ParameterError(parameter, value, allowed="a whole number, at least 1")

    @property
    def seeds(self) -> list[int | None]:
        """One per repetition; None asks for release noise."""
        return [None if self.secure else seed for seed in range(self.reps)]

    def once(self, key: str, compute: Callable[[], Any]) -> Any:
        """A value of this experiment, from the store if it is there; a new noise source or size is a new value."""
        where = f"shrink {self.shrink}, {'release' if self.secure else 'simulation'} noise"
        return self.store.once(f"{key}; {where}", compute)

    def rows(self, number: int) -> int:
        """A number of rows, shrunk for a quick look."""
        return max(number // self.shrink, 100)


MechanismFactory: TypeAlias = Callable[[Schema, int, Amount], Mechanism]
"""Parameters from public facts: schema, number of rows and epsilon."""
Experiment: TypeAlias = Callable[[RunOptions], Iterator[ResultTable]]
"""Yields its tables one by one, the most important first."""
