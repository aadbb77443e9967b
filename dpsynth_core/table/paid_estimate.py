"""Facts about a column that a private estimate has found, with what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpsynth_core.errors import ParameterError, SchemaError
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee, Status
from dpsynth_core.table.column import ESTIMATED, Column, label_text
from dpsynth_core.table.file_layout import FileLayout


@dataclass(frozen=True, kw_only=True)
class PaidEstimate:
    """The range of a column, or its categories, from a private estimate that was paid for.

    It answers for these values only. Everything else about the column needs a person's statement.

    Example:
        >>> age = PaidEstimate(column="age", lower=0.0, upper=100.0, guarantee=paid("age", Budget.of("0.1")))
        >>> column = Column(name="age", kind="integer", lower=17, upper=93, bins=20)
        >>> declared = age.declare(column, others_public=True)
        >>> declared.lower, declared.upper, declared.bins, declared.origin
        (0, 100, None, 'estimated privately')
        >>> age.backs(declared, None), age.backs(replace(declared, upper=99), None)
        (True, False)
    """

    column: str
    guarantee: Guarantee
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] | None = None
    layout: FileLayout | None = None
    """By which the file was read, because what was found depends on it; None for a table that comes from no file."""

    def found(self, kind: str) -> dict[str, Any]:
        """The facts as a column of this kind states them: whole numbers for integers, rounded outwards."""
        if self.lower is None or self.upper is None:
            return {"categories": self.categories}
        if kind == "integer":
            return {"lower": math.floor(self.lower), "upper": math.ceil(self.upper)}
        return {"lower": self.lower, "upper": self.upper}

    def declare(self, column: Column, *, others_public: bool) -> Column:
        """The column with what was found.

        Args:
            column: What is known otherwise.
            others_public: Whether a person states that everything else about the column is public: its kind and whether
                values may be missing, and what ``column`` says besides if its facts were declared public before. What
                was merely read from the rows goes back to the defaults, which are public.
        """
        check_others_public(column.name, others_public=others_public)
        found = self.found(column.kind)
        if not column.public:
            return Column(name=column.name, kind=column.kind, nullable=column.nullable, origin=ESTIMATED, **found)
        try:
            return replace(column, origin=ESTIMATED, **found)
        except SchemaError:
            # What was declared for another range need not fit what was found, and what was found is paid for.
            return replace(column, origin=ESTIMATED, bins=None, decimals=None, other=None, **found)

    def backs(self, column: Column, layout: FileLayout | None) -> bool:
        """Whether the column, of a file with this layout, states exactly what was found."""
        if (self.layout or FileLayout()) != (layout or FileLayout()):
            return False  # the layout by which the rows were read is a fact, too, and nobody has declared it
        stated = (column.lower, column.upper) if column.is_numeric else _texts(column.categories)
        found = self.found(column.kind)
        mine = (found["lower"], found["upper"]) if "lower" in found else _texts(found["categories"])
        return column.name == self.column and column.is_numeric == (self.lower is not None) and stated == mine

    def to_dict(self) -> dict[str, Any]:
        """Column and values as plain JSON values; the cost is kept with the charge."""
        facts: dict[str, Any] = {"lower": self.lower, "upper": self.upper, "categories": self.categories}
        facts |= {"file": None if self.layout is None else self.layout.to_dict()}
        return {"column": self.column, **{name: value for name, value in facts.items() if value is not None}}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], budget: Budget, rows_per_person: int) -> PaidEstimate:
        """An estimate from what was kept of it, and what was charged for it."""
        labels = facts.get("categories")
        return cls(
            column=facts["column"],
            lower=facts.get("lower"),
            upper=facts.get("upper"),
            categories=None if labels is None else tuple(labels),
            layout=None if facts.get("file") is None else FileLayout.from_dict(facts["file"]),
            guarantee=paid(facts["column"], budget, labels=labels is not None, rows_per_person=rows_per_person),
        )


def paid(
    column: str, budget: Budget, *, labels: bool = False, rows_per_person: int = 1, status: Status = "proven"
) -> Guarantee:
    """The guarantee of an estimate, whose cost says what it was for."""
    cost = Cost(label=f"{'Categories' if labels else 'Range'} of column {column!r}", budget=budget)
    return Guarantee(status=status, parts=(cost,), rows_per_person=rows_per_person)


def check_others_public(name: str, *, others_public: bool) -> None:
    """Refuse an estimate, before anything is charged, whose column nobody answers for otherwise."""
    if others_public is not True:
        raise ParameterError(
            "others_public",
            others_public,
            allowed="True",
            remedy=f"An estimate of column {name!r} answers for its range or categories only. State that its kind, and "
            "whether values may be missing, are public knowledge.",
        )


def _texts(labels: tuple[object, ...] | None) -> tuple[str, ...]:
    return tuple(label_text(label) for label in labels or ())
