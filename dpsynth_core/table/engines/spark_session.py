"""Reaching Spark: started on this machine, or a cluster behind Spark Connect.

A table gets a session of its own, with the settings on which its meaning depends. Waiting is bounded everywhere: for
the start, for the connection, and for a cluster that has gone.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa

from dpsynth_core.errors import EngineError, ParameterError
from dpsynth_core.table.engines.pass_control import PassControl
from dpsynth_core.table.engines.spark_watch import SessionWatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLL_SECONDS = 0.1
STOP_TRIES = 600
RETRY_SECONDS = 60.0
"""How long a connection that was lost may take to come back."""
CONNECT_PORT = 15_002
PACKAGES = ("pyspark", "py4j", "grpc", "grpc_status", "zstandard")
ENCRYPTED = "spark.io.encryption.enabled"
SESSION_SETTINGS: Mapping[str, str] = {
    "spark.sql.caseSensitive": "true",
    # A moment with a zone counts on its UTC day (cells.py).
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    # What a row holds must not decide whether reading fails, nor may a file be passed over.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "FATAL",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    ENCRYPTED: "true",
    "spark.python.task.killTimeout": "1s",
    # A machine with more to do than it has cores for keeps a healthy Spark waiting longer than the default of 10 s.
    "spark.executor.heartbeatInterval": "60s",
    "spark.network.timeout": "600s",
}
UNREACHABLE = "The Spark cluster at {place} cannot be reached or does not answer within {wait:g} seconds."
GONE = (
    "Spark stopped answering or could not finish a pass over the rows; its own log says why. What was charged before "
    "that stays charged if noise was drawn."
)
CONNECTION_LOST = frozenset({"SparkConnectGrpcException", "Py4JNetworkError", "ConnectionRefusedError", "EOFError"})
"""Kinds of errors, by name: they come with an extra."""
NOT_ENCRYPTED = (
    f"This Spark does not encrypt what it writes to its disks. Set {ENCRYPTED} to true where it is started, or state "
    "with unencrypted=True that its disks may hold private rows."
)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class SparkOptions:
    """Which Spark, and what it may take."""

    url: str = "local[*]"
    """``local[CORES]`` starts Spark on this machine; ``sc://HOST:PORT`` is a cluster's Spark Connect address."""
    wait: float = 120.0
    """Seconds to wait for Spark to start, to answer, or to come back."""
    memory: str | None = None
    """Most memory of the Java process that is started here, such as "2g"."""
    spill: str | None = None
    """A folder for what a Spark that is started here puts on disk, encrypted; None: the system's temporary one."""
    unencrypted: bool = False
    """Whether a cluster that does not encrypt what it writes to its disks will do."""
    batch_rows: int = 65_536
    partition_bytes: int = 64 * 2**20
    """Of files, for each task: progress is told by tasks that are done."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"local(\[(\d{1,4}|\*)\])?|sc://[\w.\-\[\]:]*(:\d{1,5})?/?(;.*)?", self.url):
            raise ParameterError("spark_url", self.place, allowed="local[CORES] or sc://HOST:PORT")
        if not 0 < self.wait <= 3_600:
            raise ParameterError("wait", self.wait, allowed="more than 0 and at most 3600 seconds")

    @property
    def is_local(self) -> bool:
        return self.url.startswith("local")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of a cluster."""
        parts = urlsplit(self.url)
        return parts.hostname or "localhost", parts.port or CONNECT_PORT

    @property
    def place(self) -> str:
        """The address without what may follow it: a token is nobody's business."""
        return self.url.partition(";")[0].rstrip("/")

    def session_settings(self) -> dict[str, str]:
        return {
            **SESSION_SETTINGS,
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(self.batch_rows),
            "spark.sql.files.maxPartitionBytes": str(self.partition_bytes),
        }


@dataclass(frozen=True, kw_only=True)
class StageProgress:
    """How many tasks of a stage are done."""

    number: int = -1
    done: int = 0
    tasks: int = 1

    @property
    def share(self) -> float:
        return self.done / self.tasks if self.tasks else 0.0

    def followed_by(self, stages: Iterable[StageProgress]) -> StageProgress:
        """The newest stage that is not over: before it reads rows, Spark may have listed files in a stage of its own.

        Spark forgets stages, and may report them late: then this one remains.
        """
        newer = [stage for stage in stages if stage.done < stage.tasks and stage.number >= self.number]
        return max(newer, key=lambda stage: (stage.number, stage.done), default=self)


class SparkConnection(ABC):
    """A session, and how a query of it is watched and stopped."""

    def __init__(self, session: SparkSession, options: SparkOptions) -> None:
        self.session = session
        for name, value in options.session_settings().items():
            session.conf.set(name, value)
        if not options.unencrypted and session.conf.get(ENCRYPTED, "false") != "true":
            raise EngineError(NOT_ENCRYPTED)

    def collect(
        self,
        frame: Callable[[], DataFrame],
        control: PassControl,
        *,
        problem: str = GONE,
        told: Callable[[float], None] | None = None,
    ) -> pa.Table:
        """The rows of a small result, with the share of tasks that are done told meanwhile."""
        tag = f"dpsynth-{uuid4().hex}"
        query = InBackground(lambda: self._tagged(frame, tag))
        newest = StageProgress()
        try:
            while not query.ended(POLL_SECONDS):
                control.check()
                if told is not None:
                    newest = newest.followed_by(self._stages(tag))
                    told(newest.share)
            control.check()
        except BaseException:
            InBackground(lambda: self._stop(query, tag))
            raise
        return query.result(GONE if query.lost else problem)

    @abstractmethod
    def _tagged(self, frame: Callable[[], DataFrame], tag: str) -> pa.Table:
        """Run a query under a name, in the thread that calls."""

    def _stop(self, query: InBackground[pa.Table], tag: str) -> None:
        """End a query: more than once, because one that is still being planned has no job that could be ended."""
        for _ in range(STOP_TRIES):
            self._interrupt(tag)
            if query.ended(2 * POLL_SECONDS):
                break

    @abstractmethod
    def _interrupt(self, tag: str) -> None:
        """End the jobs of that name."""

    @abstractmethod
    def _stages(self, tag: str) -> Iterable[StageProgress]:
        """Of the query of that name, as far as Spark remembers them."""

    def close(self) -> None:  # noqa: B027  a Spark of this machine is shared by the tables of this process
        """End the session."""


class LocalSpark(SparkConnection):
    """Spark in a Java process of this machine, which ends with this one."""

    def _tagged(self, frame: Callable[[], DataFrame], tag: str) -> pa.Table:
        self.session.sparkContext.setJobGroup(tag, "dpsynth", interruptOnCancel=True)
        return frame().toArrow()

    def _interrupt(self, tag: str) -> None:
        self.session.sparkContext.cancelJobGroup(tag)

    def _stages(self, tag: str) -> Iterable[StageProgress]:
        tracker = self.session.sparkContext.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(tag))
        stages = (tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds)
        return [
            StageProgress(number=stage.stageId, done=stage.numCompletedTasks, tasks=stage.numTasks)
            for stage in stages
            if stage is not None
        ]


class ConnectedSpark(SparkConnection):
    """A cluster behind Spark Connect."""

    def __init__(self, session: SparkSession, options: SparkOptions) -> None:
        super().__init__(session, options)
        self._reported: tuple[StageProgress, ...] = ()
        session.registerProgressHandler(self._report)
        self._watch = SessionWatch(options.url, session.session_id)

    def _report(self, stages: Iterable[Any] | None, **_: object) -> None:
        self._reported = tuple(
            StageProgress(number=stage.stage_id, done=stage.num_completed_tasks, tasks=stage.num_tasks)
            for stage in stages or ()
        )

    def _tagged(self, frame: Callable[[], DataFrame], tag: str) -> pa.Table:
        self._reported = ()
        self.session.addTag(tag)
        try:
            return frame().toArrow()
        finally:
            self.session.removeTag(tag)

    def _interrupt(self, tag: str) -> None:
        self.session.interruptTag(tag)

    def _stages(self, tag: str) -> Iterable[StageProgress]:  # noqa: ARG002  a session has one query at a time
        return self._reported

    def close(self) -> None:
        if InBackground(self.session.stop).ended(5.0):
            self._watch.end()


class InBackground(Generic[T]):
    """A call that may never return, waited for only as long as somebody wants to."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._value: T | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except Exception as error:  # noqa: BLE001  handed over by `result`
            self._error = error

    def ended(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def lost(self) -> bool:
        """Whether it ended because nobody answers any more."""
        return type(self._error).__name__ in CONNECTION_LOST

    def result(self, problem: str = GONE) -> T:
        if isinstance(self._error, EngineError):
            raise self._error
        if self._error is not None:
            # Its text is Spark's, which may repeat what a cell holds; its kind is not.
            raise EngineError(f"{problem} ({type(self._error).__name__})") from None
        return cast(T, self._value)


def connect(options: SparkOptions) -> SparkConnection:
    """A session of its own for a table."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise EngineError(
            f"Spark needs {' and '.join(missing)}, not installed here. Whoever runs this program can add it with "
            "\"pip install 'dpsynth-core[spark]'\", or with 'pip install -r requirements-spark.txt'."
        )
    # Its pandas functions are not used.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    return _local(options) if options.is_local else _connected(options)


def _local(options: SparkOptions) -> LocalSpark:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise EngineError("Spark needs Java 17 or later, which is not installed here (Debian: default-jre-headless).")
    starting = InBackground(lambda: LocalSpark(_started(options).newSession(), options))
    return _within(starting, options, "Spark could not be started on this machine within {wait:g} seconds.")


def _started(options: SparkOptions) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415  an extra

    # Workers run the Python that runs here, and find this package where it is.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(options.url).appName("dpsynth")
    package = str(Path(__file__).parents[3])
    # And not in the folder where somebody happens to be.
    chosen = {**LOCAL_SETTINGS, "spark.executorEnv.PYTHONPATH": package, "spark.executorEnv.PYTHONSAFEPATH": "1"}
    if options.memory is not None:
        chosen["spark.driver.memory"] = options.memory
    if options.spill is not None:
        chosen["spark.local.dir"] = options.spill
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _connected(options: SparkOptions) -> ConnectedSpark:
    try:
        socket.create_connection(options.address, timeout=options.wait).close()
    except OSError:
        raise EngineError(UNREACHABLE.format(place=options.place, wait=options.wait)) from None
    return _within(InBackground(lambda: ConnectedSpark(_remote(options), options)), options, UNREACHABLE)


def _remote(options: SparkOptions) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415  an extra
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

    session = SparkSession.builder.remote(options.url).create()
    # Every two seconds: the default goes on for ten minutes.
    retries = max(1, int(min(options.wait, RETRY_SECONDS) / 2))
    session.client.set_retry_policies([DefaultPolicy(max_retries=retries, initial_backoff=500, max_backoff=2_000)])
    return session


def _within(starting: InBackground[T], options: SparkOptions, problem: str) -> T:
    problem = problem.format(place=options.place, wait=options.wait)
    if not starting.ended(options.wait):
        raise EngineError(problem)
    return starting.result(problem)
