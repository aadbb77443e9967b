"""A regression's outcome and terms from mixed columns, scaled to [-1, 1] by public facts alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable

MAX_LEVELS = 10
"""Labels up to which a column can be a predictor: each but the first gets a coefficient."""
MAX_TERMS = 30
ROWS_PER_TERM = 10
"""Rows that every coefficient needs where predictors are chosen for the reader."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One coefficient: of a number, of a label against the first one, or of being missing."""

    name: str
    """For people; holds column names and labels, which are untrusted text."""
    column: str
    middle: float
    """The value, in the column's own unit, that is scaled to zero."""
    half: float
    """Half the declared range, in that unit: what is scaled to one."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """What a regression is fitted to."""

    outcome: Term
    terms: tuple[Term, ...]
    """The right-hand side, without the intercept."""
    y: FloatArray
    """The outcome in [-1, 1]; for two labels -1 or 1."""
    X: FloatArray
    """One line per row, one column per term, in [-1, 1]."""
    rows: int
    """Of the table, with or without an outcome: public, unlike ``n`` where an outcome may be missing."""
    nullable: bool
    """Whether an outcome may be missing, as declared."""

    @property
    def n(self) -> int:
        """Rows with an outcome."""
        return len(self.y)

    def only(self, kept: Sequence[int]) -> Design:
        """With some of the terms."""
        terms = tuple(self.terms[i] for i in kept)
        return Design(
            outcome=self.outcome, terms=terms, y=self.y, X=self.X[:, list(kept)], rows=self.rows, nullable=self.nullable
        )


def build(table: PrivateTable, outcome: str, predictors: Iterable[str]) -> Design:
    """Outcome and terms of a table; rows without an outcome are left out.

    A missing number takes the middle of its range and a coefficient of its own; a missing label is a label.
    """
    column = table.schema[outcome]
    if not can_be_outcome(column):
        raise ParameterError(
            "outcome", outcome, allowed="a column of numbers, dates or two labels", remedy="Choose another outcome."
        )
    left, (y,), gaps = _columns(table, column)
    blocks: list[FloatArray] = []
    terms: list[Term] = []
    for name in predictors:
        if name == outcome:
            raise ParameterError("predictors", name, allowed="columns other than the outcome")
        if not can_be_predictor(table.schema[name]):
            raise ParameterError(
                "predictors", name, allowed=f"numbers, dates, or at most {MAX_LEVELS} labels", remedy="Leave it out."
            )
        own, values, _ = _columns(table, table.schema[name], predictor=True)
        blocks += values
        terms += own
    X = np.column_stack(blocks) if blocks else np.zeros((table.n, 0))
    kept = slice(None) if gaps is None else ~gaps
    return Design(outcome=left[0], terms=tuple(terms), y=y[kept], X=X[kept], rows=table.n, nullable=column.nullable)


def can_be_outcome(column: Column) -> bool:
    """Numbers and dates, or two labels."""
    return column.is_numeric or column.levels == 2


def can_be_predictor(column: Column) -> bool:
    """Numbers and dates, or few labels."""
    return column.is_numeric or column.levels <= MAX_LEVELS


def is_logistic(column: Column) -> bool:
    """Whether the outcome is one of two labels."""
    return not column.is_numeric


def choose(table: PrivateTable, outcome: str | None, predictors: Sequence[str] | None, rows: int) -> tuple[str, ...]:
    """The outcome that the others explain best, and its predictors, where they are not given; the outcome comes first.

    Reads the rows, as everything here does: a diagnostic's result is private anyway.
    """
    names = table.schema.names
    candidates = [name for name in names if can_be_outcome(table.schema[name])] if outcome is None else [outcome]
    numeric = [name for name in candidates if table.schema[name].is_numeric and _varies(table, name)]
    able = numeric or [name for name in candidates if _varies(table, name)]
    limit = min(MAX_TERMS, rows // ROWS_PER_TERM)
    best: tuple[float, tuple[str, ...]] = (-1.0, ())
    for name in able:
        others = [other for other in names if other != name and can_be_predictor(table.schema[other])]
        chosen = _strongest(build(table, name, others), limit) if predictors is None else tuple(predictors)
        explained = _explained(build(table, name, chosen)) if chosen else -1.0
        best = max(best, (explained, (name, *chosen)), key=lambda found: found[0])
    return best[1]


def estimable(X: FloatArray) -> list[int]:
    """Columns that vary and are no combination of those before them, by a Cholesky decomposition that skips them."""
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    rest = np.where(spread > 1e-9, centred / np.where(spread > 1e-9, spread, 1.0), 0.0)
    gram, kept = rest.T @ rest / max(len(X), 1), []
    for j in range(gram.shape[0]):
        if gram[j, j] > 1e-8:
            kept.append(j)
            gram = gram - np.outer(gram[:, j], gram[j]) / gram[j, j]
    return kept


def span(column: Column) -> tuple[float, float]:
    """First and last value of a numeric column in its own unit; dates count days from the first."""
    points = column.lattice
    if points is None:
        return float(column.lower), float(column.upper)  # type: ignore[arg-type]
    if column.kind == "date":
        return 0.0, float(points[1] - points[0])
    unit = 10.0 ** (column.decimals or 0)
    return points[0] / unit, points[1] / unit


def _columns(
    table: PrivateTable, column: Column, *, predictor: bool = False
) -> tuple[list[Term], list[FloatArray], BoolArray | None]:
    """Terms and scaled values of one column, and where it is missing."""
    positions = table.positions(column.name)
    missing, values = positions.missing, positions.values
    here = np.ones(table.n, dtype=np.bool_) if missing is None else ~missing
    if column.is_numeric:
        low, high = span(column)
        first, last = (low, high) if column.lattice is None else (0.0, float(column.lattice[1] - column.lattice[0]))
        scaled = (values - first) / (last - first) * 2 - 1 if last > first else np.zeros(table.n)
        terms = [Term(name=column.name, column=column.name, middle=(low + high) / 2, half=(high - low) / 2 or 1.0)]
        blocks = [np.where(here, scaled, 0.0)]
    else:
        levels = range(1, column.levels)
        terms = [_indicator(f"{column.name} = {column.labels[level]}", column.name) for level in levels]
        blocks = [np.where((values == level) & here, 1.0, -1.0) for level in levels]
    if missing is not None and predictor:
        terms.append(_indicator(f"{column.name} is missing", column.name))
        blocks.append(np.where(missing, 1.0, -1.0))
    return terms, blocks, missing


def _indicator(name: str, column: str) -> Term:
    return Term(name=name, column=column, middle=0.5, half=0.5)


def _varies(table: PrivateTable, name: str) -> bool:
    positions = table.positions(name)
    values = positions.values if positions.missing is None else positions.values[~positions.missing]
    return len(values) > 1 and bool((values != values[0]).any())


def _strongest(design: Design, limit: int) -> tuple[str, ...]:
    """Columns in the order of the table, those first that correlate most with the outcome, as far as the rows bear."""
    kept = estimable(design.X) if design.n else []
    if not kept:
        return ()
    X = design.X[:, kept]
    strength = np.abs((X - X.mean(axis=0)).T @ (design.y - design.y.mean())) / X.std(axis=0)
    owners = [term.column for term in design.terms]
    by_column: dict[str, float] = {}
    for index, value in zip(kept, strength, strict=True):
        by_column[owners[index]] = max(by_column.get(owners[index], 0.0), float(value))
    chosen: set[str] = set()
    for name in sorted(by_column, key=lambda name: -by_column[name]):
        limit -= owners.count(name)
        if limit < 0:
            break
        chosen.add(name)
    return tuple(name for name in dict.fromkeys(owners) if name in chosen)


def _explained(design: Design) -> float:
    """Share of the outcome's variance that the terms explain."""
    kept = estimable(design.X) if design.n > 1 else []
    spread = design.y.var() if design.n else 0.0
    if not kept or spread == 0:
        return -1.0
    X, y = design.X[:, kept] - design.X[:, kept].mean(axis=0), design.y - design.y.mean()
    slopes = np.linalg.lstsq(X.T @ X, X.T @ y, rcond=None)[0]
    return float(1 - ((y - X @ slopes) ** 2).mean() / spread)
