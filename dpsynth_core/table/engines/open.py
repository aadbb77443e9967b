"""Opening a table whose rows stay where they are."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias, get_args

from dpsynth_core.errors import ParameterError
from dpsynth_core.table.engines.duckdb_table import DuckDBOptions, open_duckdb
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.schema import Schema

Engine: TypeAlias = Literal["duckdb"]


def open_table(
    location: str | os.PathLike[str],
    schema: Schema,
    *,
    engine: Engine = "duckdb",
    table: str | None = None,
    **options: Any,
) -> StreamedTable:
    """A private table whose rows are not brought into memory: for mechanisms it is like any other.

    Args:
        location: A Parquet file or a folder of them, a text file, or a DuckDB database.
        schema: Public facts, with the declared layout of the file.
        engine: What reads the rows.
        table: Of a database.
        options: ``memory``, ``threads`` and ``spill``, a folder for what does not fit into memory.

    Raises:
        EngineError: The rows cannot be reached or read.
        SchemaError: A declared column is not there.
    """
    if engine not in get_args(Engine):
        raise ParameterError("engine", engine, allowed=", ".join(get_args(Engine)))
    return open_duckdb(os.fspath(location), schema, table=table, options=DuckDBOptions(**options))
