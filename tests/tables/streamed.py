"""A small table of every kind of column, in memory and as files for the engines."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsynth_core as dp
from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.private_rows import RowsAtHand

ROWS = 48
SCHEMA = dp.Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0, "upper": 10, "bins": 6, "public": True, "nullable": True},
            {"name": "k", "kind": "integer", "lower": 0, "upper": 300, "bins": 5, "public": True},
            {"name": "s", "kind": "categorical", "categories": ["a", "b", "c"], "public": True, "nullable": True},
            {"name": "d", "kind": "date", "lower": "2020-01-01", "upper": "2021-12-31", "bins": 4, "public": True},
            {"name": "b", "kind": "boolean", "public": True},
        ],
        "file": {"format": "parquet"},
    }
)
TEXT_SCHEMA = replace(SCHEMA, file=FileLayout())


def mixed_frame(rows: int = ROWS, seed: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(5, 3, rows)),
            "k": rng.integers(-5, 320, rows),
            "s": rng.choice(["a", "b", "c", "undeclared", None], rows),
            "d": pd.Timestamp("2019-12-25") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "b": rng.random(rows) < 0.3,
        }
    )


def parquet_file(folder: Path, frame: pd.DataFrame | None = None, **options: Any) -> Path:
    path = folder / "rows.parquet"
    (mixed_frame() if frame is None else frame).to_parquet(path, **options)
    return path


def in_memory(path: Path, schema: dp.Schema = SCHEMA) -> dp.PrivateTable:
    return dp.PrivateTable(dp.read_table(path, schema), schema)


def quick(key: str) -> tuple[Mechanism, str]:
    """A mechanism with settings that take little time, and its delta."""
    kind = MECHANISMS[key]
    settings: dict[str, dict[str, Any]] = {
        "pmse": {"parents": 1},
        "dp_gan": {"rows_per_critic": 5, "rounds": 2, "batch": 2, "hidden": 4, "critic_steps": 1},
        "balog_points": {"points": 4},
        "balog_features": {"points": 2, "features": 8},
        "dp_merf": {"features": 8, "training_steps": 2, "batch": 4, "hidden": 4},
    }
    mechanism = kind(**settings[key]) if key in settings else kind.suggest(SCHEMA, ROWS, 2)
    return mechanism, "1e-6" if kind.needs_delta else "0"


def folder_of_files(folder: Path, frame: pd.DataFrame) -> Path:
    """The rows in files whose names put them in order, cut into groups of a few rows."""
    place = folder / "parts"
    (place / "deep").mkdir(parents=True)
    edges = {"1 a%20.parquet": slice(0, 9), "1 b.parquet": slice(9, 30), "deep/x=7.parquet": slice(30, None)}
    for name, rows in edges.items():
        frame[rows].to_parquet(place / name, row_group_size=5)
    return place


@dataclass(frozen=True)
class SlowSum:
    """Counts rows, taking its time over every batch."""

    seconds: float
    columns: tuple[str, ...] = ("x",)

    def total(self, rows: RowsAtHand) -> IntArray:
        time.sleep(self.seconds)
        return np.array([rows.n])
