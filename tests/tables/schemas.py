"""Schemas and tables that several tests use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.table.schema import Schema

SMALL_SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "integer", "lower": 0, "upper": 4, "nullable": True, "public": True},
            {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
            {"name": "y", "kind": "continuous", "lower": 0, "upper": 1, "bins": 4, "public": True},
        ]
    }
)
"""Few enough cells to enumerate."""
MARKUP_SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "<b>x</b>", "kind": "integer", "lower": 0, "upper": 99, "unit": "<i>kg</i>", "public": True},
            {"name": "size", "kind": "continuous", "lower": 0, "upper": 1, "nullable": True, "public": True},
            {"name": "group", "kind": "categorical", "categories": ["<u>a</u>", "b"], "public": True},
            {"name": "day", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "bins": 12, "public": True},
        ]
    }
)
"""Names, a unit and categories that would be read as HTML if nobody escaped them."""


def mixed_schema(**changes: Any) -> Schema:
    columns = [
        {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "bins": 12, "public": True},
        {"name": "income", "kind": "continuous", "lower": 0, "upper": 1e5, "bins": 8, "decimals": 2, "public": True},
        {"name": "height", "kind": "continuous", "lower": 1, "upper": 2.5, "bins": 5, "nullable": True, "public": True},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
        {"name": "pain", "kind": "ordinal", "categories": ["no", "some", "much"], "nullable": True, "public": True},
        {"name": "smokes", "kind": "boolean", "public": True},
        {"name": "since", "kind": "date", "lower": "2020-01-01", "upper": "2021-12-31", "bins": 6, "public": True},
    ]
    return Schema.from_dict({"columns": columns, **changes})


def mixed_table(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 15, rows), 0, 120).round().astype(int)
    return pd.DataFrame(
        {
            "age": age,
            "income": np.round(age * 500 + rng.normal(0, 5_000, rows).clip(-1e4), 2).clip(0, 1e5),
            "height": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(1.7, 0.1, rows)),
            "sex": rng.choice(["f", "m"], rows),
            "pain": rng.choice(["no", "some", "much", None], rows),
            "smokes": rng.random(rows) < 0.3,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), unit="D"),
        }
    )
