"""The function that Spark sends to its workers.

It is sent by value and finds out whether this package is there before anything else; the task goes with it as bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from dpsynth_core.table.engines.spark_worker import PartitionWork, code_digest

RESULT = "problem string, count bigint, packed binary"
"""The columns of a partition's line, as Spark writes a schema."""

PartitionFunction: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
"""What ``mapInArrow`` calls with the batches of a partition."""


def partition_function(work: PartitionWork) -> PartitionFunction:
    """The function that Spark sends to its workers."""
    return _checked(pickle.dumps(work), code_digest())


def probing_function() -> PartitionFunction:
    """A function that reads nothing: whether a worker could do what will be asked of it."""
    return _checked(b"", code_digest())


def _checked(payload: bytes, digest: str) -> PartitionFunction:
    def on_worker(batches: Iterator[Any]) -> Iterator[Any]:
        # By value, so it must not refer to anything of this module, which a worker may not have.
        import pyarrow  # noqa: PLC0415

        try:
            from dpsynth_core.table.engines import spark_worker  # noqa: PLC0415
        except ImportError:
            problem, count, packed = "absent", 0, b""
        else:
            problem, count, packed = spark_worker.answer(payload, digest, batches)
        columns = {
            "problem": pyarrow.array([problem], pyarrow.string()),
            "count": pyarrow.array([count], pyarrow.int64()),
            "packed": pyarrow.array([packed], pyarrow.binary()),
        }
        yield pyarrow.RecordBatch.from_pydict(columns)

    return on_worker
