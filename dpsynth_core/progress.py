"""What a running mechanism reports: its stage, how far it is, and a few figures to watch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

MAX_POINTS = 1_000
"""Of one series; beyond them every other one is dropped."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One more point of a line that is drawn while a mechanism runs, such as the error after each round."""

    series: str
    """Which line: the title of its vertical axis, with the unit."""
    x: float
    y: float
    along: str = "step"
    """Title of the horizontal axis: "step", "round", "epoch"."""
    releasable: bool = False
    """Whether it follows from public facts and paid draws alone. If not, it is marked as not for release."""


class Progress(Protocol):
    """Receives the stage, the share that is done, and points to draw meanwhile; raises to cancel.

    A loop of quick steps keeps the name of its stage: a new name is reported at once, the same a few times a second.
    """

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        """How far it is."""


def no_progress(stage: str, done: float, /, *points: Point) -> None:
    """Nobody is watching."""


def share_of(progress: Progress, start: float, end: float, *, title: str = "{stage}") -> Progress:
    """Progress of a part of the work, reported as progress of all of it.

    Args:
        progress: Receives the progress of all of the work.
        start: Share of the work that is done when the part begins.
        end: Share that is done when it ends.
        title: The stage to report; ``{stage}`` stands for the part's own.

    Example:
        >>> share_of(lambda stage, done, *_: print(stage, done), 0.5, 1.0, title="Table 2: {stage}")("Sampling", 0.5)
        Table 2: Sampling 0.75
    """

    def report(stage: str, done: float, /, *points: Point) -> None:
        progress(title.replace("{stage}", stage), start * (1 - done) + end * done, *points)

    return report


@dataclass(kw_only=True)
class Series:
    """A line as far as it is known."""

    name: str
    """Title of the vertical axis."""
    along: str
    """Title of the horizontal axis."""
    releasable: bool
    """Whether every point may be published."""
    points: list[tuple[float, float]] = field(default_factory=list)

    def add(self, point: Point) -> None:
        """One more point; if it is not releasable, neither is the line."""
        self.releasable = self.releasable and point.releasable
        before = self.points if len(self.points) < MAX_POINTS else self.points[::2]
        # A new list, because the app may be drawing the old one.
        self.points = [*before, (point.x, point.y)]


def extend(lines: dict[str, Series], points: tuple[Point, ...]) -> None:
    """Add each point to its line, beginning the line where it is the first."""
    for point in points:
        fresh = Series(name=point.series, along=point.along, releasable=True)
        lines.setdefault(point.series, fresh).add(point)


class RunProgress:
    """Progress of a run that may draw noise for a charge. This one reports to nobody."""

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        """How far it is."""

    def drawn(self) -> None:
        """Call it before the first draw: from then on the charge cannot be refunded."""

    def restart(self) -> None:
        """The next table begins, and the lines begin again."""

    def part(self, result: object) -> None:
        """A part of the result, to be shown before the rest is there. Not for work that is charged."""
