"""Many visitors at once, each with a table of their own: does anything leak, get lost, or pile up?

python -m benchmarks.load --sessions 25 [--rounds 3] [--rows 200]

Every visitor uploads a table with a canary, a word that occurs nowhere else, and goes through all six pages, first in
release mode and then in teaching mode. Whatever arrives at a visitor, and every log and temporary file of the server,
is searched for canaries. The store of releases that were paid for holds synthetic rows and with them the declared
labels, which are canaries here: its files are left out of that search, and each is searched for canaries of two people.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import sqlalchemy as sa

from benchmarks.visitor import Visitor
from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.tables import CHARGES, SETTLEMENTS
from pages.shared.memory import GRACE_SECONDS, KEEP_MINUTES, SWEEP_EVERY

CANARY = re.compile(rb"canary[0-9a-f]{16}")
LEAK = 0.05
"""Growth of the server's memory over the rounds that counts as a leak."""
KEPT_SECONDS = 30
"""How long the server keeps the tables of those who have left, so that what it still holds after a round is a leak."""
PAGE = os.sysconf("SC_PAGE_SIZE")
LAST_DIAGNOSTIC = list(DIAGNOSTICS.values())[-1].title


def canary_table(canary: str, rows: int) -> bytes:
    """A small table whose categories are the canary."""
    rng = np.random.default_rng(int(canary[6:], 16))
    group = np.where(rng.integers(0, 2, rows), f"{canary}a", f"{canary}b")
    table = pd.DataFrame({"group": group, "age": rng.integers(18, 90, rows), "visits": rng.poisson(3, rows)})
    return table.to_csv(index=False).encode()


@dataclass(kw_only=True)
class Waits:
    """The longest waits of anybody, in seconds."""

    queue: float = 0.0
    page: float = 0.0

    def queued(self, seconds: float) -> None:
        self.queue = max(self.queue, seconds)

    def paged(self, seconds: float) -> None:
        self.page = max(self.page, seconds)


@dataclass(kw_only=True)
class Report:
    """What one visitor can tell afterwards."""

    canary: str
    foreign: set[bytes] = field(default_factory=set)
    frames: int = 0
    downloads: int = 0
    runs: int = 0
    pressed_again: int = 0


async def visit(url: str, rows: int, waits: Waits) -> Report:
    """One visitor's way through both modes."""
    report = Report(canary=f"canary{secrets.token_hex(8)}")
    async with Visitor(url=url, canaries=CANARY) as visitor:
        for mode in ("Release", "Teaching"):
            await load_table(visitor, mode, canary_table(report.canary, rows), waits)
            await through_pages(visitor, mode, rows, report, waits)
        report.foreign = visitor.seen - {report.canary.encode()}
        report.frames, report.pressed_again = visitor.frames, visitor.pressed_again
        assert report.canary.encode() in visitor.seen, "the search finds nothing at all"
    return report


async def load_table(visitor: Visitor, mode: str, content: bytes, waits: Waits) -> None:
    """The Data page."""
    await go(visitor, "Data", waits)
    await visitor.choose("Mode", mode)
    if mode == "Teaching":  # the app asks first, because there is work on a table
        await visitor.press("Go on")
    await visitor.until(lambda: f"{mode} mode" in visitor.text)
    await visitor.choose("Source", "My own file")
    if mode == "Teaching":
        await visitor.tick("This file holds only public or simulated data.")
    await visitor.upload("table.csv", content)  # the ledger keeps the name, which therefore is no canary
    await visitor.press("Use this file")
    await visitor.until(lambda: "The table" in visitor.headings)
    await visitor.press("All of these are public knowledge")
    await visitor.until(lambda: "Guarantee: possible" in visitor.text)
    if mode == "Release":
        await visitor.press("Open the account")
        await visitor.until(lambda: "This data set has an account" in visitor.text)


async def through_pages(visitor: Visitor, mode: str, rows: int, report: Report, waits: Waits) -> None:
    """The other five pages."""
    report.downloads += bool(await visitor.download("Save schema"))
    await go(visitor, "Mechanism", waits)
    await go(visitor, "Synthesize", waits)
    await visitor.press("Synthesize")
    if mode == "Release":
        await visitor.press("Spend it and run")
    waits.queued(await finish(visitor, "The synthetic table"))
    report.runs += 1
    table = pd.read_csv(io.BytesIO(await visitor.download("Download CSV")))
    assert len(table) == len(pd.read_parquet(io.BytesIO(await visitor.download("Download Parquet")))) == rows
    report.downloads += 2
    await go(visitor, "Diagnostics", waits)
    if mode == "Release":
        await visitor.press("with the original")
    waits.queued(await finish(visitor, LAST_DIAGNOSTIC))
    report.downloads += bool(await visitor.download("Table"))
    await go(visitor, "Trade-offs", waits)
    await go(visitor, "Release", waits)


async def go(visitor: Visitor, title: str, waits: Waits) -> None:
    """Another page, and how long it took."""
    began = time.monotonic()
    await visitor.go(title)
    waits.paged(time.monotonic() - began)


async def finish(visitor: Visitor, heading: str) -> float:
    """Wait for background work; returns how long it was in the queue."""
    began, queued = time.monotonic(), 0.0

    def done() -> bool:
        nonlocal queued
        if "ahead of yours" in visitor.text:
            queued = time.monotonic() - began
        return heading in visitor.headings

    await visitor.until(done)
    await visitor.quiet()
    return queued


# The server, from outside


def status(pid: int) -> tuple[int, int]:
    """A process's parent, and its memory in bytes."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:  # gone meanwhile
        return 0, 0
    return int(numbers[1]), int(numbers[21]) * PAGE


def children(pid: int) -> list[int]:
    """Processes that it has started."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [each for each in pids if status(each)[0] == pid]


@dataclass(kw_only=True)
class Watch:
    """Looks at the server's memory and files from time to time."""

    pid: int
    folders: tuple[Path, ...]
    store: Path
    """Of releases that were paid for, whose rows may hold their owner's canary."""
    peak: int = 0
    """Of the server."""
    peak_all: int = 0
    """With its workers."""
    spilled: set[str] = field(default_factory=set)
    """Files with a canary in them, those that are deleted but open included."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Once."""
        server, workers = status(self.pid)[1], sum(status(child)[1] for child in children(self.pid))
        self.peak, self.peak_all = max(self.peak, server), max(self.peak_all, server + workers)
        deleted = (link for link in Path(f"/proc/{self.pid}/fd").glob("*") if _is_deleted_file(link))
        for path in (*(path for folder in self.folders for path in folder.rglob("*")), *deleted):
            if self.store in path.parents:
                continue
            try:
                if path.is_file() and CANARY.search(path.read_bytes()):
                    self.spilled.add(str(path))
            except OSError:  # gone meanwhile, or not to be read
                continue

    def run(self) -> None:
        """Until it is told to stop."""
        while not self.stopped.wait(1.0):
            self.look()


def stored_releases(store: Path) -> tuple[int, int]:
    """How many files the store holds, and how many of them hold canaries of two visitors."""
    found = [set(CANARY.findall(path.read_bytes())) for path in store.rglob("*") if path.is_file()]
    return len(found), sum(len(canaries) > 1 for canaries in found)


def _is_deleted_file(link: Path) -> bool:
    try:
        return str(link.readlink()).endswith("(deleted)")
    except OSError:
        return False


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """The app with a ledger, temporary files and a log of its own."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    (folder / "tmp").mkdir()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.headless",
        "true",
    ]
    own = {"DPSYNTH_HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), KEEP_MINUTES: str(KEPT_SECONDS / 60)}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(  # noqa: S603  our own command
            [*command, "--server.port", str(port)], env={**os.environ, **own}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while True:
                try:
                    urllib.request.urlopen(f"http://localhost:{port}/_stcore/health")
                    break
                except OSError:
                    time.sleep(0.2)
            yield f"http://localhost:{port}", server.pid
        finally:
            server.terminate()
            server.wait()


def charges(home: Path) -> dict[str, list[str]]:
    """The states of every account's charges, as they are on record."""
    ledger = Settings.from_environment({"DPSYNTH_HOME": str(home)}).ledger_url
    states = sa.select(CHARGES.c.fingerprint, SETTLEMENTS.c.state).select_from(CHARGES.outerjoin(SETTLEMENTS))
    found: dict[str, list[str]] = {}
    with sa.create_engine(ledger).connect() as connection:
        for account, state in connection.execute(states):
            found.setdefault(account, []).append(state or "not settled")
    return found


@dataclass(kw_only=True)
class Findings:
    """Everything that was seen so far."""

    before: int
    """The server's memory, in bytes, once every module was loaded."""
    watch: Watch
    waits: Waits = field(default_factory=Waits)
    reports: list[Report] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    """The server's memory after each round."""

    def lines(self, folder: Path) -> Iterator[str]:
        """In words and numbers."""
        log, states = (folder / "log").read_bytes(), list(charges(folder / "home").values())
        before, peak, peak_all, after = (
            f"{value / 2**20:.0f}" for value in (self.before, self.watch.peak, self.watch.peak_all, self.after[-1])
        )
        growth = self.after[-1] / self.after[0] - 1
        stored, mixed = stored_releases(self.watch.store)
        for name, value in {
            "canaries of others in frames, pages and files": sum(len(report.foreign) for report in self.reports),
            "canaries in the log": len(CANARY.findall(log)),
            "temporary files with a canary": len(self.watch.spilled),
            "stored releases, with canaries of two visitors": f"{stored}, {mixed}",
            "lines about lost fragments in the log": log.count(b"does not exist anymore"),
            "errors in the log": log.count(b"Traceback"),
            "frames looked at": f"{sum(report.frames for report in self.reports):,}",
            "runs finished": sum(report.runs for report in self.reports),
            "downloads complete": sum(report.downloads for report in self.reports),
            "links that had to be followed again": sum(report.pressed_again for report in self.reports),
            "accounts charged exactly once": f"{states.count(['committed'])} of {len(states)}",
            "longest wait in the queue": f"{self.waits.queue:.0f} s",
            "longest wait for a page": f"{self.waits.page:.1f} s",
            "server's memory before, peak, after": f"{before}, {peak}, {after} MB",
            "peak with its workers": f"{peak_all} MB",
            "growth since the first round": f"{growth:+.1%}{'' if growth < LEAK else ': a leak'}",
        }.items():
            yield f"  {name:48} {value}"


def measure(sessions: int, rounds: int, rows: int) -> None:
    """All rounds against one server; what came of them is printed after each, because they take long."""
    with tempfile.TemporaryDirectory() as place, serving(Path(place)) as (url, pid):
        folder = Path(place)
        asyncio.run(visit(url, rows, Waits()))  # so that every module is loaded
        time.sleep(GRACE_SECONDS + KEPT_SECONDS + 2 * SWEEP_EVERY)
        home = folder / "home"
        store = Settings.from_environment({"DPSYNTH_HOME": str(home)}).release_store.folder
        watch = Watch(pid=pid, folders=(folder / "tmp", home), store=store)
        threading.Thread(target=watch.run, daemon=True).start()
        findings = Findings(before=status(pid)[1], watch=watch)
        for number in range(1, rounds + 1):
            began = time.monotonic()
            findings.reports += asyncio.run(everybody(url, sessions, rows, findings.waits))
            seconds = time.monotonic() - began
            time.sleep(GRACE_SECONDS + KEPT_SECONDS + 2 * SWEEP_EVERY)
            findings.after.append(status(pid)[1])
            machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
            print(f"{sessions} sessions at a time, round {number} of {rounds}, {seconds:.0f} s ({machine})")
            print(*findings.lines(folder), sep="\n", flush=True)
        watch.stopped.set()


async def everybody(url: str, sessions: int, rows: int, waits: Waits) -> list[Report]:
    """All at once."""
    return list(await asyncio.gather(*(visit(url, rows, waits) for _ in range(sessions))))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200)
    given = parser.parse_args()
    measure(given.sessions, given.rounds, given.rows)


if __name__ == "__main__":
    main()
