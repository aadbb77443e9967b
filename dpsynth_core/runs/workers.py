"""Processes of our own: how they are started, and independent tasks run side by side in them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from multiprocessing import current_process, parent_process, spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, TypeVar

from dpsynth_core.progress import Point, Progress

MIN_PARALLEL_SECONDS = 6.0
"""Seconds of work left that make it worth starting processes, which takes a few seconds each."""
NICENESS = 5
"""How far workers give way to the app."""
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Read by NumPy's and SciPy's linear algebra when a process loads it."""
Task = TypeVar("Task")
Result = TypeVar("Result")
_spawning = threading.Lock()


class _QuietProcess(SpawnProcess):
    """A spawned process that does not run the caller's main script again: under Streamlit that is the page itself.

    It ends with the process that started it, even if that one was killed and could tell nobody.
    """

    def run(self) -> None:
        threading.Thread(target=end_with_parent, daemon=True).start()
        super().run()

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        # The platform's own way to start a process, which asks for its preparation data while it starts.
        with starting():
            return SpawnProcess._Popen(process_obj)


def end_with_parent() -> None:
    """Wait for the end of the process that started this one, and end at once; for a thread of its own."""
    parent = parent_process()
    if parent is not None:
        parent.join()  # returns when the parent is gone, however it went
        os._exit(1)  # at once: whoever would want the result is not there any more


class _QuietContext(SpawnContext):
    Process = _QuietProcess


class _YieldingProcess(_QuietProcess):
    """One that gives way to the app from its first moment: loading its modules takes a second of computing, just when
    somebody has pressed Cancel and waits for the page."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        process = _QuietProcess._Popen(process_obj)
        with suppress(ProcessLookupError):
            give_way(process.pid)
        return process


def give_way(process: int = 0) -> None:
    """Let a process, or this one, and those that it will start compute where others leave time."""
    if hasattr(os, "setpriority"):  # not on Windows
        os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)


class _YieldingContext(SpawnContext):
    Process = _YieldingProcess


@contextmanager
def starting() -> Iterator[None]:
    """While a process starts: it is told to leave out the caller's main script and to compute in one thread."""
    with _spawning, _without_main(), _one_blas_thread():
        yield


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Processes run side by side, and the many small vectors of a fit gain nothing from threads that wait for each
    other: with two of them a Private-PGM release of 1,000 rows took six to twenty times the processor time."""
    chosen = BLAS_THREADS in os.environ  # whoever runs the app knows better
    if not chosen:
        os.environ[BLAS_THREADS] = "1"
    try:
        yield
    finally:
        if not chosen:
            os.environ.pop(BLAS_THREADS, None)


@contextmanager
def _without_main() -> Iterator[None]:
    prepare = spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        return {key: value for key, value in prepare(name).items() if not key.startswith("init_main")}

    spawn.get_preparation_data = prepared
    try:
        yield
    finally:
        spawn.get_preparation_data = prepare


def quiet_context() -> SpawnContext:
    """How to start processes, on any platform, that do not run the caller's main script again."""
    return _QuietContext()


def yielding_context() -> SpawnContext:
    """The same for processes that give way to the one that starts them."""
    return _YieldingContext()


def part_of(progress: Progress, step: int, steps: int) -> Progress:
    """Progress of one of several equal steps, told as progress of the whole."""

    def report(stage: str, done: float, /, *points: Point) -> None:
        progress(stage, (step + done) / steps, *points)

    return report


def run_all(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, stage: str, progress: Progress, workers: int | None = None
) -> list[Result]:
    """``work`` on every task, in the order of the tasks, over processes where that is possible and pays.

    ``progress`` is told the share that is done and may raise to cancel: nothing more is started then. With ``workers``
    left open, the first tasks run here, until it is clear that the rest would take longer than starting processes.
    """
    # A worker of the job runner may not have children of its own.
    processes = 1 if current_process().daemon else min(len(tasks), workers or os.cpu_count() or 1)
    results: list[Result] = []
    started = time.monotonic()
    for done, task in enumerate(tasks):
        if processes > 1 and (workers or (done and _left(started, done, len(tasks)) > MIN_PARALLEL_SECONDS)):
            return results + _over_processes(work, tasks, done, processes, stage=stage, progress=progress)
        progress(stage, done / len(tasks))
        results.append(work(task))
    return results


def _left(started: float, done: int, tasks: int) -> float:
    """Seconds that the rest will take at the pace so far."""
    return (time.monotonic() - started) / done * (tasks - done)


def _over_processes(
    work: Callable[[Task], Result], tasks: Sequence[Task], done: int, processes: int, *, stage: str, progress: Progress
) -> list[Result]:
    with ProcessPoolExecutor(processes, mp_context=quiet_context()) as pool:
        futures = [pool.submit(work, task) for task in tasks[done:]]
        waiting = set(futures)
        try:
            while waiting:
                progress(stage, 1 - len(waiting) / len(tasks))
                finished, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()  # an error ends the whole
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]
