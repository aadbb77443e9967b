"""Long work in processes of its own: watched, cancelled, and charged before its result is visible.

The ledger is charged when a job is submitted. Before a worker draws any noise it says so; whoever ends the job (the
worker, a cancel, a crash) is followed by one settlement: committed if it finished or had begun to draw, else refunded.
A few jobs run side by side; the others wait in the order in which they came.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import popen_spawn_posix, spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.managers import SyncManager
from typing import Any, Literal, Protocol, TypeAlias

from pebble import ProcessExpired, ProcessPool

from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Point, Progress, Series, extend

State: TypeAlias = Literal["waiting", "running", "finished", "failed", "cancelled"]

AT_ONCE = 2
"""Heavy jobs that run side by side over the whole server; others wait."""
PAUSE = 0.1
"""Seconds between two reports of the same stage: a report costs a fraction of a millisecond, a step may cost less."""
NICENESS = 5
"""How far the workers' work stands behind that of the app."""
_spawning = threading.Lock()


class Channel(Protocol):
    """How a worker reports home."""

    def put(self, message: tuple[str, str, Any]) -> None:
        """Hand over a message; returns once it has arrived."""


class Settlement(Protocol):
    """What becomes of a charge when a job ends."""

    def commit(self) -> None:
        """The charge was used."""

    def refund(self, reason: str) -> None:
        """Nothing was drawn, so it is given back."""


@dataclass(kw_only=True)
class Job:
    """One run, as its owner sees it."""

    id: str
    """Unguessable."""
    title: str
    """What it is, in words."""
    submitted: float
    """When it was handed in (monotonic seconds)."""
    state: State = "waiting"
    """Where it stands."""
    stage: str = "Waiting for its turn"
    """What it is doing."""
    done: float = 0.0
    """Share that is done."""
    series: dict[str, Series] = field(default_factory=dict)
    """Lines to draw while it runs, by name."""
    started: float | None = None
    """When its turn came."""
    ended: float | None = None
    """When it ended."""
    stopping: bool = False
    """Whether it was asked to end."""
    drawn: bool = False
    """Whether noise has been drawn, so that the charge cannot be given back."""
    charged: bool | None = None
    """How the charge was settled; None while it runs and where nothing is charged."""
    result: Any = None
    """What came out, once the charge is settled."""
    problem: str = ""
    """What went wrong, in words."""

    @property
    def active(self) -> bool:
        """Whether it has not ended yet."""
        return self.state in ("waiting", "running")

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started


@dataclass(kw_only=True)
class _Ticket:
    """A job with what it takes to run it."""

    job: Job
    task: Callable[..., Any]
    args: tuple[Any, ...]
    settlement: Settlement | None
    future: Future[Any] | None = None


class _QuietProcess(SpawnProcess):
    """A spawned process that does not run the caller's main script again: under Streamlit that is the page itself."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _spawning:
            prepare = spawn.get_preparation_data
            spawn.get_preparation_data = _without_main(prepare)  # type: ignore[assignment]
            try:
                return popen_spawn_posix.Popen(process_obj)
            finally:
                spawn.get_preparation_data = prepare


def _without_main(prepare: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    def prepared(name: str) -> dict[str, Any]:
        return {key: value for key, value in prepare(name).items() if not key.startswith("init_main")}

    return prepared


class _QuietContext(SpawnContext):
    Process = _QuietProcess


def quiet_context() -> SpawnContext:
    """How to start processes that do not run the caller's main script again."""
    return _QuietContext()


class JobRunner:
    """A few worker processes, shared by everybody; each job is known only to who submitted it."""

    def __init__(self, at_once: int = AT_ONCE, *, compile_ahead: bool = False) -> None:
        """Start the workers.

        Args:
            at_once: How many jobs run side by side.
            compile_ahead: Whether a process of its own compiles what becomes machine code, so that nobody waits for it.
        """
        self._at_once = at_once
        self._context = quiet_context()
        # Held while the queue changes; whoever holds it may end a job, which changes the queue again.
        self._lock = threading.RLock()
        self._waiting: deque[_Ticket] = deque()
        self._running: dict[str, _Ticket] = {}
        self._flushes: dict[str, threading.Event] = {}
        self._start_listening()
        self._pool = self._new_pool()
        if compile_ahead:
            self._context.Process(target=_compile, daemon=True).start()

    def _start_listening(self) -> None:
        # A process of its own: a worker that is killed while it writes to a shared pipe would block all others.
        self._manager = SyncManager(ctx=self._context)
        self._manager.start()
        self._messages = self._manager.Queue()
        threading.Thread(target=self._listen, args=(self._messages,), daemon=True).start()

    def _new_pool(self) -> ProcessPool:
        # One task per process: nothing of a table stays behind in a worker's memory.
        return ProcessPool(max_workers=self._at_once, max_tasks=1, context=self._context, initializer=_warm_up)

    def submit(self, title: str, task: Callable[..., Any], *args: Any, settlement: Settlement | None = None) -> Job:
        """Run ``task(*args, job_id, channel)`` in a worker when its turn comes; its charge is settled in any case."""
        job = Job(id=uuid.uuid4().hex, title=title, submitted=time.monotonic())
        with self._lock:
            self._waiting.append(_Ticket(job=job, task=task, args=args, settlement=settlement))
            self._advance()
        return job

    def ahead(self, job: Job) -> int:
        """How many runs, at work or waiting, must end or begin before this one begins; 0 once it has begun."""
        with self._lock:
            place = next((i for i, ticket in enumerate(self._waiting) if ticket.job is job), None)
            return 0 if place is None else len(self._running) + place

    def cancel(self, job: Job) -> None:
        """End a job; its process is killed, not asked. One that still waits never begins."""
        job.stopping = True
        with self._lock:
            waiting = next((ticket for ticket in self._waiting if ticket.job is job), None)
            running = self._running.get(job.id)
            if waiting is not None:
                self._waiting.remove(waiting)
        if waiting is not None:
            self._settle(waiting, "cancelled", None, "Cancelled before its turn came.")
        elif running is not None and running.future is not None:
            running.future.cancel()

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            self._waiting.clear()
        _end(self._pool)
        self._manager.shutdown()

    def _advance(self) -> None:
        """Let those begin whose turn has come."""
        with self._lock:
            while self._waiting and len(self._running) < self._at_once:
                ticket = self._waiting.popleft()
                self._running[ticket.job.id] = ticket
                ticket.job.started, ticket.job.state = time.monotonic(), "running"
                ticket.job.stage = "Starting a worker"
                self._begin(ticket)

    def _begin(self, ticket: _Ticket) -> None:
        try:
            ticket.future = self._schedule(ticket)
        except (RuntimeError, OSError):
            problem = "No worker process could be started. Run it again, or ask who looks after this server."
            self._settle(ticket, "failed", None, problem)
            return
        ticket.future.add_done_callback(lambda ended: self._settle(ticket, *_outcome(ended)))

    def _schedule(self, ticket: _Ticket) -> Future[Any]:
        if not _alive(self._manager):
            self._start_listening()
        arguments = (*ticket.args, ticket.job.id, self._messages)
        try:
            return self._pool.schedule(ticket.task, args=arguments)
        except RuntimeError:
            # The pool gives up for good when an idle worker is killed, for instance for lack of memory.
            _end(self._pool)
            self._pool = self._new_pool()
            return self._pool.schedule(ticket.task, args=arguments)

    def _listen(self, messages: Any) -> None:
        while True:
            try:
                job_id, kind, content = messages.get()
            except (EOFError, OSError):
                return
            if kind == "flushed":
                self._flushes.pop(content).set()
            elif (ticket := self._running.get(job_id)) is not None and ticket.job.active:
                _note(ticket.job, kind, content)

    def _settle(self, ticket: _Ticket, state: State, result: Any, problem: str) -> None:
        """Runs once for every job, when it has ended or its result will never be looked at."""
        job, settlement = ticket.job, ticket.settlement
        # Where it cannot be known whether noise was drawn, it counts as drawn.
        job.drawn = job.drawn or not (job.started is None or self._drained())
        if settlement is not None:
            try:
                if job.drawn or state == "finished":
                    settlement.commit()
                    job.charged = True
                else:
                    settlement.refund(f"{state} before anything was drawn")
                    job.charged = False
            except Exception as error:  # noqa: BLE001  whatever it is, a job must end, and its owner must be told
                # Not settled means spent; a result whose charge is not on record is not shown.
                job.charged, state, result, problem = True, "failed", None, _in_words(error)
        job.result, job.problem, job.ended = result, problem, time.monotonic()
        job.state = state
        with self._lock:
            self._running.pop(job.id, None)
            self._advance()

    def _drained(self) -> bool:
        """Wait until everything that the worker said before it ended has been heard; whether that succeeded."""
        token, heard = uuid.uuid4().hex, threading.Event()
        self._flushes[token] = heard
        try:
            self._messages.put(("", "flushed", token))
        except (EOFError, OSError):
            return False
        return heard.wait(timeout=5)


def _end(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def _alive(manager: SyncManager) -> bool:
    process: Any = getattr(manager, "_process", None)
    return process is not None and process.is_alive()


def _note(job: Job, kind: str, content: Any) -> None:
    if kind == "stage":
        job.stage, job.done, points = content
        extend(job.series, points)
    elif kind == "another":
        job.series = {}
    elif kind == "drawing":
        job.drawn = True


def _outcome(ended: Future[Any]) -> tuple[State, Any, str]:
    try:
        return "finished", ended.result(), ""
    except CancelledError:
        return "cancelled", None, "Cancelled."
    except (ProcessExpired, BrokenProcessPool):
        return "failed", None, "The worker process ended unexpectedly, for instance for lack of memory. Run it again."
    except Exception as error:  # noqa: BLE001  told to the owner, whatever it is
        return "failed", None, _in_words(error)


def _in_words(error: Exception) -> str:
    """Our own errors as they are; any other only by its kind, because its text may hold values."""
    if isinstance(error, DPSynthError):
        return str(error)
    return f"An unexpected error ended the run ({type(error).__name__}). Please report it."


def _warm_up() -> None:
    """Import what every task needs, before one arrives; and give way to the app, which people are looking at."""
    import dpsynth_core.runs.configuration  # noqa: F401, PLC0415

    _give_way()


def _compile() -> None:
    """Compile what becomes machine code, before somebody waits for it."""
    from dpsynth_core.runs.warm_up import warm_up  # noqa: PLC0415

    _give_way()
    warm_up()


def _give_way() -> None:
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def reporter(job_id: str, channel: Channel) -> Progress:
    """A progress callback that reports home: a new stage at once, the same stage every ``PAUSE`` seconds."""
    told, at = "", 0.0
    pending: list[Point] = []

    def report(stage: str, done: float, /, *points: Point) -> None:
        nonlocal told, at
        pending.extend(points)
        now = time.monotonic()
        if stage != told or now - at >= PAUSE:
            channel.put((job_id, "stage", (stage, done, tuple(pending))))
            pending.clear()
            told, at = stage, now

    return report
