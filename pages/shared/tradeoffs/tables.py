"""The tables that trade-offs are shown on: public or simulated ones, never private rows."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_table
from pages.shared.session import Session

MINE, SIMULATED = "mine", "simulated"
SMALL = {"bivariate_normal": 1_000, "mixture": 2_000}
"""Rows of the examples that would be larger than a quick look needs."""
MOST_SIMULATED = 20_000
FIRST = "bivariate_normal"


@dataclass(frozen=True, kw_only=True, eq=False)
class Specimen:
    """A table that may be looked at as often as anybody likes."""

    mark: object
    """Equal for the same table with the same public facts."""
    table: pd.DataFrame
    """Its rows."""
    schema: Schema
    """Its public facts."""
    shared: bool
    """Whether every visitor has the same one, so that what is found on it may be kept for all."""


def offered(session: Session) -> dict[str, str]:
    """What may be looked at, and what it is called. A private table is never among them, at most its public shape."""
    examples = {key: f"{example.title}, {_rows(key):,} rows" for key, example in EXAMPLES.items()}
    first = {FIRST: examples.pop(FIRST)}
    if session.data is None or session.schema is None:
        return first | examples
    if session.mode == "teaching":
        return {MINE: "The table on the Data page"} | first | examples
    if session.schema.is_public:
        return first | {SIMULATED: "Simulated rows in the shape of your table"} | examples
    return first | examples


def chosen(session: Session) -> str:
    """The visitor's choice, as long as it is still offered; the table at hand before any choice."""
    keys = offered(session)
    return session.specimen if session.specimen in keys else next(iter(keys))


def specimen(session: Session) -> Specimen:
    """The table to look at."""
    key = chosen(session)
    if key == MINE and session.data is not None and session.schema is not None:
        table = session.data.table[list(session.schema.names)]
        return Specimen(mark=(session.data, session.schema), table=table, schema=session.schema, shared=False)
    if key == SIMULATED and session.data is not None and session.schema is not None:
        rows = min(len(session.data.table), MOST_SIMULATED)
        table = simulate_table(session.schema, rows, seed=1)
        return Specimen(mark=(SIMULATED, session.schema, rows), table=table, schema=session.schema, shared=False)
    example = EXAMPLES[key]
    return Specimen(mark=key, table=example.load(_rows(key)), schema=example.schema, shared=True)


def _rows(key: str) -> int:
    return SMALL.get(key, EXAMPLES[key].default_rows)
