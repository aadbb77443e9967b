"""Files that a visitor uploads, read in a process of their own with little memory and little time.

A small file can ask for many times its size, and a process that runs out of memory takes everybody's work with it. So
a fresh process reads each file and ends: what goes wrong in it, a crash included, ends in an :class:`IntakeError`.
The process is a copy of one that has loaded all libraries and never seen a file, which takes some hundredths of a
second to make. Where the system cannot copy processes (Windows), a new one is started, and memory is not limited.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

import dpsynth_core
from dpsynth_core.errors import DPSynthError, IntakeError
from dpsynth_core.ledger.file_fingerprint import file_fingerprints, file_sketch
from dpsynth_core.ledger.row_sketch import RowSketch
from dpsynth_core.runs.workers import end_with_parent, quiet_context, starting
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.read import read_cells
from dpsynth_core.table.suggest import Suggestion, suggest

if sys.platform != "win32":
    from multiprocessing import forkserver
    from multiprocessing.context import ForkServerContext, ForkServerProcess

MAX_READING = 2
"""Files that are read side by side over the whole server; others wait."""
STARTS = 5
"""Attempts to start a process."""
_slots = threading.BoundedSemaphore(MAX_READING)

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class ReadingLimits:
    """What reading one file may take."""

    memory_bytes: int = 2 * 1024**3
    """Beyond what the process takes before it sees the file."""
    table_bytes: int = 1024**3
    """Of the table that comes out, which the server keeps."""
    cpu_seconds: int = 60
    seconds: float = 180
    """On the clock, with everything else that the machine does."""

    @property
    def too_much_memory(self) -> str:
        """What to say of a file that needs more."""
        gib = self.memory_bytes / 1024**3
        return (
            f"Reading this file takes more than {gib:g} GiB of memory, or it is damaged; upload a smaller extract of "
            "it, or save it as CSV."
        )

    @property
    def too_large(self) -> str:
        """What to say of a table that would take too much of the server's memory."""
        gib = self.table_bytes / 1024**3
        return f"This table takes more than {gib:g} GiB of memory; upload a smaller extract of it."

    @property
    def too_long(self) -> str:
        """What to say of a file that takes longer."""
        return (
            f"Reading this file was stopped after {self.cpu_seconds} seconds of computing or {self.seconds:g} seconds "
            "in all; upload a smaller extract of it, or save it as CSV."
        )


DEFAULT_READING = ReadingLimits()


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """What is known of a file once it has been read."""

    table: pd.DataFrame
    suggestion: Suggestion
    names: tuple[str, ...]
    """Under which the ledger finds it; none where no key was given."""


def read_file(
    content: bytes,
    layout: FileLayout | None = None,
    *,
    key: bytes | None = None,
    limits: ReadingLimits = DEFAULT_READING,
) -> ReadFile:
    """The table in a file, the schema it suggests and the names of its account, from a process of its own.

    Args:
        content: The bytes of the file.
        layout: How it is laid out; None guesses that.
        key: The installation key, where the file's account is wanted.
        limits: What reading may take.

    Raises:
        IntakeError: The file is no table, is broken as a whole or exceeds a limit.
    """
    return run_apart(_read, content, layout, key, limits=limits)


def file_names(content: bytes, key: bytes, *, limits: ReadingLimits = DEFAULT_READING) -> tuple[str, ...]:
    """The names under which the ledger finds a file, from a process of its own."""
    return run_apart(file_fingerprints, content, key, limits=limits)


def sketch_file(content: bytes, key: bytes, *, limits: ReadingLimits = DEFAULT_READING) -> RowSketch:
    """By which a file that shares most of its rows with another is recognised, from a process of its own."""
    return run_apart(file_sketch, content, key, limits=limits)


def _read(content: bytes, layout: FileLayout | None, key: bytes | None) -> ReadFile:
    table = read_cells(content, layout)
    names = () if key is None else file_fingerprints(content, key)
    return ReadFile(table=table, suggestion=suggest(table), names=names)


def run_apart(work: Callable[..., Answer], *args: Any, limits: ReadingLimits = DEFAULT_READING) -> Answer:
    """``work(*args)`` in a fresh process within limits; waits while others read."""
    if not _slots.acquire(timeout=limits.seconds):
        raise IntakeError("The server is busy reading other files; try again in a few minutes.")
    try:
        return _run(work, args, limits)
    finally:
        _slots.release()


def _run(work: Callable[..., Answer], args: tuple[Any, ...], limits: ReadingLimits) -> Answer:
    here, there = _context().Pipe()
    late = threading.Event()
    with here:
        try:
            process = _started(there, limits)
        finally:
            there.close()

        def stop() -> None:
            late.set()
            process.kill()

        watchdog = threading.Timer(limits.seconds, stop)
        watchdog.start()
        try:
            _send(here, (work, args))
            answer, problem = _receive(here)
        except (EOFError, OSError):
            process.join()
            timed_out = late.is_set() or process.exitcode == -_signal("SIGXCPU")
            raise IntakeError(limits.too_long if timed_out else limits.too_much_memory) from None
        finally:
            watchdog.cancel()
            process.kill()
            process.join()
    if problem is not None:
        raise problem
    result: Answer = answer
    return result


def _started(connection: Connection, limits: ReadingLimits) -> BaseProcess:
    for _ in range(STARTS):
        process: BaseProcess = _context().Process(target=_serve, args=(connection, limits), daemon=True)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError, EOFError), _importable():  # the prepared process may just have been killed
            process.start()
            return process
        time.sleep(0.2)
    raise IntakeError("No process could be started to read this file; try again in a few minutes.")


def prepare_reading() -> None:
    """Load the libraries ahead of the first file; returns at once."""
    if sys.platform != "win32":
        _context()  # says what to load
        with starting(), _importable():
            forkserver.ensure_running()


# ------------------------------------------------------------------------------------------------------ the processes


if sys.platform != "win32":

    class _CopiedProcess(ForkServerProcess):
        """A copy of a prepared process that does not run the caller's main script again."""

        @staticmethod
        def _Popen(process_obj: Any) -> Any:
            with starting():
                return ForkServerProcess._Popen(process_obj)

    class _CopyContext(ForkServerContext):
        Process = _CopiedProcess


def _context() -> BaseContext:
    if sys.platform == "win32":
        return quiet_context()
    context = _CopyContext()
    context.set_forkserver_preload(["dpsynth_core.runs.reading_libraries"])
    return context


@contextlib.contextmanager
def _importable() -> Iterator[None]:
    """Let the prepared process find this package, wherever the app was started."""
    before = os.environ.get("PYTHONPATH")
    root = str(Path(dpsynth_core.__file__).parents[1])
    os.environ["PYTHONPATH"] = root if before is None else os.pathsep.join([root, before])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _serve(connection: Connection, limits: ReadingLimits) -> None:
    """In the fresh process: one piece of work."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    _restrict(limits)
    problem: DPSynthError | None = None
    answer = None
    try:
        work, args = _receive(connection)
        answer = work(*args)
    except DPSynthError as error:
        problem = error
    except MemoryError:
        problem = IntakeError(limits.too_much_memory)
    except Exception as error:  # noqa: BLE001  its text may hold cells, so only its type leaves this process
        problem = IntakeError(f"This file could not be read ({type(error).__name__}); save it as CSV, and report this.")
    _answer(connection, answer, problem, limits)


def _answer(connection: Connection, answer: Any, problem: DPSynthError | None, limits: ReadingLimits) -> None:
    try:
        parts = _packed((answer, problem))
        if sum(part.nbytes for part in parts) > limits.table_bytes:
            parts = _packed((None, IntakeError(limits.too_large)))
    except MemoryError:
        parts = _packed((None, IntakeError(limits.too_much_memory)))
    _send_parts(connection, parts)


def _restrict(limits: ReadingLimits) -> None:
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  not on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold the file
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))
    with contextlib.suppress(OSError, ValueError):  # where the system does not say, or keeps no such limit
        most = _address_space() + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _address_space() -> int:
    """Bytes that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _signal(name: str) -> int:
    import signal  # noqa: PLC0415

    return int(getattr(signal, name, 0))


# ------------------------------------------------------------------------------------------------------- the transfer


def _packed(value: Any) -> list[memoryview]:
    """A value as bytes; large arrays stand beside it, without a copy."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [memoryview(text), *(buffer.raw() for buffer in buffers)]


def _send(connection: Connection, value: Any) -> None:
    _send_parts(connection, _packed(value))


def _send_parts(connection: Connection, parts: list[memoryview]) -> None:
    connection.send([part.nbytes for part in parts])
    for part in parts:
        connection.send_bytes(part)


def _receive(connection: Connection) -> Any:
    text, *buffers = [bytearray(size) for size in connection.recv()]
    for part in (text, *buffers):
        connection.recv_bytes_into(part)
    return pickle.loads(text, buffers=buffers)  # noqa: S301  from a process of our own
