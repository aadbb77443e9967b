"""Waiting for background jobs and looking at their processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from dpsynth_core.runs.jobs import Job


def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def finish(job: Job) -> Job:
    wait(lambda: not job.active)
    return job


def process_of(job: Job) -> int:
    wait(lambda: "process" in job.stage)
    return int(job.stage.rsplit(" ", 1)[1])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="ascii") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):  # it may go at any of these steps
        return False


def workers_of(server: int) -> list[int]:
    """Processes that the app has started, by the kernel's own list."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:  # gone meanwhile
                continue
            if parent == server:
                found.append(int(entry.name))
    return found
