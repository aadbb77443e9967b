"""Tasks for tests/test_jobs.py: in a module of their own, because workers import them by name."""

from __future__ import annotations

import os
import signal
import time

from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Point
from dpsynth_core.runs.jobs import Channel, reporter


def add(a: int, b: int, job_id: str, channel: Channel) -> int:
    reporter(job_id, channel)("Adding", 0.5)
    return a + b


def sleep(seconds: float, drawing: bool, job_id: str, channel: Channel) -> None:
    if drawing:
        channel.put((job_id, "drawing", None))
    reporter(job_id, channel)(f"Sleeping in process {os.getpid()}", 0.1)
    time.sleep(seconds)


def spin(job_id: str, channel: Channel) -> None:
    reporter(job_id, channel)(f"Spinning in process {os.getpid()}", 0.1)
    while True:
        pass


def fail(job_id: str, channel: Channel) -> None:
    raise DPSynthError("This cannot be done; do that.")


def leak(job_id: str, channel: Channel) -> None:
    raise RuntimeError("secret cell value 4711")


def die(drawing: bool, job_id: str, channel: Channel) -> None:
    if drawing:
        channel.put((job_id, "drawing", None))
    os.kill(os.getpid(), signal.SIGKILL)


def size(content: bytes, job_id: str, channel: Channel) -> int:
    return len(content)


def walk(seconds: float, job_id: str, channel: Channel) -> None:
    report = reporter(job_id, channel)
    for i in range(1_000):
        report(f"Step {i}", i / 1_000, Point(series="height", x=i, y=i * i, releasable=True))
        time.sleep(seconds / 1_000 if i > 5 else 0)
