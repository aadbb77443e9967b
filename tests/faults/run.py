"""Killing servers, workers and managers at random moments, and comparing what was shown with what was charged."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Budget
from tests.faults.server import ACCOUNT, EACH
from tests.waiting.jobs import alive, workers_of
from tests.waiting.postgresql import PostgreSQL

ROOT = Path(__file__).parents[2]
KILLS = ("server", "worker", "manager", "clock")
FAULTS = (*KILLS, "locked", "full", "read-only")
"""Of a ledger in SQLite."""
POSTGRESQL_FAULTS = (*KILLS, "restart")
PATIENCE = 300.0
"""Seconds for a server to start, or for its processes to end."""


@dataclass(kw_only=True)
class FaultReport:
    """What happened, and what must not have."""

    faults: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    """Charges on record."""
    shown: int = 0
    states: Counter[str] = field(default_factory=Counter)
    shown_without_charge: list[str] = field(default_factory=list)
    drawn_but_refunded: list[str] = field(default_factory=list)
    doubled: int = 0
    survivors: int = 0
    """Processes that outlived their server."""

    @property
    def clean(self) -> bool:
        return not (self.shown_without_charge or self.drawn_but_refunded or self.doubled or self.survivors)


def provoke(
    folder: Path, runs: int, seed: int = 0, *, minutes: float = math.inf, database: PostgreSQL | None = None
) -> FaultReport:
    """Let servers make at least ``runs`` charges, each server with one fault, and examine the ledger.

    Args:
        folder: For the ledger, unless it is in a database server, and for what is written down.
        runs: How many charges.
        seed: Of the moments at which something is killed.
        minutes: After which no further server is started.
        database: Where the ledger is, which is restarted now and then; None for SQLite.
    """
    end = time.monotonic() + 60 * minutes
    rng = random.Random(seed)
    report = FaultReport()
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "DPSYNTH_HOME": str(folder / "home"), "PYTHONPATH": search}
    if database is not None:
        environment["DPSYNTH_LEDGER_URL"] = database.url
    settings = Settings.from_environment(environment)
    faults = FAULTS if database is None else POSTGRESQL_FAULTS
    order = 0
    while _charges(settings) < runs and time.monotonic() < end:
        fault = faults[order % len(faults)]
        order += 1
        report.faults[fault] += 1
        report.survivors += _one_server(folder, fault, environment, rng, database)
    _examine(folder, settings, report)
    return report


def _one_server(
    folder: Path, fault: str, environment: dict[str, str], rng: random.Random, database: PostgreSQL | None
) -> int:
    """Start a server, let it suffer, kill it; how many of its processes are left."""
    if fault == "read-only" and (folder / "home" / "ledger.db").exists():
        file = f"file:{folder}/home/ledger.db?mode=ro&uri=true"
        environment = {**environment, "DPSYNTH_LEDGER_URL": f"sqlite:///{file}"}
    before = _lines(folder, "started"), len(_lines(folder, "shown"))
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.server", str(folder), fault],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        started = _until(lambda: len(_lines(folder, "started")) > len(before[0]) or server.poll() is not None)
        if started and server.poll() is None:
            _suffer(folder, fault, server.pid, rng, shown=before[1], database=database)
        processes = workers_of(server.pid)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    _until(lambda: not any(alive(pid) for pid in processes))
    return sum(alive(pid) for pid in processes)


def _suffer(
    folder: Path, fault: str, server: int, rng: random.Random, *, shown: int, database: PostgreSQL | None
) -> None:
    if fault in ("worker", "manager"):
        for _ in range(3):
            time.sleep(rng.random())
            _kill(server, oldest=fault == "manager")
    elif fault == "locked":
        connection = sqlite3.connect(folder / "home" / "ledger.db", timeout=10)
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(3)
        connection.close()
    elif fault == "restart" and database is not None:
        for _ in range(3):
            time.sleep(rng.random())
            database.stop()
            time.sleep(rng.random())
            database.start()
    if fault in ("full", "read-only"):
        time.sleep(1 + rng.random())
    else:
        _until(lambda: len(_lines(folder, "shown")) >= shown + 4, seconds=120)
        time.sleep(rng.random())  # a random moment of the next run


def _kill(server: int, *, oldest: bool) -> None:
    """Kill the manager, which is started first, or the newest worker; between two of them there may be none."""
    _until(lambda: bool(_victims(server)), seconds=30)
    with contextlib.suppress(ProcessLookupError):
        if victims := _victims(server):
            os.kill(min(victims, key=_started) if oldest else max(victims, key=_started), signal.SIGKILL)


def _victims(server: int) -> list[int]:
    return [pid for pid in workers_of(server) if not _tracks(pid)]


def _started(pid: int) -> int:
    """When a process was started, in ticks of the machine; late for one that has ended meanwhile."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[19])
    return sys.maxsize


def _tracks(pid: int) -> bool:
    """Whether it is Python's own tracker of shared resources."""
    with contextlib.suppress(OSError):
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return True


def _charges(settings: Settings) -> int:
    if not settings.key_file.exists():
        return 0
    account = _ledger(settings).account(ACCOUNT)
    return 0 if account is None else len(account.entries)


def _ledger(settings: Settings) -> Ledger:
    return Ledger(settings.ledger_url, key=settings.installation_key(), head=settings.head_file)


def _examine(folder: Path, settings: Settings, report: FaultReport) -> None:
    ledger = _ledger(settings)
    ledger.check()  # nothing is missing and the chain holds
    account = ledger.account(ACCOUNT)
    assert account is not None
    states = {entry.run_id: entry.state for entry in account.entries}
    report.runs, report.states = len(account.entries), Counter(entry.state for entry in account.entries)
    report.shown = len(_lines(folder, "shown"))
    report.doubled = len(account.entries) - len(states)
    report.shown_without_charge = [run for run in _lines(folder, "shown") if states.get(run) != "committed"]
    report.drawn_but_refunded = [
        run for run in _lines(folder, "drawn") if states.get(run) not in ("committed", "reserved")
    ]
    counted = report.states["committed"] + report.states["reserved"]
    assert account.spent.epsilon == counted * Budget.of(EACH).epsilon


def _lines(folder: Path, name: str) -> list[str]:
    file = folder / name
    return file.read_text(encoding="utf-8").split() if file.exists() else []


def _until(condition: object, seconds: float = PATIENCE) -> bool:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
