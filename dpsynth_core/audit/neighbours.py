"""Tables that differ in one row, chosen so that a mistake hurts.

``HURTFUL`` is for replays: rows that are alone, outside, missing or not numbers at all. ``TOYS`` are so small that
every outcome can be followed. ``ATTACKED`` are what an attacker would choose: everything else is known and alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class NeighbourPair:
    name: str
    """What is special about the row."""
    schema: Schema
    first: pd.DataFrame
    second: pd.DataFrame
    row: int
    close: bool = True
    """Whether the tables differ in this row only; if not, they have nothing in common but their public facts."""

    @classmethod
    def replacing(
        cls, name: str, schema: Schema, table: pd.DataFrame, row: Mapping[str, Any], at: int = 0
    ) -> NeighbourPair:
        columns = {c: [*table[c].iloc[:at], row[c], *table[c].iloc[at + 1 :]] for c in schema.names}
        return cls(name=name, schema=schema, first=table, second=pd.DataFrame(columns), row=at)

    @cached_property
    def tables(self) -> tuple[PrivateTable, PrivateTable]:
        return PrivateTable(self.first, self.schema), PrivateTable(self.second, self.schema)

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def turned(self) -> NeighbourPair:
        """The other way round."""
        return replace(self, first=self.second, second=self.first)


def _schema(*columns: dict[str, Any]) -> Schema:
    return Schema.from_dict({"columns": [{"public": True, **column} for column in columns]})


MIXED = _schema(
    {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "bins": 5},
    {"name": "sort", "kind": "categorical", "categories": ["a", "b", "c"]},
    {"name": "pay", "kind": "continuous", "lower": 0, "upper": 10, "bins": 4, "nullable": True},
)
NUMBERS = _schema(
    {"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "bins": 8},
    {"name": "y", "kind": "continuous", "lower": -1, "upper": 1, "bins": 8},
)
LABELS = _schema(
    {"name": "sort", "kind": "categorical", "categories": ["a", "b", "c"]},
    {"name": "age", "kind": "integer", "lower": 0, "upper": 6, "nullable": True},
)
"""Behind one free level the third label cannot be halved, so a tree passes its box on before the first question."""


def _mixed_rows() -> pd.DataFrame:
    generator = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": generator.integers(20, 60, 60),
            "sort": ["c", *generator.choice(["a", "b"], 59)],  # the only row of its category comes first
            "pay": generator.normal(3, 0.5, 60),
        }
    )


def _number_rows() -> pd.DataFrame:
    generator = np.random.default_rng(2)
    return pd.DataFrame({"x": generator.beta(2, 9, 80), "y": generator.normal(0, 0.1, 80)})


def _hurtful() -> Iterator[NeighbourPair]:
    mixed, numbers = _mixed_rows(), _number_rows()
    empty = {"age": 99, "sort": "b", "pay": 10.0}
    yield NeighbourPair.replacing("into an empty cell", MIXED, mixed, empty, at=5)
    yield NeighbourPair.replacing("the only row of a category", MIXED, mixed, {"age": 30, "sort": "a", "pay": 3.0})
    strange: dict[str, Any] = {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf}
    strange |= {"1e9": 1e9, "-1e9": -1e9, "blank": ""}
    for place, (name, value) in enumerate(strange.items()):
        if place % 2:
            yield NeighbourPair.replacing(name, MIXED, mixed, {"age": value, "sort": "?", "pay": value}, at=7)
        else:
            yield NeighbourPair.replacing(f"{name}, no missing level", NUMBERS, numbers, {"x": value, "y": value}, at=7)
    same = pd.DataFrame({"age": [40] * 50, "sort": ["b"] * 50, "pay": [5.0] * 50})
    yield NeighbourPair.replacing("all alike but one", MIXED, same, {"age": 0, "sort": "c", "pay": np.nan})
    corner = pd.DataFrame({"x": [0.001] * 60, "y": [-0.999] * 60})
    yield NeighbourPair.replacing("all in a corner but one", NUMBERS, corner, {"x": 0.999, "y": 0.999})
    passed = pd.DataFrame({"sort": ["c", *["a"] * 39], "age": [3] * 40})
    yield NeighbourPair.replacing("the only row of a box that is passed on", LABELS, passed, {"sort": "a", "age": 3})
    yield NeighbourPair.replacing("a single row", NUMBERS, pd.DataFrame({"x": [0.3], "y": [0.0]}), {"x": 0.9, "y": 0.9})


THREE = _schema({"name": "x", "kind": "categorical", "categories": ["a", "b", "c"]})
FOUR = _schema({"name": "x", "kind": "integer", "lower": 0, "upper": 3})
EIGHT = _schema({"name": "x", "kind": "integer", "lower": 0, "upper": 7})
MISSING = _schema({"name": "x", "kind": "integer", "lower": 0, "upper": 1, "nullable": True})


def _toy(schema: Schema, values: Sequence[Any], other: Any) -> NeighbourPair:
    name = f"{', '.join(map(str, values))} with the first one {other}"
    return NeighbourPair.replacing(name, schema, pd.DataFrame({"x": list(values)}), {"x": other})


HURTFUL = tuple(_hurtful())
TOYS = (
    _toy(THREE, ["a", "a", "a"], "c"),  # into an empty cell
    _toy(THREE, ["c", "a", "b"], "a"),  # out of a cell that is then empty
    _toy(FOUR, [3, 0, 0, 0, 0], 0),
    _toy(FOUR, [0, 1, 2], 3),
    _toy(MISSING, [None, 0.0, 0.0], 1.0),
)
LARGER_TOYS = (_toy(EIGHT, [0, 0, 0, 0, 0, 0], 7), _toy(EIGHT, [5, 5, 5, 1], 2))
"""For a deep audit: trees have hundreds of outcomes on them."""
TWO_AXES = _schema(
    {"name": "x", "kind": "categorical", "categories": ["a", "b", "c"]},
    {"name": "y", "kind": "integer", "lower": 0, "upper": 4, "nullable": True},
)
_ALIKE = pd.DataFrame({"x": ["a"] * 20, "y": [1.0] * 20})
ATTACKED = (
    NeighbourPair.replacing("the only row of a label", TWO_AXES, _ALIKE, {"x": "c", "y": 1.0}),
    NeighbourPair.replacing("the only missing value", TWO_AXES, _ALIKE, {"x": "b", "y": np.nan}),
)
