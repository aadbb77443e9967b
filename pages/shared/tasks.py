"""Work in the background: started in a worker process, watched, cancelled, and its result stored once.

Every page uses the same :class:`Task`. The :class:`Tasks` of a table hold at most one of each kind, and closing them
frees the server's workers.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dpsynth_core.runs.jobs import Job, JobCharge, JobRunner

RUN = "run"
"""The kind of task that makes synthetic tables."""
_lock = threading.Lock()
_runners: list[JobRunner] = []


def runner() -> JobRunner:
    """The server's worker processes, started when first needed."""
    with _lock:
        if not _runners:
            _runners.append(JobRunner(compile_ahead=True))
        return _runners[0]


@dataclass(kw_only=True, eq=False)
class Task:
    """One piece of background work."""

    title: str
    """How messages call it, as the beginning of a sentence: "The run"."""
    about: Any
    """What it was asked for; a page compares it with what it needs now."""
    job: Job
    store: Callable[[Any], object]
    """Puts the result where it belongs."""
    paid: bool = False
    """Whether the data set was charged for it."""
    cost: str = ""
    """The charge, in words."""
    expected: float | None = None
    """Seconds that it should take."""
    abandoned: bool = False
    """Whether it was cancelled because nobody was connected any more."""

    @property
    def active(self) -> bool:
        """Whether it is running or waiting for its turn."""
        return self.job.active

    @property
    def ended_early(self) -> bool:
        """Whether it was cancelled or failed, so that there is no result."""
        return self.job.state in ("cancelled", "failed")

    @property
    def uncollected(self) -> bool:
        """Whether a result is waiting to be stored."""
        return self.job.state == "finished" and self.job.result is not None

    @property
    def queue(self) -> str:
        """What is ahead of it, in words; empty once it has begun."""
        ahead = runner().ahead(self.job)
        if not ahead:
            return ""
        return "1 run is ahead of yours." if ahead == 1 else f"{ahead} runs are ahead of yours."

    @property
    def charge_sentence(self) -> str:
        """What the work cost, once it has ended."""
        if self.job.charged is None:
            return "Nothing was charged."
        if self.job.charged:
            return f"Noise had been drawn, so the budget was charged: {self.cost}."
        return "No noise had been drawn, so nothing was charged."

    def collect(self) -> None:
        """Store the result, once."""
        if self.uncollected:
            result, self.job.result = self.job.result, None
            self.store(result)

    def cancel(self) -> None:
        """Kill its process, or take it out of the queue. The runner settles its charge, if there is one."""
        if self.active:
            runner().cancel(self.job)

    def wait(self, seconds: float, *, parts: float = math.inf) -> None:
        """Until it has ended or so many parts are there, but not longer: a page that is drawn again too early would
        have to be drawn twice."""
        end = time.monotonic() + seconds
        while self.active and len(self.job.parts) < parts and time.monotonic() < end:
            time.sleep(0.02)


class Tasks:
    """Background work by kind; starting another task of a kind cancels the one before."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Task] = {}
        self.starting = threading.Lock()
        """For what looks whether work is under way before it is paid for: two tabs may do so at the same moment."""

    def __getitem__(self, kind: str) -> Task:
        return self._by_kind[kind]

    def __iter__(self) -> Iterator[Task]:
        return iter(tuple(self._by_kind.values()))

    def get(self, kind: str) -> Task | None:
        """The latest task of a kind, if there is one."""
        return self._by_kind.get(kind)

    def put(self, kind: str, task: Task) -> Task:
        """Take a task in; the one before it is cancelled."""
        self.drop(kind)
        self._by_kind[kind] = task
        return task

    def start(
        self,
        kind: str,
        title: str,
        work: Callable[..., Any],
        *args: Any,
        about: Any,
        store: Callable[[Any], object],
        charge: JobCharge | None = None,
        cost: str = "",
        expected: float | None = None,
        background: bool = False,
    ) -> Task:
        """Hand ``work(*args, progress=...)`` to a worker.

        Args:
            kind: Which kind of work it is.
            title: How messages call it.
            work: An importable function.
            args: Its arguments.
            about: What was asked for.
            store: Puts the result where it belongs.
            charge: To be settled by the runner when the work ends.
            cost: The charge, in words.
            expected: Seconds that it should take.
            background: Whether it only refines what is shown already, so that other work goes first.
        """
        self.drop(kind)
        job = runner().submit(title, work, *args, charge=charge, background=background)
        return self.put(
            kind,
            Task(
                title=title,
                about=about,
                job=job,
                store=store,
                paid=charge is not None,
                cost=cost,
                expected=expected,
            ),
        )

    def collect(self) -> None:
        """Store every result that has arrived."""
        for task in list(self._by_kind.values()):
            task.collect()

    def drop(self, kind: str) -> None:
        """Cancel the task of a kind and forget it."""
        task = self._by_kind.pop(kind, None)
        if task is not None:
            task.cancel()

    def leave(self) -> None:
        """Cancel and forget everything but runs that were paid for: those go on."""
        for kind, task in list(self._by_kind.items()):
            if not (task.paid and task.active):
                task.collect()
                self.drop(kind)

    def abandon(self) -> None:
        """Cancel what nobody is waiting for any more.

        A run that was paid for goes on: closing a tab must not lose a result that epsilon was spent on, so the session
        keeps it for a reload.
        """
        for task in list(self._by_kind.values()):
            if task.active and not task.paid:
                task.abandoned = True
                task.cancel()
