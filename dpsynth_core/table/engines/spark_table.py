"""Rows in Parquet files that Spark reads, on this machine or on a cluster.

Spark finds the rows and shares them out; what a cell means is for the codec, which runs in the Python workers, and
nothing but whole numbers comes back. A row's ordinal follows from its file's name and its index in the file, whichever
worker reads it, so a sample by position holds the rows that it holds in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import pyarrow as pa

from dpsynth_core.errors import EngineError, IntakeError
from dpsynth_core.table.engines.pass_control import PassControl, ReadingPace
from dpsynth_core.table.engines.row_batch import check_streamed
from dpsynth_core.table.engines.row_tasks import Accumulator, RowTask
from dpsynth_core.table.engines.snapshot import GLOB, Snapshot, file_changed, files_at
from dpsynth_core.table.engines.spark_function import RESULT, PartitionFunction, partition_function, probing_function
from dpsynth_core.table.engines.spark_session import SparkConnection, SparkOptions, connect
from dpsynth_core.table.engines.spark_worker import PartitionWork, absorb, check_workers
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.sniff import clean_names
from dpsynth_core.table.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HIDDEN = "_metadata"
"""The column in which Spark says where a row comes from."""
PROBES = 8
"""Tasks that ask whether the workers have what they need; a worker that joins later is asked in every pass."""
UNREADABLE = (
    "Spark cannot read this as a table of Parquet files: a file is missing, damaged or of another format, or the files "
    "do not have the same columns."
)


class SparkFiles(Protocol):
    """The files of a table, as they were when it was opened."""

    @property
    def paths(self) -> list[str]:
        """In any order."""

    @property
    def stamp(self) -> str:
        """The same as long as no file is replaced, changed, added or removed."""

    def check(self) -> None:
        """Raise if a file is gone or was changed."""


@dataclass(frozen=True, kw_only=True)
class ListedFiles:
    """Files as a cluster lists them: length and time of change."""

    location: str
    spark: SparkConnection
    control: PassControl
    files: dict[str, tuple[int, datetime]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files.update(self._list())

    @property
    def paths(self) -> list[str]:
        return list(self.files)

    @property
    def stamp(self) -> str:
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()

    def check(self) -> None:
        found = self._list()
        if found != self.files:
            # One that is new would be a part of the table as well, if it were opened now.
            raise EngineError(file_changed(min(set(found.items()) ^ set(self.files.items()))[0]))

    def _list(self) -> dict[str, tuple[int, datetime]]:
        def frame() -> DataFrame:
            reader = self.spark.session.read.format("binaryFile").option("recursiveFileLookup", "true")
            return reader.load(self.location).selectExpr("path", "length", "modificationTime")

        problem = f"Spark finds no files at {self.location!r}; check the spelling, and that the cluster may read them."
        listed = self.spark.collect(frame, self.control, problem=problem)
        columns = (listed.column(name).to_pylist() for name in ("path", "length", "modificationTime"))
        files = {path: (length, modified) for path, length, modified in zip(*columns, strict=True)}
        if len(files) > 1:
            files = {path: stamp for path, stamp in files.items() if path.endswith(".parquet")}
        if not files:
            raise EngineError(f"There are no Parquet files at {self.location!r}.")
        return files


def open_spark(location: str, schema: Schema, *, options: SparkOptions) -> SparkTable:
    """A Parquet file or a folder of them: of this machine, or as a cluster names it."""
    if schema.file is not None and schema.file.format != "parquet":
        raise IntakeError(f"Spark reads Parquet files, and this one is declared as {schema.file.format}.")
    control = PassControl()
    # Before Spark is started, which takes a while, for a file that is not there.
    here = Snapshot.of([os.path.abspath(each) for each in files_at(location)]) if options.is_local else None
    spark = connect(options)
    try:
        files = here or ListedFiles(location=_plain(location), spark=spark, control=control)
        return SparkTable(files, schema, spark=spark, control=control)
    except BaseException:
        spark.close()
        raise


def _plain(location: str) -> str:
    if GLOB & set(location):
        raise EngineError(f"The location {location!r} holds a sign that stands for a pattern of names; rename it.")
    return location


class SparkTable(StreamedTable):
    """Parquet files, read by Spark."""

    def __init__(self, files: SparkFiles, schema: Schema, *, spark: SparkConnection, control: PassControl) -> None:
        self._files, self._spark = files, spark
        types = self._types(control)
        self._stored = types.names
        names = clean_names(self._stored)
        for name, kind in zip(names, types.types, strict=True):
            check_streamed(name, kind)
            _check_unsigned(name, kind)
        if HIDDEN in self._stored:
            raise EngineError(f"Spark uses the name {HIDDEN!r} itself; rename that column.")
        layout = schema.file or FileLayout(format="parquet")
        super().__init__(schema, layout, names=names, read_as_declared=schema.file is not None)
        self._control = control
        self._check_workers()
        self._offsets = self._count()
        self.check_snapshot()

    @property
    def single_file(self) -> str | None:
        alone = isinstance(self._files, Snapshot) and len(self._files.paths) == 1
        return self._files.paths[0] if alone else None

    @property
    def stamp(self) -> str:
        return self._files.stamp

    def check_snapshot(self) -> None:
        self._files.check()

    def close(self) -> None:
        self._spark.close()

    def _types(self, control: PassControl) -> pa.Schema:
        """Of the columns, the same in every file: Spark would take one that a file lacks for missing cells."""
        found = [self._types_of(path, control) for path in self._files.paths]
        if any(each != found[0] for each in found):
            raise EngineError(UNREADABLE)
        return found[0]

    def _types_of(self, path: str, control: PassControl) -> pa.Schema:
        return self._spark.collect(lambda: self._frame([path]).limit(0), control, problem=UNREADABLE).schema

    def _frame(self, paths: Sequence[str]) -> DataFrame:
        # Listed anew for every pass. Folders named "x=1" do not become a column.
        reader = self._spark.session.read.option("recursiveFileLookup", "true").option("mergeSchema", "false")
        return reader.parquet(*paths)

    def _check_workers(self) -> None:
        """Find out now, before anything is charged, whether the workers can do what will be asked of them."""
        session = self._spark.session
        check_workers(self._answers(lambda: session.range(0, PROBES, 1, PROBES), probing_function()))

    def _count(self) -> dict[int, int]:
        """How many rows there are, and how many come before each file's."""

        def frame() -> DataFrame:
            paths = self._frame(self._files.paths).selectExpr(f"{HIDDEN}.file_path AS path")
            return paths.groupBy("path").count().selectExpr("path", "xxhash64(path) AS file", "count AS number")

        lines = self._spark.collect(frame, self._control, problem=UNREADABLE).to_pylist()
        self._n = sum(line["number"] for line in lines)
        if not self._n:
            raise EngineError("This table has no rows.")
        offsets, before = {}, 0
        for line in sorted(lines, key=lambda line: unquote(line["path"])):
            offsets[line["file"]] = before
            before += line["number"]
        if len(offsets) < len(lines):
            raise EngineError("Two files have names that Spark's hash cannot tell apart; rename one of them.")
        return offsets

    def _run(self, task: RowTask, total: Accumulator) -> int:
        names = task.columns or self._names[:1]
        stored = (self._stored[self._names.index(name)] for name in names)
        chosen = [f"{_quoted(name)} AS c{i}" for i, name in enumerate(stored)]
        if task.by_position:
            chosen += [f"xxhash64({HIDDEN}.file_path) AS file", f"{HIDDEN}.row_index AS row"]
        work = PartitionWork(
            task=task,
            names=tuple(names),
            schema=self.schema,
            layout=self._layout,
            offsets=self._offsets if task.by_position else None,
        )
        function = partition_function(work)
        return absorb(self._answers(lambda: self._frame(self._files.paths).selectExpr(*chosen), function), total)

    def _answers(self, frame: Callable[[], DataFrame], function: PartitionFunction) -> pa.Table:
        pace = ReadingPace(self._watch, self._n, self._control)
        # By the tasks that are done: no finer measure comes from a cluster.
        return self._spark.collect(
            lambda: frame().mapInArrow(function, RESULT),
            self._control,
            told=lambda share: pace.read(int(share * self._n)),
        )


def _check_unsigned(name: str, kind: pa.DataType) -> None:
    """Refuse what Spark makes of unsigned 64-bit numbers: as labels and in fingerprints they would be others."""
    if kind == pa.decimal128(20, 0):
        raise IntakeError(
            f"Column {name!r} holds unsigned 64-bit numbers or decimals of 20 digits, which Spark does not tell apart; "
            "store it as text, or as signed or floating numbers."
        )


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
