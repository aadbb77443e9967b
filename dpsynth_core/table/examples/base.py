"""What an example data set is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.errors import ParameterError
from dpsynth_core.table.schema import Schema

MAX_ROWS = 1_000_000
DEFAULT_SEED = 2024


@dataclass(frozen=True, kw_only=True)
class Example:
    """A table anybody may look at, with a schema that was not read from it.

    Either simulated (any number of rows, from a seed) or a published table of fixed size.
    """

    key: str
    title: str
    summary: str
    """One or two sentences: what the rows are and what the table is good for."""
    source: str
    """Where the simulator or the table comes from, for citation."""
    facts: dict[str, Any]
    """The schema as plain values, with the origin of each fact."""
    default_rows: int
    """How many rows to simulate, or how many the table has."""
    few_rows: int | None = None
    """So few that the same settings no longer give a good synthetic table, for comparison; simulators only."""
    simulate: Callable[[int, np.random.Generator], pd.DataFrame] | None = None
    """Draws that many rows; None for a published table."""
    read: Callable[[], pd.DataFrame] | None = None
    """Reads the published table; None for a simulator."""

    @property
    def is_simulated(self) -> bool:
        """Whether the number of rows can be chosen."""
        return self.simulate is not None

    @property
    def schema(self) -> Schema:
        """The public facts."""
        return Schema.from_dict(self.facts)

    def load(self, rows: int | None = None, seed: int = DEFAULT_SEED) -> pd.DataFrame:
        """The table; ``rows`` and ``seed`` matter only to a simulator."""
        if self.simulate is None:
            assert self.read is not None  # noqa: S101  an example has one or the other
            return self.read()
        wanted = self.default_rows if rows is None else rows
        if not 1 <= wanted <= MAX_ROWS:
            raise ParameterError("rows", wanted, allowed=f"a whole number from 1 to {MAX_ROWS}")
        return self.simulate(wanted, np.random.default_rng(seed))


def numeric(name: str, lower: float, upper: float, *, origin: str, **more: Any) -> dict[str, Any]:
    """A public continuous column as plain values; ``more`` may hold bins, decimals, unit or another kind."""
    return {
        "name": name,
        "kind": "continuous",
        "lower": lower,
        "upper": upper,
        **more,
        "public": True,
        "origin": origin,
    }


def labelled(name: str, categories: list[str], *, origin: str) -> dict[str, Any]:
    """A public categorical column as plain values."""
    return {"name": name, "kind": "categorical", "categories": categories, "public": True, "origin": origin}
