"""Outcomes to publish, shared by the tests of bundle, review and command line."""

from __future__ import annotations

from typing import Any

import pandas as pd

import dpsynth_core as dp
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.schema import Schema
from tests.tables.schemas import mixed_schema, mixed_table

HOSTILE = "=<script>alert(1)</script> [x](javascript:y) `|**b** & ünï"
"""A column name that tries to be a formula, HTML, a link and a table cell at once."""


def outcome_of(table: pd.DataFrame, schema: Schema, key: str = "kd_tree", **order: Any) -> RunResult:
    return execute(table, schema, RunConfig(mechanism=dp.MECHANISMS[key](), **{"epsilon": "1", **order}))


def mixed_outcome(**order: Any) -> RunResult:
    return outcome_of(mixed_table(), mixed_schema(), **order)


def hostile_outcome() -> tuple[pd.DataFrame, RunResult]:
    schema = Schema.from_dict(
        {
            "columns": [
                {"name": HOSTILE, "kind": "categorical", "categories": ["=1+1", "<b>x</b>"], "public": True},
                {"name": "</script>", "kind": "integer", "lower": 0, "upper": 9, "public": True},
            ]
        }
    )
    table = pd.DataFrame({HOSTILE: ["=1+1", "<b>x</b>"] * 50, "</script>": list(range(10)) * 10})
    return table, outcome_of(table, schema)
