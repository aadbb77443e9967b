"""Opening a table whose rows stay where they are."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias, get_args

from dpsynth_core.errors import ParameterError
from dpsynth_core.table.engines.duckdb_table import DuckDBOptions, open_duckdb
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.schema import Schema

Engine: TypeAlias = Literal["duckdb", "spark"]


def open_table(
    location: str | os.PathLike[str],
    schema: Schema,
    *,
    engine: Engine = "duckdb",
    table: str | None = None,
    url: str | None = None,
    **options: Any,
) -> StreamedTable:
    """A private table whose rows are not brought into memory: for mechanisms it is like any other.

    Args:
        location: A Parquet file or a folder of them, a text file, or a DuckDB database; for Spark anything that it
            reads as Parquet.
        schema: Public facts, with the declared layout of the file.
        engine: What reads the rows.
        table: Of a database.
        url: Of a Spark cluster: "sc://host:15002" for Spark Connect, or a master such as "local[2]".
        options: For DuckDB ``memory``, ``threads`` and ``spill``, a folder for what does not fit into memory.

    Raises:
        EngineError: The rows cannot be reached or read.
        SchemaError: A declared column is not there.
    """
    if engine not in get_args(Engine):
        raise ParameterError("engine", engine, allowed=", ".join(get_args(Engine)))
    if engine == "spark":
        from dpsynth_core.table.engines.spark_table import open_spark  # noqa: PLC0415  an extra

        return open_spark(os.fspath(location), schema, table=table, url=url)
    if url is not None:
        raise ParameterError("url", url, allowed="nothing for the engine 'duckdb'", remedy="Use engine='spark'.")
    return open_duckdb(os.fspath(location), schema, table=table, options=DuckDBOptions(**options))
