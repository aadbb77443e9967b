"""What the Trade-offs page shows and has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pages.shared.tasks import Tasks


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Where a visitor is in the lessons: all that a link needs to bring another one to the same point."""

    number: int = 1
    epsilon: str = "1"
    """At which its picture is drawn."""
    seed: int = 1
    """Of the simulated noise in its picture."""
    answer: int | None = None
    """The index of the answer given; None before the question is answered."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """The result of work on a public or simulated table."""

    table_id: object
    config: Any
    """What was asked for, as plain values."""
    result: Any


@dataclass(kw_only=True, eq=False)
class Tradeoffs:
    """What the Trade-offs page shows."""

    section: str = "lessons"
    lesson: Lesson = field(default_factory=Lesson)
    table: str = ""
    """The public table that is looked at; empty before one is chosen."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """Results on that table, by kind of work."""
    choices: dict[str, Any] = field(default_factory=dict)
    """What was chosen on that page, by widget."""
    noise_seed: int = 1
    """Of the noise to be looked at; another one draws it again."""
    tasks: Tasks = field(default_factory=Tasks)

    def forget_table(self) -> None:
        """Another table is in use, or none: what was found on the old one no longer counts."""
        self.tasks.leave()
        self.table = ""
        self.findings.clear()
