"""Long work in processes of its own: watched, cancelled, and charged before its result is visible.

A task is any importable function that takes ``progress`` by name; the runner passes one that reports to the job::

    def add(a: int, b: int, *, progress: RunProgress) -> int:
        progress.drawn()                # before the first noise is drawn for a charge: no refund from here on
        progress("Adding", 0.5)
        return a + b

    runner = JobRunner()
    job = runner.submit("Addition", add, 2, 3, charge=ledger.reserve(fingerprint, budget, purpose="Add"))
    job.state, job.stage, job.done      # to be looked at from time to time
    runner.cancel(job)                  # kills its process
    job.result                          # None until the charge is settled

A task on a private table is handed over as ``submit(title, on_private_table, task, table, schema, *args)``.

The ledger is charged before a job is submitted. However the job ends (its result, an error, a cancel, a crash), the
charge is settled once: committed if the job finished or had begun to draw, otherwise refunded. A few jobs run side by
side; the others wait in the order in which they came. What only refines something that is shown already may be
submitted as background work: it gives way to all other jobs, and never takes the last worker.
"""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.managers import SyncManager
from typing import Any, Literal, Protocol, TypeAlias

import pandas as pd
from pebble import ProcessExpired, ProcessPool

from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import RunProgress, Series, extend
from dpsynth_core.runs.originals import ReadingRunProgress, SampledSource, sampled
from dpsynth_core.runs.reports import (
    Channel,
    DrawnMessage,
    FlushMessage,
    Message,
    PartMessage,
    RestartMessage,
    StageMessage,
    WorkerProgress,
)
from dpsynth_core.runs.workers import give_way, quiet_context, yielding_context
from dpsynth_core.table.schema import Schema

JobState: TypeAlias = Literal["waiting", "running", "finished", "failed", "cancelled"]

MAX_RUNNING = 2
"""Jobs that run side by side over the whole server; others wait."""
STOPPED = "Cancelled because the server was stopped."


class JobCharge(Protocol):
    """What is charged for a job, to be settled when it ends."""

    def commit(self) -> None:
        """The charge was used."""

    def refund(self, reason: str) -> None:
        """Nothing was drawn, so it is given back."""


@dataclass(kw_only=True)
class Job:
    """A piece of work, as its owner sees it. Times are monotonic seconds."""

    id: str
    """Unguessable."""
    title: str
    submitted: float
    state: JobState = "waiting"
    stage: str = "Waiting for its turn"
    done: float = 0.0
    """The share that is done."""
    series: dict[str, Series] = field(default_factory=dict)
    """Lines to draw while it runs, by name."""
    started: float | None = None
    ended: float | None = None
    stopping: bool = False
    """Whether it was asked to end."""
    drawn: bool = False
    """Whether noise has been drawn, so that the charge cannot be refunded."""
    charged: bool | None = None
    """How the charge was settled; None while it runs and where nothing is charged."""
    parts: tuple[Any, ...] = ()
    """Parts of the result that are there already, where nothing is charged."""
    result: Any = None
    """Set once the charge is settled."""
    problem: str = ""
    """Why it failed, in words."""

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

    def receive(self, message: Message) -> None:
        """Take in what its worker reports."""
        match message:
            case StageMessage():
                self.stage, self.done = message.stage, message.done
                extend(self.series, message.points)
            case RestartMessage():
                self.series = {}
            case PartMessage():
                self.parts = (*self.parts, message.result)
            case DrawnMessage():
                self.drawn = True


@dataclass(kw_only=True)
class _Ticket:
    """A job with what it takes to run it."""

    job: Job
    task: Callable[..., Any]
    args: tuple[Any, ...]
    charge: JobCharge | None
    background: bool
    future: Future[Any] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while a message is taken in, and while it is decided what becomes of the charge."""
    closed: bool = False
    """Whether that is decided, so that nothing a dying worker still reports is taken in, let alone shown."""

    def receive(self, message: Message) -> None:
        """Take in what the worker reports, as long as its charge is open; no part of what is charged for."""
        with self.lock:
            if not self.closed and not (isinstance(message, PartMessage) and self.charge is not None):
                self.job.receive(message)

    def close(self, *, known: bool) -> None:
        """Take in nothing more. Where it cannot be known whether noise was drawn, it counts as drawn."""
        with self.lock:
            self.closed = True
            self.job.drawn = self.job.drawn or not known


class JobRunner:
    """A few worker processes, shared by everybody; each job is known only to its submitter."""

    def __init__(self, max_running: int = MAX_RUNNING, *, compile_ahead: bool = False) -> None:
        """Start the workers.

        Args:
            max_running: How many jobs run side by side.
            compile_ahead: Whether a separate process compiles the machine code in advance, so that no job waits for it.
        """
        self._max_running = max_running
        self._context = quiet_context()
        # Reentrant: settling a job changes the queue while the queue is being changed.
        self._lock = threading.RLock()
        self._waiting: deque[_Ticket] = deque()
        self._running: dict[str, _Ticket] = {}
        self._flushes: dict[str, threading.Event] = {}
        self._closed = False
        self._start_listening()
        self._pool = self._new_pool()
        if compile_ahead:
            yielding_context().Process(target=_compile, daemon=True).start()

    def _start_listening(self) -> None:
        # A process of its own: a worker that is killed while it writes to a shared pipe would block all others.
        self._manager = SyncManager(ctx=self._context)
        self._manager.start()
        self._messages = self._manager.Queue()
        threading.Thread(target=self._listen, args=(self._messages,), daemon=True).start()

    def _new_pool(self) -> ProcessPool:
        # One task per process: nothing of a table stays behind in a worker's memory.
        context = yielding_context()
        return ProcessPool(max_workers=self._max_running, max_tasks=1, context=context, initializer=_warm_up)

    def submit(
        self,
        title: str,
        task: Callable[..., Any],
        *args: Any,
        charge: JobCharge | None = None,
        background: bool = False,
    ) -> Job:
        """Run ``task(*args, progress=...)`` in a worker when its turn comes.

        Args:
            title: For its owner.
            task: An importable function.
            args: Its arguments.
            charge: To be settled, however the job ends.
            background: Whether nobody waits for it, so that all other jobs go first.
        """
        job = Job(id=uuid.uuid4().hex, title=title, submitted=time.monotonic())
        ticket = _Ticket(job=job, task=task, args=args, charge=charge, background=background)
        with self._lock:
            if not self._closed:
                self._waiting.append(ticket)
                self._advance()
                return job
        self._settle(ticket, "cancelled", None, STOPPED)
        return job

    @property
    def problem(self) -> str:
        """Why no job could be run now, in a sentence; empty where one could. A busy runner is not a problem."""
        with self._lock:
            if self._closed:
                return "The worker processes were stopped."
            if not self._pool.active:
                return "The pool of worker processes has broken down."
            if self._running and not _alive(self._manager):
                return "The process that hears from the workers has ended."
        return ""

    def ahead(self, job: Job) -> int:
        """How many jobs, running or waiting, come before this one; 0 once it has begun."""
        with self._lock:
            in_turn = sorted(self._waiting, key=lambda ticket: ticket.background)
            index = next((i for i, ticket in enumerate(in_turn) if ticket.job is job), None)
            return 0 if index is None else len(self._running) + index

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
        """Stop everything. What has drawn nothing is not charged: that also holds for jobs that still wait."""
        with self._lock:
            self._closed = True
            waiting, running = list(self._waiting), list(self._running.values())
            self._waiting.clear()
        for ticket in waiting:
            self._settle(ticket, "cancelled", None, STOPPED)
        for ticket in running:
            if ticket.future is not None:
                ticket.future.cancel()  # which settles it, and needs the manager for that
        _end(self._pool)
        self._manager.shutdown()

    def _advance(self) -> None:
        """Begin the jobs whose turn has come."""
        with self._lock:
            while not self._closed and (ticket := self._next()) is not None:
                self._waiting.remove(ticket)
                self._running[ticket.job.id] = ticket
                ticket.job.started, ticket.job.state = time.monotonic(), "running"
                ticket.job.stage = "Starting a worker"
                self._begin(ticket)

    def _next(self) -> _Ticket | None:
        """The job whose turn it is, if there is room for one."""
        if len(self._running) >= self._max_running:
            return None
        background = sum(ticket.background for ticket in self._running.values())
        room = background < max(1, self._max_running - 1)
        in_turn = sorted(self._waiting, key=lambda ticket: ticket.background)
        return next((ticket for ticket in in_turn if room or not ticket.background), None)

    def _begin(self, ticket: _Ticket) -> None:
        try:
            ticket.future = self._schedule(ticket)
        except (RuntimeError, OSError):
            problem = "No worker process could be started. Run it again, or ask the person who runs this server."
            self._settle(ticket, "failed", None, problem)
            return
        ticket.future.add_done_callback(lambda ended: self._settle(ticket, *_ending(ended)))

    def _schedule(self, ticket: _Ticket) -> Future[Any]:
        if not _alive(self._manager):
            self._start_listening()
        arguments = (ticket.task, ticket.args, ticket.job.id, self._messages, ticket.background)
        try:
            return self._pool.schedule(_work, args=arguments)
        except RuntimeError:
            # The pool gives up for good when an idle worker is killed, for instance for lack of memory.
            _end(self._pool)
            self._pool = self._new_pool()
            return self._pool.schedule(_work, args=arguments)

    def _listen(self, messages: Any) -> None:
        while True:
            try:
                message: Message = messages.get()
            except (EOFError, OSError):
                return
            if isinstance(message, FlushMessage):
                self._flushes.pop(message.token).set()
            elif (ticket := self._running.get(message.job_id)) is not None:
                ticket.receive(message)

    def _settle(self, ticket: _Ticket, state: JobState, result: Any, problem: str) -> None:
        """Runs once for every job, when it has ended or its result will never be looked at."""
        job, charge = ticket.job, ticket.charge
        ticket.close(known=job.started is None or self._flushed())
        if charge is not None:
            try:
                if job.drawn or state == "finished":
                    charge.commit()
                    job.charged = True
                else:
                    charge.refund(f"{state} before anything was drawn")
                    job.charged = False
            except Exception as error:  # noqa: BLE001  whatever it is, the job must end and its owner must see why
                # Not settled means spent; a result whose charge is not on record is not shown.
                job.charged, state, result, problem = True, "failed", None, _in_words(error)
        job.result, job.problem, job.ended = result, problem, time.monotonic()
        job.state = state
        with self._lock:
            self._running.pop(job.id, None)
            self._advance()

    def _flushed(self) -> bool:
        """Wait until everything that the worker sent before it ended has been read; whether that succeeded."""
        token, read = uuid.uuid4().hex, threading.Event()
        self._flushes[token] = read
        try:
            self._messages.put(FlushMessage(token=token))
        except (EOFError, OSError):
            return False
        return read.wait(timeout=5)


def on_private_table(
    task: Callable[..., Any], table: pd.DataFrame | SampledSource, schema: Schema, *args: Any, progress: RunProgress
) -> Any:
    """Run ``task(private, *args, progress=...)``; the worker encodes the table, so that the app does not wait."""
    progress("Reading the table", 0.0)
    told = ReadingRunProgress(progress)
    with sampled(table, schema, told.read) as private:
        return task(private, *args, progress=told)


def _work(task: Callable[..., Any], args: tuple[Any, ...], job_id: str, channel: Channel, background: bool) -> Any:
    """In the worker, which serves one job only: the task, with progress that reports home."""
    if background:
        give_way()
    return task(*args, progress=WorkerProgress(job_id, channel))


def _end(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def _alive(manager: SyncManager) -> bool:
    process: Any = getattr(manager, "_process", None)
    return process is not None and process.is_alive()


def _ending(ended: Future[Any]) -> tuple[JobState, Any, str]:
    """The state, the result and the problem of a job whose process has ended."""
    try:
        return "finished", ended.result(), ""
    except CancelledError:
        return "cancelled", None, "Cancelled."
    except (ProcessExpired, BrokenProcessPool):
        return "failed", None, "The worker process ended unexpectedly, for instance for lack of memory. Run it again."
    except Exception as error:  # noqa: BLE001  the owner sees it, whatever it is
        return "failed", None, _in_words(error)


def _in_words(error: Exception) -> str:
    """Our own errors as they are; any other only by its type, because its text may hold values."""
    if isinstance(error, DPSynthError):
        return str(error)
    return f"An unexpected error ended the run ({type(error).__name__}). Please report it."


def _warm_up() -> None:
    """Import what every task needs, before one arrives."""
    # Pebble handles this signal in Python, which a long call into C or machine code puts off, for up to three seconds.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    import dpsynth_core.runs.configuration  # noqa: F401, PLC0415


def _compile() -> None:
    """Compile the machine code before somebody waits for it."""
    from dpsynth_core.runs.warm_up import warm_up  # noqa: PLC0415

    warm_up()
