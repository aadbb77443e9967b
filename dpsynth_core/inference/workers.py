"""Independent runs side by side, with progress and an end that can be called at any time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import current_process
from typing import TypeVar

from dpsynth_core.jobs import quiet_context
from dpsynth_core.progress import Point, Progress

Task = TypeVar("Task")
Result = TypeVar("Result")


def part_of(progress: Progress, step: int, steps: int) -> Progress:
    """Progress of one of several equal steps, told as progress of the whole."""

    def report(stage: str, done: float, /, *points: Point) -> None:
        progress(stage, (step + done) / steps, *points)

    return report


def run_all(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, stage: str, progress: Progress, workers: int | None = None
) -> list[Result]:
    """``work`` on every task, in the order of the tasks, over processes where that is possible.

    ``progress`` is told the share that is done and may raise to cancel: nothing more is started then.
    """
    # A worker of the job runner may not have children of its own.
    processes = 1 if current_process().daemon else min(len(tasks), workers or os.cpu_count() or 1)
    if processes <= 1:
        results = []
        for done, task in enumerate(tasks):
            progress(stage, done / len(tasks))
            results.append(work(task))
        return results
    with ProcessPoolExecutor(processes, mp_context=quiet_context()) as pool:
        futures = [pool.submit(work, task) for task in tasks]
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
