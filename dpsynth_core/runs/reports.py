"""How a worker process reports home: what is said, and when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from dpsynth_core.progress import Point, RunProgress

REPORT_EVERY = 0.1
"""Seconds between two reports of the same stage: a report costs a fraction of a millisecond, a step may cost less."""


@dataclass(frozen=True, kw_only=True)
class StageMessage:
    """How far a job is."""

    job_id: str
    stage: str
    done: float
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class DrawnMessage:
    """A job is about to draw noise, so its charge cannot be refunded."""

    job_id: str


@dataclass(frozen=True, kw_only=True)
class RestartMessage:
    """A job begins another table, and its lines begin again."""

    job_id: str


@dataclass(frozen=True, kw_only=True)
class PartMessage:
    """A part of a job's result."""

    job_id: str
    result: Any


@dataclass(frozen=True, kw_only=True)
class FlushMessage:
    """The runner's own: everything sent before it has been read."""

    token: str


Message: TypeAlias = StageMessage | DrawnMessage | RestartMessage | PartMessage | FlushMessage


class Channel(Protocol):
    """How a worker reports home."""

    def put(self, message: Message) -> None:
        """Hand over a message; returns once it has arrived."""


class WorkerProgress(RunProgress):
    """Progress that reports home: a new stage at once, the same stage every ``REPORT_EVERY`` seconds."""

    def __init__(self, job_id: str, channel: Channel) -> None:
        self._job_id, self._channel = job_id, channel
        self._stage, self._reported = "", 0.0
        self._pending: list[Point] = []
        self._drawn = False

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        """Report how far the job is; no point is lost."""
        self._pending.extend(points)
        now = time.monotonic()
        if stage != self._stage or now - self._reported >= REPORT_EVERY:
            self._channel.put(StageMessage(job_id=self._job_id, stage=stage, done=done, points=tuple(self._pending)))
            self._pending.clear()
            self._stage, self._reported = stage, now

    def drawn(self) -> None:
        """Return once the runner knows that noise is drawn; only the first call costs anything."""
        if not self._drawn:
            self._channel.put(DrawnMessage(job_id=self._job_id))
            self._drawn = True

    def restart(self) -> None:
        """Begin the lines again."""
        self._channel.put(RestartMessage(job_id=self._job_id))

    def part(self, result: object) -> None:
        """Hand over a part of the result."""
        self._channel.put(PartMessage(job_id=self._job_id, result=result))
