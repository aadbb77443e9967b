"""A server that makes releases one after the other, until it is killed: ``python -m tests.faults.server FOLDER FAULT``.

It does what the app does: it charges, hands the run to a worker, and shows the result once the charge is settled. What
it shows, and what a worker draws, is written down line by line, to be compared with the ledger afterwards.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.errors import BudgetError, DPSynthError
from dpsynth_core.ledger import database
from dpsynth_core.ledger import ledger as ledger_module
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.runs.jobs import JobRunner
from dpsynth_core.table.schema import Schema

ACCOUNT = "table"
EACH = "0.001"
SCHEMA = Schema.from_dict(
    {"columns": [{"name": "age", "kind": "integer", "lower": 0, "upper": 99, "bins": 10, "public": True}]}
)


def note(folder: Path, name: str, run_id: str) -> None:
    """Write a line that is complete or not there."""
    handle = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{run_id}\n".encode())
    os.close(handle)


class Witness(RunProgress):
    """Progress that writes down that noise is drawn, once the runner knows it."""

    def __init__(self, progress: RunProgress, folder: Path, run_id: str) -> None:
        self._progress, self._folder, self._run_id, self._noted = progress, folder, run_id, False

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        self._progress(stage, done, *points)

    def drawn(self) -> None:
        self._progress.drawn()
        if not self._noted:
            note(self._folder, "drawn", self._run_id)
            self._noted = True


def release(folder: Path, run_id: str, *, progress: RunProgress) -> RunResult:
    """In the worker: a small release; it takes its time, so that it can be killed at any moment."""
    pause = random.random() * 0.3
    time.sleep(pause)
    table = pd.DataFrame({"age": np.arange(200) % 90})
    config = RunConfig(mechanism=MECHANISMS["perturbed_histogram"](), epsilon=EACH)
    result = execute(table, SCHEMA, config, progress=Witness(progress, folder, run_id))
    time.sleep(pause)
    return result


class JumpingClock(datetime):
    """A clock that is set forth and back all the time."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(days=random.uniform(-4_000, 4_000))


def suffer(fault: str) -> None:
    """Put a fault on this server."""
    database.SQLITE_WAIT_SECONDS = 1
    if fault == "clock":
        ledger_module.datetime = JumpingClock  # type: ignore[misc]
    elif fault == "full":  # no file can grow: what the ledger appends fails
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))


def main() -> None:
    """Release until killed, or until nothing is left."""
    folder, fault = Path(sys.argv[1]), sys.argv[2]
    ledger = installed_ledger()
    ledger.open_account(ACCOUNT, total=Budget.of(10))
    suffer(fault)
    with JobRunnerContext() as runner:
        note(folder, "started", fault)
        while True:
            run_id = uuid.uuid4().hex
            try:
                charge = installed_ledger().reserve(ACCOUNT, Budget.of(EACH), purpose="run", run_id=run_id)
            except BudgetError:
                return
            except DPSynthError:
                note(folder, "refused", run_id)
                time.sleep(0.1)
                continue
            job = runner.submit("Release", release, folder, run_id, charge=charge)
            while job.active:
                time.sleep(0.01)
            if job.state == "finished" and job.result is not None:
                note(folder, "shown", run_id)
            else:
                note(folder, "failed", run_id)


class JobRunnerContext:
    """Workers for as long as the server runs."""

    def __enter__(self) -> JobRunner:
        self._runner = JobRunner(max_running=1)
        return self._runner

    def __exit__(self, *_: object) -> None:
        self._runner.close()


if __name__ == "__main__":
    from tests.faults import server  # noqa: PLW0406

    server.main()  # under its importable name, by which workers find the task
