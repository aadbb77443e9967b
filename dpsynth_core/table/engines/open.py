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
    spark_url: str | None = None,
    **options: Any,
) -> StreamedTable:
    """A private table whose rows are not brought into memory: for mechanisms it is like any other.

    Args:
        location: A Parquet file or a folder of them; for DuckDB also a text file or a database; for a Spark cluster as
            the cluster names it.
        schema: Public facts, with the declared layout of the file.
        engine: What reads the rows.
        table: Of a database.
        spark_url: ``local[CORES]`` to start Spark here, or a cluster's Spark Connect address, ``sc://HOST:PORT``.
        options: Those of ``DuckDBOptions`` or ``SparkOptions``, such as ``memory`` and ``spill``, a folder for what
            does not fit into memory.

    Raises:
        EngineError: The rows cannot be reached or read.
        SchemaError: A declared column is not there.
    """
    if engine not in get_args(Engine):
        raise ParameterError("engine", engine, allowed=", ".join(get_args(Engine)))
    if engine == "spark":
        if table is not None:
            raise ParameterError("table", table, allowed="nothing: Spark reads Parquet files")
        # Spark's machinery is loaded only by those who ask for it.
        from dpsynth_core.table.engines.spark_session import SparkOptions  # noqa: PLC0415
        from dpsynth_core.table.engines.spark_table import open_spark  # noqa: PLC0415

        chosen = options if spark_url is None else {"url": spark_url, **options}
        return open_spark(os.fspath(location), schema, options=SparkOptions(**chosen))
    if spark_url is not None:
        raise ParameterError("spark_url", "given", allowed="only with engine='spark'")
    return open_duckdb(os.fspath(location), schema, table=table, options=DuckDBOptions(**options))
