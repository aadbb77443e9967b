"""The gate before the release bundle: it admits what may be published, by type, and nothing else.

It knows what to let in rather than what to keep out, so that a diagnostic written tomorrow stays outside without
anybody having to remember it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import date
from fractions import Fraction
from itertools import combinations

import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.mechanisms import Mechanism
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee
from dpsynth_core.review.publication import Publication
from dpsynth_core.runs.configuration import RunConfig, RunResult
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.selection import PrivateSelection
from dpsynth_core.table.column import Column
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

_PLAIN = frozenset({str, int, float, bool, Fraction, date, type(None)})
_RECORDS = (
    *(RunConfig, PrivateSelection, Mechanism, Schema, Column, FileLayout, Guarantee, Cost, Budget),
    *(PaidEstimate, PaidComparison, Publication, ExpectedError),
)
UNREAD = frozenset({"charges", "leaves", "seconds"})
"""Parts of a run that never enter a bundle. Its duration depends on the rows, and nobody has paid for it."""


@dataclass(frozen=True, kw_only=True)
class PublishableRelease:
    """What has passed the gate: the only thing that files of a bundle are written from."""

    config: RunConfig
    schema: Schema
    """Public facts, each declared public; without the name of who declared them."""
    tables: tuple[pd.DataFrame, ...]
    """Synthetic rows, read anew through the schema: its columns, its domain, nothing attached."""
    guarantee: Guarantee
    """What may be claimed for all tables together."""
    publication: Publication
    expected_error: ExpectedError | None
    """What the rows themselves and public facts say about their error."""
    comparisons: tuple[PaidComparison, ...]
    """Private tests that are published with the tables, and are in the claim."""
    rows_in_all: int | None = None
    """Of a table that is too long to be held, of which ``tables`` has the first rows only."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Rows of each table."""
        return tuple(map(len, self.tables)) if self.rows_in_all is None else (self.rows_in_all,)


def admit(outcome: RunResult, publication: Publication) -> PublishableRelease:
    """Admit a run if it may be published, and take nothing from it but what the bundle needs.

    Raises:
        DPSynthError: Something in it is not for release, or it is not private.
    """
    if type(outcome) is not RunResult or type(publication) is not Publication:
        wrong = outcome if type(outcome) is not RunResult else publication
        raise _refused(type(wrong).__name__)
    for part in fields(outcome):
        if part.name not in UNREAD | {"tables"}:
            _check(getattr(outcome, part.name))
    _check(publication)
    check_claim(outcome)
    _check_expected_error(outcome)
    tables = tuple(admit_rows(table, outcome.schema) for table in _listed(outcome.tables))
    # Who answers for the facts is between the staff and the reviewer; names of people are not published.
    return PublishableRelease(
        config=outcome.config,
        schema=outcome.schema.unsigned(),
        tables=tables,
        guarantee=outcome.guarantee,
        publication=publication,
        comparisons=outcome.comparisons,
        expected_error=outcome.expected_error,
    )


def check_publishable(schema: Schema, guarantee: Guarantee, estimates: Iterable[PaidEstimate] = ()) -> None:
    """Refuse what is not private; also called before anything is spent.

    Args:
        schema: The public facts.
        guarantee: What is claimed for the rows.
        estimates: Private estimates that were paid for on this table.
    """
    judged = schema.judge(guarantee, estimates)
    if judged.status in ("void", "none"):
        why = next(iter(judged.caveats), judged.meaning)
        raise DPSynthError(
            f"This cannot be published as private: {why} Declare in the schema what is known without the rows, and "
            "run a private mechanism without a seed."
        )


def check_claim(outcome: RunResult) -> None:
    """Refuse a run whose guarantee is void or is not that of its order; quick, because no row is read."""
    guarantee, config = outcome.guarantee, outcome.config
    rows = guarantee if guarantee.budget is None else guarantee.limited_to(config.cost)
    check_publishable(outcome.schema, rows, outcome.estimates)
    if config.seed is not None:
        raise DPSynthError("A seeded run cannot be a release: anybody can repeat its noise. Run it without a seed.")
    tests = tuple(test.cost for test in outcome.comparisons)
    if guarantee.parts != (*outcome.schema.judge(rows, outcome.estimates).parts, *tests):
        raise DPSynthError(
            "The guarantee does not name the budgets of the configuration, of the private tests and of the private "
            "estimates that were used. Run the order again."
        )
    if guarantee.rows_per_person != outcome.schema.rows_per_person:
        raise DPSynthError("The guarantee and the schema name different units of protection. Run the order again.")


def _check_expected_error(outcome: RunResult) -> None:
    """It may name the schema's columns and nothing else."""
    expected, names = outcome.expected_error, outcome.schema.names
    if expected is None:
        return
    pairs = tuple((first, second) for first, second, _ in expected.pairs)
    if tuple(name for name, _ in expected.columns) != names or pairs != tuple(combinations(names, 2)):
        raise DPSynthError("The expected error is not about exactly the schema's columns. Run the order again.")


def _check(thing: object) -> None:
    if getattr(thing, "releasable", True) is False:
        raise _refused(type(thing).__name__)
    for part in _parts(thing):
        _check(part)


def _parts(thing: object) -> Iterator[object]:
    if type(thing) in _PLAIN:
        return
    if type(thing) in (tuple, list):
        yield from thing  # type: ignore[misc]  # checked on the line above
    elif isinstance(thing, _RECORDS):
        yield from (getattr(thing, part.name) for part in fields(thing))
    else:
        raise _refused(type(thing).__name__)


def _listed(tables: object) -> tuple[object, ...]:
    if type(tables) is not tuple or not tables:
        raise _refused(type(tables).__name__)
    return tables


def admit_rows(table: object, schema: Schema) -> pd.DataFrame:
    """The rows and nothing else: a frame can carry more (``attrs``, an index) into a file than it shows."""
    if type(table) is not pd.DataFrame:
        raise _refused(type(table).__name__)
    if list(table.columns) != list(schema.names):
        raise DPSynthError("The synthetic table does not have exactly the schema's columns. Run the order again.")
    if any(dtype.kind == "O" and not isinstance(dtype, pd.StringDtype) for dtype in table.dtypes):
        raise _refused("a column of arbitrary objects")
    return PrivateTable(table, schema).rows()


def _refused(kind: str) -> DPSynthError:
    return DPSynthError(
        f"A release bundle cannot hold this: {kind} is not made for publication. What was computed from the original "
        "rows belongs in the internal review report."
    )
