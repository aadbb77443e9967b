"""Long work in processes of its own: watched, cancelled, and charged before its result is visible.

The ledger is charged when a job is submitted. Before a worker draws any noise it says so; whoever ends the job (the
worker, a cancel, a crash) is followed by one settlement: committed if it finished or had begun to draw, else refunded.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from multiprocessing import popen_spawn_posix, spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.managers import SyncManager
from typing import Any, Literal, Protocol, TypeAlias

from pebble import ProcessExpired, ProcessPool

from dpsynth_core.errors import DPSynthError

State: TypeAlias = Literal["waiting", "running", "finished", "failed", "cancelled"]
Report: TypeAlias = Callable[[str, float], None]

AT_ONCE = 2
"""Heavy jobs that run side by side; others wait."""
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
    stage: str = "Waiting for a free worker"
    """What it is doing."""
    done: float = 0.0
    """Share that is done."""
    started: float | None = None
    """When a worker took it up."""
    ended: float | None = None
    """When it ended."""
    drawn: bool = False
    """Whether noise has been drawn, so that the charge cannot be given back."""
    charged: bool | None = None
    """How the charge was settled; None while it runs and where nothing is charged."""
    result: Any = None
    """What came out, once the charge is settled."""
    problem: str = ""
    """What went wrong, in words."""
    _future: Future[Any] | None = field(default=None, repr=False)

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

    def __init__(self, at_once: int = AT_ONCE) -> None:
        context = quiet_context()
        self._manager = SyncManager(ctx=context)
        self._manager.start()
        self._messages = self._manager.Queue()
        # One task per process: nothing of a table stays behind in a worker's memory.
        self._pool = ProcessPool(max_workers=at_once, max_tasks=1, context=context, initializer=_warm_up)
        self._jobs: dict[str, Job] = {}
        self._flushes: dict[str, threading.Event] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def submit(self, title: str, task: Callable[..., Any], *args: Any, settlement: Settlement | None = None) -> Job:
        """Run ``task(*args, job_id, channel)`` in a worker; on any failure to submit, the charge is given back."""
        job = Job(id=uuid.uuid4().hex, title=title, submitted=time.monotonic())
        self._jobs[job.id] = job
        future = self._pool.schedule(task, args=(*args, job.id, self._messages))
        job._future = future
        future.add_done_callback(lambda ended: self._settle(job, ended, settlement))
        return job

    def cancel(self, job: Job) -> None:
        """End a job; its process is killed, not asked."""
        if job._future is not None and job.active:
            job._future.cancel()

    def close(self) -> None:
        """Stop everything."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()
        self._manager.shutdown()

    def _listen(self) -> None:
        while True:
            try:
                job_id, kind, content = self._messages.get()
            except (EOFError, OSError, BrokenPipeError):
                return
            if kind == "flushed":
                self._flushes.pop(content).set()
            elif (job := self._jobs.get(job_id)) is not None and job.active:
                _note(job, kind, content)

    def _settle(self, job: Job, ended: Future[Any], settlement: Settlement | None) -> None:
        """Runs once for every job, when its worker is gone or done."""
        self._drain()
        state, result, problem = _outcome(ended)
        if settlement is not None:
            try:
                if job.drawn or state == "finished":
                    settlement.commit()
                    job.charged = True
                else:
                    settlement.refund(f"{state} before anything was drawn")
                    job.charged = False
            except DPSynthError as error:
                # Not settled means spent; a result whose charge is not on record is not shown.
                job.charged, state, result, problem = True, "failed", None, str(error)
        job.result, job.problem, job.ended = result, problem, time.monotonic()
        job.state = state
        self._jobs.pop(job.id, None)

    def _drain(self) -> None:
        """Wait until everything that the worker said before it ended has been heard."""
        token, heard = uuid.uuid4().hex, threading.Event()
        self._flushes[token] = heard
        self._messages.put(("", "flushed", token))
        heard.wait(timeout=5)


def _note(job: Job, kind: str, content: Any) -> None:
    if job.started is None:
        job.started, job.state = time.monotonic(), "running"
    if kind == "stage":
        job.stage, job.done = content
    elif kind == "drawing":
        job.drawn = True


def _outcome(ended: Future[Any]) -> tuple[State, Any, str]:
    try:
        return "finished", ended.result(), ""
    except CancelledError:
        return "cancelled", None, "Cancelled."
    except ProcessExpired:
        return "failed", None, "The worker process ended unexpectedly, for instance for lack of memory. Run it again."
    except DPSynthError as error:
        return "failed", None, str(error)
    except Exception as error:  # noqa: BLE001  whatever a worker raised is told by its kind; its text may hold values
        return "failed", None, f"An unexpected error ended the run ({type(error).__name__}). Please report it."


def _warm_up() -> None:
    """Import what every task needs, before one arrives."""
    import dpsynth_core  # noqa: F401, PLC0415


def reporter(job_id: str, channel: Channel) -> Report:
    """A progress callback that reports home."""

    def report(stage: str, done: float) -> None:
        channel.put((job_id, "stage", (stage, done)))

    return report
