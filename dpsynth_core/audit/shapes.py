"""Tables of every shape, in pairs that differ in one row or in every row.

With every sampler's output frozen, a run may not notice *which* table it runs on, neighbour or not: what it does is a
function of what was drawn. So tables that have nothing in common but their public facts show at once whatever is
decided by raw rows, which between neighbours shows only where one row tips the scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.neighbours import NeighbourPair
from dpsynth_core.table.column import Column
from dpsynth_core.table.schema import Schema

STRANGE = ("", "?", None, float("nan"), float("inf"), -1e300, "1e400", True, "9999-99-99")
"""What no column declares."""
KINDS: dict[str, dict[str, Any]] = {
    "continuous": {"kind": "continuous", "lower": 0, "upper": 10, "bins": 6},
    "integer": {"kind": "integer", "lower": -3, "upper": 40, "bins": 5},
    "categorical": {"kind": "categorical", "categories": ["a", "b", "c", "d"]},
    "ordinal": {"kind": "ordinal", "categories": [1, 2, 3], "nullable": True},
    "boolean": {"kind": "boolean"},
    "date": {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "bins": 4},
    "with other": {"kind": "categorical", "categories": ["x", "y"], "other": "else"},
    "may be missing": {"kind": "continuous", "lower": -1, "upper": 1, "bins": 4, "nullable": True},
}
"""A column of every kind, by what is special about it."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Which columns, how many rows, how much epsilon, and how many rows one person may have."""

    columns: tuple[str, ...]
    rows: int
    epsilon: str = "0.7"
    rows_per_person: int = 1

    @property
    def name(self) -> str:
        """For people: everything that is not as usual."""
        person = f", {self.rows_per_person} rows a person" if self.rows_per_person > 1 else ""
        return f"{self.rows:,} rows of {' + '.join(self.columns)}, epsilon {self.epsilon}{person}"

    @property
    def schema(self) -> Schema:
        """The columns' public facts."""
        columns = [{"name": f"c{i}", "public": True, **KINDS[kind]} for i, kind in enumerate(self.columns)]
        return Schema.from_dict({"columns": columns, "rows_per_person": self.rows_per_person})

    def far(self, seed: int, *, strange: bool = True) -> NeighbourPair:
        """Two tables with nothing in common: opposite ends, opposite relations, and strange cells in one of them.

        Without those, a smallest or largest value is that of the rows and not of a strange cell.
        """
        generator, schema = np.random.default_rng(seed), self.schema
        first = _table(schema, generator.beta(1, 8, self.rows), falling=False, generator=generator)
        second = _table(schema, generator.beta(6, 1, self.rows), falling=True, generator=generator)
        for name in schema.names if strange else ():
            cells = second[name].tolist()
            for row in range(0, self.rows, 9):
                cells[row] = STRANGE[int(generator.integers(len(STRANGE)))]
            second[name] = pd.Series(cells, dtype=object)
        name = f"far apart{'' if strange else ', all cells as declared'}: {self.name}"
        return NeighbourPair(name=name, schema=schema, first=first, second=second, row=0, close=False)

    def near(self, seed: int) -> NeighbourPair:
        """Two tables that differ in one row: from one end of every column to the other, or to a strange cell."""
        generator, schema = np.random.default_rng(seed), self.schema
        table = _table(schema, generator.random(self.rows), falling=bool(seed % 2), generator=generator)
        end = float(generator.integers(2))
        at, row = int(generator.integers(self.rows)), {}
        for column in schema:
            strange = generator.random() < 1 / 4
            row[column.name] = STRANGE[int(generator.integers(len(STRANGE)))] if strange else cell_at(column, end)
            table.at[at, column.name] = cell_at(column, 1 - end)
        return NeighbourPair.replacing(f"neighbours: {self.name}", schema, table, row, at=at)


def _table(schema: Schema, shares: FloatArray, *, falling: bool, generator: np.random.Generator) -> pd.DataFrame:
    """Columns that rise with a common share, or every other one falls; a little of each is its own."""
    columns = {}
    for place, column in enumerate(schema):
        along = 1 - shares if falling and place % 2 else shares
        mixed = np.where(generator.random(len(shares)) < 1 / 5, generator.random(len(shares)), along)
        columns[column.name] = pd.Series([cell_at(column, share) for share in mixed], dtype=object)
    return pd.DataFrame(columns)


def cell_at(column: Column, share: float) -> Any:
    """The value at that share of the column's range or labels."""
    if column.is_numeric and column.points is None:
        low, high = column.position_range
        return low + share * (high - low)
    if column.lattice is not None:
        low_step, high_step = column.lattice
        step = low_step + round(share * (high_step - low_step))
        return step if column.kind == "integer" else pd.Timestamp.fromordinal(step).date().isoformat()
    labels = (False, True) if column.kind == "boolean" else (column.categories or ())
    return labels[min(int(share * len(labels)), len(labels) - 1)]


EVERY = tuple(KINDS)
QUICK_SHAPES = (
    Shape(columns=("continuous",), rows=30),
    Shape(columns=("continuous", "integer", "may be missing"), rows=20),
    Shape(columns=("date", "boolean", "with other", "ordinal"), rows=25, rows_per_person=3),
    Shape(columns=("categorical", "continuous", "integer", "date", "boolean", "may be missing"), rows=40, epsilon="10"),
    Shape(columns=("integer", "categorical"), rows=1, epsilon="0.01"),
    Shape(columns=("integer", "with other", "may be missing"), rows=5_000),
)
"""What a quick audit has time for: every kind of column, one row and many, little and much epsilon."""


def random_shapes(number: int, seed: int) -> Iterator[Shape]:
    """For a deep audit: one to six columns, one to 5,000 rows, epsilon 0.01 to 10, a person with several rows."""
    generator = np.random.default_rng(seed)
    for _ in range(number):
        kinds = generator.choice(EVERY, int(generator.integers(1, 7)))
        rows = int(generator.choice([1, 2, 7, 7, 30, 30, 30, 100, 100, 300, 1_200, 5_000]))
        yield Shape(
            columns=tuple(map(str, kinds)),
            rows=rows,
            epsilon=str(generator.choice(["0.01", "0.1", "1", "10"])),
            rows_per_person=int(generator.choice([1, 1, 3])),
        )
