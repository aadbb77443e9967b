"""The tables that trade-offs are shown on: public or simulated ones, never private rows."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_table
from pages.shared.session import Session

MINE, SIMULATED = "mine", "simulated"
SMALL = {"blood_pressure": 2_000, "bivariate_normal": 1_000, "mixture": 2_000}
"""Rows of the examples that would be larger than a quick look needs."""
MAX_SIMULATED = 20_000
FIRST = "bivariate_normal"


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicTable:
    """A table that may be looked at as often as anybody likes."""

    id: object
    """Equal for the same table with the same public facts."""
    table: pd.DataFrame
    schema: Schema
    shared: bool
    """Whether every visitor has the same one, so that results on it can be kept for all."""


def offered(session: Session) -> dict[str, str]:
    """The tables to choose from, and what they are called. Of a private table, at most its public shape is offered."""
    examples = {key: f"{example.title}, {_rows(key):,} rows" for key, example in EXAMPLES.items()}
    first = {FIRST: examples.pop(FIRST)}
    if session.schema is None:
        return first | examples
    if session.mode == "teaching":
        data = session.work.data
        some = "" if data.complete else f", {len(data.table):,} of its {data.n:,} rows"
        return {MINE: f"The table on the Data page{some}"} | first | examples
    if session.schema.is_public:
        return first | {SIMULATED: "Simulated rows in the shape of your table"} | examples
    return first | examples


def chosen(session: Session) -> str:
    """The visitor's choice, as long as it is still offered; the table at hand before any choice."""
    keys = offered(session)
    return session.tradeoffs.table if session.tradeoffs.table in keys else next(iter(keys))


def choose_comparison(session: Session) -> None:
    """Go to the comparison of epsilons, on what comes nearest to the table at hand: itself, or its public shape."""
    near = [key for key in (MINE, SIMULATED) if key in offered(session)]
    session.tradeoffs.section = "sweep"
    session.tradeoffs.table = near[0] if near else session.tradeoffs.table


def public_table(session: Session) -> PublicTable:
    """The table to look at."""
    key, work, schema = chosen(session), session.current, session.schema
    if key == MINE and work is not None and schema is not None:
        table = work.data.table[list(schema.names)]
        return PublicTable(id=(work.data, schema), table=table, schema=schema, shared=False)
    if key == SIMULATED and work is not None and schema is not None:
        rows = min(work.n, MAX_SIMULATED)
        table = simulate_table(schema, rows, seed=1)
        return PublicTable(id=(SIMULATED, schema, rows), table=table, schema=schema, shared=False)
    example = EXAMPLES[key]
    return PublicTable(id=key, table=example.load(_rows(key)), schema=example.schema, shared=True)


def _rows(key: str) -> int:
    return SMALL.get(key, EXAMPLES[key].default_rows)
