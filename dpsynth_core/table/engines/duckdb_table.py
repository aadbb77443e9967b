"""Rows in files or in a database on this machine, read by DuckDB as Arrow batches.

DuckDB finds the rows and nothing else: what a cell means is for the codec, and counting is done here. Nothing is
downloaded, and nothing is written unless a folder for it is stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpsynth_core.errors import EngineError, IntakeError
from dpsynth_core.table.column import Column
from dpsynth_core.table.engines.pass_control import ReadingPace
from dpsynth_core.table.engines.row_batch import RowBatch, cells_of, check_streamed
from dpsynth_core.table.engines.row_tasks import Accumulator, RowTask
from dpsynth_core.table.engines.snapshot import Snapshot, files_at
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.sniff import clean_names
from dpsynth_core.table.schema import Schema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

BATCH_ROWS = 65_536
"""Rows of a batch: enough that the work on it outweighs the work around it, few enough to stay in a cache."""
DAMAGED = "The file is damaged, was cut short, or is not what its name says; export it again."
PARQUET_MAGIC, DUCKDB_MAGIC, EXCEL_MAGIC = b"PAR1", b"DUCK", b"PK\x03\x04"


@dataclass(frozen=True, kw_only=True)
class DuckDBOptions:
    """What DuckDB may take of the machine."""

    memory: str | None = None
    """Most memory, such as "2GB"; None leaves it to DuckDB. Reading needs little."""
    threads: int | None = None
    spill: str | None = None
    """A folder for what does not fit into memory. None: nothing is written, and a query that needs more fails."""
    batch_rows: int = BATCH_ROWS

    def settings(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "preserve_insertion_order": True,
            "temp_directory": self.spill or "",
        }
        if self.memory is not None:
            chosen["memory_limit"] = self.memory
        if self.threads is not None:
            chosen["threads"] = self.threads
        return chosen


def open_duckdb(location: str, schema: Schema | None, *, table: str | None, options: DuckDBOptions) -> StreamedTable:
    """A Parquet file, a folder of them, a text file, or a table of a DuckDB database.

    Without a schema nothing is declared yet: cells can be looked at, and no guarantee can hold.
    """
    paths = files_at(location)
    snapshot = Snapshot.of(paths)
    start = _start_of(paths[0])
    if start[8:12] == DUCKDB_MAGIC:
        if table is None:
            raise EngineError("This is a DuckDB database; say which of its tables with 'table'.")
        return DuckDBTable(snapshot, schema, table=table, options=options)
    if table is not None:
        raise EngineError("Only a DuckDB database has tables to choose from; leave 'table' out for files.")
    if start.startswith(PARQUET_MAGIC):
        if schema is not None and schema.file is not None and schema.file.format != "parquet":
            raise IntakeError(
                f"This file is declared as {schema.file.format} but looks like parquet; correct its layout."
            )
        return DuckDBTable(snapshot, schema, table=None, options=options)
    if start.startswith(EXCEL_MAGIC):
        raise EngineError("Excel files are read in memory only; save the sheet as CSV or Parquet.")
    from dpsynth_core.table.engines.text_table import NO_LAYOUT, TextTable  # noqa: PLC0415  loads the compiler

    if schema is None:
        raise EngineError(NO_LAYOUT)
    return TextTable(snapshot, schema)


class DuckDBTable(StreamedTable):
    """Parquet files, or one table of a database."""

    def __init__(self, snapshot: Snapshot, schema: Schema | None, *, table: str | None, options: DuckDBOptions) -> None:
        import duckdb  # noqa: PLC0415  only where it is needed

        self._snapshot, self._options, self._table = snapshot, options, table
        self._error: type[Exception] = duckdb.Error
        database = ":memory:" if table is None else snapshot.paths[0]
        try:
            self._connection = duckdb.connect(database, read_only=table is not None, config=options.settings())
            stored = self._types()
        except duckdb.Error:
            raise EngineError(self._unreadable()) from None
        self._stored = list(stored)
        names = clean_names(self._stored)
        for name, kind in zip(names, stored.values(), strict=True):
            check_streamed(name, kind)
        schema = schema or undeclared(names)
        layout = schema.file or FileLayout(format="parquet")
        declared = schema.file is not None if table is None else True
        super().__init__(schema, layout, names=names, read_as_declared=declared)
        self._count()

    def _unreadable(self) -> str:
        if self._table is None:
            return DAMAGED
        return f"The database has no table {self._table!r} that can be read, or another program is writing to it."

    def _count(self) -> None:
        try:
            (row,) = self._relation(self._connection.cursor(), "count(*)").fetchall()
        except self._error:
            raise EngineError(self._unreadable()) from None
        self._n = int(row[0])
        if not self._n:
            raise EngineError("This table has no rows.")
        self.check_snapshot()

    def _relation(self, cursor: DuckDBPyConnection, what: str) -> DuckDBPyRelation:
        if self._table is not None:
            name = ".".join(map(_quoted, self._table.split(".")))
            return cursor.sql(f"SELECT {what} FROM {name}")  # noqa: S608  names are quoted
        # The name of a folder such as "age=7" would otherwise stand in for the cells of a column.
        files = "read_parquet(?, hive_partitioning = false)"
        return cursor.sql(f"SELECT {what} FROM {files}", params=[self._snapshot.paths])  # noqa: S608

    def _types(self) -> dict[str, pa.DataType]:
        cursor = self._connection.cursor()
        reader = self._relation(cursor, "*").to_arrow_reader(1)
        try:
            return dict(zip(reader.schema.names, reader.schema.types, strict=True))
        finally:
            reader.close()
            cursor.close()

    @property
    def single_file(self) -> str | None:
        alone = self._table is None and len(self._snapshot.files) == 1
        return self._snapshot.paths[0] if alone else None

    @property
    def stamp(self) -> str:
        return self._snapshot.stamp

    def check_snapshot(self) -> None:
        self._snapshot.check()

    def _run(self, task: RowTask, total: Accumulator) -> int:
        pace, rows = ReadingPace(self._watch, self.n, self._control), 0
        for batch in self.batches(task.columns):
            total.add(batch)
            rows += batch.n
            pace.read(rows)
        return rows

    def batches(self, columns: Sequence[str]) -> Iterator[RowBatch]:
        """The rows in order, with the cells of these columns."""
        names = columns or self._names[:1]
        chosen = ", ".join(_quoted(self._stored[self._names.index(name)]) for name in names)
        cursor = self._connection.cursor()
        first = 0
        try:
            with self._control.stopped_by(cursor.interrupt):
                reader = self._relation(cursor, chosen).to_arrow_reader(self._options.batch_rows)
                for batch in reader:
                    yield RowBatch(cells=cells_of(batch, names), schema=self.schema, layout=self._layout, first=first)
                    first += batch.num_rows
        except (self._error, pa.ArrowException):
            self._control.check()
            self.check_snapshot()  # says so if that is the reason
            raise EngineError(self._unreadable()) from None
        finally:
            # Whoever stops in the middle must not leave a query running.
            cursor.interrupt()
            cursor.close()

    def close(self) -> None:
        self._connection.close()


def undeclared(names: Sequence[str]) -> Schema:
    """Columns of which nothing is known but their names: whatever is made with it is void."""
    return Schema(columns=tuple(Column(name=name, kind="boolean") for name in names))


def _start_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(12)
    except OSError:
        raise EngineError(f"The file {path!r} cannot be opened; check that you are allowed to read it.") from None


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
