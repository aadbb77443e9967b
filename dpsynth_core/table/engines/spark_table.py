"""Rows on a Spark cluster, or in Spark on this machine: each partition is counted where it is.

A worker runs the same tasks on the same codec as a pass in memory (``row_tasks``), and sends home arrays of numbers.
Nothing but Arrow batches reaches Python there (``mapInArrow``), and nothing but such arrays comes back (``toArrow``).
"""

from __future__ import annotations

import contextlib
import io
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dpsynth_core.errors import EngineError
from dpsynth_core.table.engines.row_batch import RowBatch, cells_of, check_streamed
from dpsynth_core.table.engines.row_tasks import Accumulator, Packed, RowTask, TakeTask
from dpsynth_core.table.engines.streamed_table import REPORT_SECONDS, ReadingPace, StreamedTable
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.sniff import clean_names
from dpsynth_core.table.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 65_536
RESULT = "part binary, rows bigint"
FILE, ORDINAL = "__dpsynth_file", "__dpsynth_row"
"""Where a row is stored, for samples only."""
NOT_INSTALLED = "PySpark is not installed; install it with 'pip install -r requirements-spark.txt'."
UNREACHABLE = (
    "The Spark cluster cannot be reached; check its address and that it is running. Spark on this machine needs Java "
    "17 or later."
)
WORKER_LACKS_PACKAGE = (
    "The cluster's workers cannot load dpsynth_core. Install this version of it, with its requirements, in the Python "
    "that the workers run."
)
NOT_ENCRYPTED = "This cluster does not encrypt what it writes to disk. Start it with spark.io.encryption.enabled=true."
DIED = "The Spark cluster stopped or a worker failed before the pass was over."


def open_spark(location: str, schema: Schema, *, table: str | None, url: str | None) -> StreamedTable:
    """Parquet files that the cluster can read, or a table of its catalogue that is stored as Parquet."""
    session = spark_session(url)
    if str(session.conf.get("spark.io.encryption.enabled", "false")).lower() != "true":
        raise EngineError(NOT_ENCRYPTED)
    return SparkTable(session, location, schema, table=table)


def spark_session(url: str | None) -> SparkSession:
    """A session on a cluster (``sc://...``), on a master, or on two cores of this machine."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  an extra
    except ImportError:
        raise EngineError(NOT_INSTALLED) from None
    try:
        if url is not None and url.startswith("sc://"):
            session = SparkSession.builder.remote(url).getOrCreate()
            session.version  # noqa: B018  asks the server, so that an absent one is noticed here
            return session
        return (
            SparkSession.builder.master(url or "local[2]")
            .appName("dpsynth")
            .config("spark.io.encryption.enabled", "true")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
    except Exception as error:
        raise EngineError(UNREACHABLE) from error


@dataclass(frozen=True, kw_only=True)
class PartitionPass:
    """What a worker does with the batches of one partition."""

    task: RowTask
    names: tuple[str, ...]
    schema: Schema
    layout: FileLayout
    offsets: dict[str, int] | None
    """For samples: how many rows come before each file's first; None where the order of rows does not matter."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total, rows = self.task.start(), 0
        for batch in batches:
            for first, part in self._runs(batch):
                cells = cells_of(part.select(range(len(self.names))), self.names)
                total.add(RowBatch(cells=cells, schema=self.schema, layout=self.layout, first=first))
            rows += batch.num_rows
        yield pa.RecordBatch.from_pydict(
            {"part": pa.array([to_bytes(total.pack())], pa.binary()), "rows": pa.array([rows], pa.int64())}
        )

    def _runs(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Runs of rows that are neighbours in one file, with the number of rows that come before."""
        if self.offsets is None or not batch.num_rows:
            yield 0, batch
            return
        files = batch.column(len(self.names)).dictionary_encode()
        offset = np.array([self.offsets[name] for name in files.dictionary.to_pylist()], dtype=np.int64)
        ordinal = np.asarray(batch.column(len(self.names) + 1)) + offset[np.asarray(files.indices)]
        cuts = [0, *(np.flatnonzero(np.diff(ordinal) != 1) + 1).tolist(), batch.num_rows]
        for begin, end in pairwise(cuts):
            yield int(ordinal[begin]), batch.slice(begin, end - begin)


class SparkTable(StreamedTable):
    """Parquet files, or a table of the catalogue."""

    def __init__(self, session: SparkSession, location: str, schema: Schema, *, table: str | None) -> None:
        self._session = session
        with self._errors():
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
            self._frame = session.table(table) if table is not None else session.read.parquet(location)
            stored = self._frame.limit(0).toArrow().schema
            self._stamps = self._files()
        names = clean_names(stored.names)
        for name, kind in zip(names, stored.types, strict=True):
            check_streamed(name, kind)
        self._stored = list(stored.names)
        layout = schema.file or FileLayout(format="parquet")
        super().__init__(schema, layout, names=names, read_as_declared=schema.file is not None)
        self._n = sum(rows for *_, rows in self._stamps)
        if not self._n:
            raise EngineError("This table has no rows.")

    def _files(self) -> tuple[tuple[str, int, str, int], ...]:
        """Path, size, time of change and rows of every file, in order."""
        found = (
            self._frame.selectExpr(
                "_metadata.file_path p", "_metadata.file_size s", "cast(_metadata.file_modification_time as string) t"
            )
            .groupBy("p", "s", "t")
            .count()
            .toArrow()
            .to_pylist()
        )
        return tuple(sorted((row["p"], row["s"], row["t"], row["count"]) for row in found))

    def check_snapshot(self) -> None:
        with self._errors():
            # Spark remembers which files there were when the frame was made; what they are now is asked anew.
            stamps = self._files()
        if stamps != self._stamps:
            raise EngineError(
                "Files of this table were changed after it was opened. Several passes must see the same rows, so "
                "nothing is released. Open the table again."
            )

    def _run(self, task: RowTask, total: Accumulator) -> int:
        names = tuple(task.columns) or self._names[:1]
        columns = [self._frame[self._stored[self._names.index(name)]] for name in names]
        offsets = None
        if isinstance(task, TakeTask):
            columns += [
                self._frame["_metadata.file_path"].alias(FILE),
                self._frame["_metadata.row_index"].alias(ORDINAL),
            ]
            before = np.cumsum([0, *(rows for *_, rows in self._stamps)])
            offsets = {stamp[0]: int(start) for stamp, start in zip(self._stamps, before, strict=False)}
        work = PartitionPass(task=task, names=names, schema=self.schema, layout=self._layout, offsets=offsets)
        frame = self._frame.select(*columns).mapInArrow(work, RESULT)
        rows = 0
        for packed, seen in self._collect(frame):
            total.absorb(packed)
            rows += seen
        return rows

    def _collect(self, frame: DataFrame) -> list[tuple[Packed, int]]:
        """The partitions' results; whoever is told of progress may cancel meanwhile, which stops the cluster's job."""
        tag = f"dpsynth-{uuid.uuid4().hex}"
        result: list[Any] = []

        def collect() -> None:
            try:
                self._session.addTag(tag)
                result.append(frame.toArrow())
            except Exception as error:  # noqa: BLE001  handed over to the caller
                result.append(error)

        worker = threading.Thread(target=collect, daemon=True)
        worker.start()
        pace = ReadingPace(self._watch, self.n)
        try:
            while worker.is_alive():
                worker.join(REPORT_SECONDS)
                pace.read(0)
        except BaseException:
            with contextlib.suppress(Exception):
                self._session.interruptTag(tag)
            raise
        with self._errors():
            if isinstance(result[0], Exception):
                raise result[0]
            table: pa.Table = result[0]
        return [(from_bytes(row["part"]), int(row["rows"])) for row in table.to_pylist()]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Spark's errors as ours: their texts may hold cells, so none is passed on."""
        try:
            yield
        except EngineError:
            raise
        except Exception as error:  # noqa: BLE001  Spark, gRPC and py4j have no common error
            raise EngineError(_reason(str(error))) from None


def _reason(text: str) -> str:
    if "No module named 'dpsynth_core" in text or "PYTHON_VERSION_MISMATCH" in text:
        return WORKER_LACKS_PACKAGE
    if "PATH_NOT_FOUND" in text or "TABLE_OR_VIEW_NOT_FOUND" in text or "does not exist" in text:
        return "There are no Parquet files at this location, or no such table; check its spelling."
    return DIED


def to_bytes(packed: Packed) -> bytes:
    """Arrays of numbers, end to end."""
    out = io.BytesIO()
    for array in packed:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def from_bytes(data: bytes) -> Packed:
    """The same back; nothing in it is ever executed."""
    source, found = io.BytesIO(data), []
    while source.tell() < len(data):
        found.append(np.load(source, allow_pickle=False))
    return found
