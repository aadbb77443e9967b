"""Public facts about a table: what anybody may know before seeing a single row.

A schema is *declared*, never read from the private rows. Each column records where its facts come from; a
column whose facts were read from the data voids every guarantee made with it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpsynth_core.errors import SchemaError, is_int
from dpsynth_core.privacy.budget import Guarantee, compose
from dpsynth_core.table.column import ESTIMATED, Column
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.paid_estimate import PaidEstimate

MAX_DECLARED_BY = 500
"""Characters that say who declared the facts."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public facts about a table: its columns, in order, and the unit of protection.

    Example:
        >>> schema = Schema.from_dict({"columns": [
        ...     {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True},
        ...     {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True}]})
        >>> schema.domain_size()
        242
        >>> schema.is_public
        True
    """

    columns: tuple[Column, ...]
    """In the order of the table that comes out."""
    file: FileLayout | None = None
    """How the file is laid out that the table is read from; None for a table that comes from no file."""
    rows_per_person: int = 1
    """The most rows that one person can own; the stated epsilon protects the person."""
    declared_by: str = field(default="", compare=False)
    """Who states that the facts are public, and on what grounds, in their own words; empty if nobody is named. Shown to
    reviewers, never published. Not a fact about the table: schemas that differ in nothing else are equal."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise SchemaError(None, "columns", [], allowed="one or more columns", remedy="Keep a column.")
        name, count = Counter(self.names).most_common(1)[0]
        if count > 1:
            raise SchemaError(name, "name", name, allowed="a name that occurs once", remedy="Rename one.")
        if not is_int(self.rows_per_person, 1, 10**6):
            raise SchemaError(None, "rows_per_person", self.rows_per_person, allowed="a whole number from 1 to 1000000")
        if not isinstance(self.declared_by, str) or len(self.declared_by) > MAX_DECLARED_BY:
            shown = "too long" if isinstance(self.declared_by, str) else type(self.declared_by).__name__
            raise SchemaError(None, "declared_by", shown, allowed=f"text of up to {MAX_DECLARED_BY} characters")

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(None, "column", name, allowed=f"one of {', '.join(map(repr, self.names))}")

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def domain_size(self, names: Iterable[str] | None = None) -> int:
        """How many cells the declared domain has: the product over the columns, exact however large."""
        return math.prod(self[name].size for name in (self.names if names is None else names))

    @property
    def not_public(self) -> tuple[str, ...]:
        """Columns whose facts nobody has declared to be public."""
        return tuple(column.name for column in self.columns if not column.public)

    @property
    def is_public(self) -> bool:
        """Whether every fact is declared public, so that guarantees can hold."""
        return not self.not_public

    def judge(self, guarantee: Guarantee, estimates: Iterable[PaidEstimate] = ()) -> Guarantee:
        """The guarantee that remains once the origin of every declared fact is taken into account.

        Args:
            guarantee: What is claimed for the rows.
            estimates: Private estimates that were paid for on this table. A column that was estimated privately needs
                one with exactly its values, whose cost joins the claim; otherwise the claim is void.
        """
        paid = tuple(estimates)
        if self.not_public:
            guarantee = guarantee.weakened("void", _read_from_data(self.not_public))
        for column in self.columns:
            if column.origin == ESTIMATED:
                guarantee = self._with_estimate(guarantee, column, paid)
        return guarantee

    def _with_estimate(self, guarantee: Guarantee, column: Column, estimates: tuple[PaidEstimate, ...]) -> Guarantee:
        mine = [each for each in estimates if each.column == column.name]
        used = [e for e in mine if e.backs(column, self.file) and e.guarantee.rows_per_person == self.rows_per_person]
        if not used:
            return guarantee.weakened(
                "void",
                f"Column {column.name!r}: its bounds or categories are said to be estimated privately, but no charge "
                "for this estimate is on record for this table.",
            )
        guarantee = compose([guarantee, *(each.guarantee for each in used)])
        if len(used) == len(mine):
            return guarantee
        return guarantee.with_caveat(
            f"Column {column.name!r}: another estimate was paid for and is not used. The stated loss does not cover a "
            "choice between them that was made by looking at both."
        )

    def estimates_used(self, estimates: Iterable[PaidEstimate]) -> tuple[PaidEstimate, ...]:
        """Those that concern a column of this schema that was estimated privately."""
        names = {column.name for column in self.columns if column.origin == ESTIMATED}
        return tuple(each for each in estimates if each.column in names)

    def select(self, names: Iterable[str]) -> Schema:
        """The same facts for these columns only, in the given order."""
        return replace(self, columns=tuple(self[name] for name in names))

    def with_column(self, column: Column) -> Schema:
        """The schema with the column of the same name replaced."""
        self[column.name]
        return replace(self, columns=tuple(column if c.name == column.name else c for c in self.columns))

    def unsigned(self) -> Schema:
        """The facts without the name of who declared them, as they may be published."""
        return replace(self, declared_by="")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        facts: dict[str, Any] = {"columns": [column.to_dict() for column in self]}
        if self.file is not None:
            facts["file"] = self.file.to_dict()
        facts["rows_per_person"] = self.rows_per_person
        return {**facts, "declared_by": self.declared_by} if self.declared_by else facts

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Schema:
        """A schema from plain JSON values; unknown keys are refused rather than ignored."""
        if not isinstance(facts, Mapping) or not isinstance(facts.get("columns"), list | tuple):
            remedy = "Save a schema in the app to see what one looks like."
            raise SchemaError(None, "columns", None, allowed='a list under "columns"', remedy=remedy)
        for key in facts:
            if key not in ("columns", "file", "rows_per_person", "declared_by"):
                raise SchemaError(None, "field", key, allowed="columns, file, rows_per_person, declared_by")
        for entry in facts["columns"]:
            if not isinstance(entry, Mapping):
                raise SchemaError(None, "column", type(entry).__name__, allowed="an object with name and kind")
        columns = tuple(Column.from_dict(entry) for entry in facts["columns"])
        return cls(
            columns=columns,
            file=None if facts.get("file") is None else FileLayout.from_dict(facts["file"]),
            rows_per_person=facts.get("rows_per_person", 1),
            declared_by=facts.get("declared_by", ""),
        )

    def to_json(self) -> str:
        """JSON text, readable by people."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """A schema from JSON text."""
        try:
            facts = read_json(text)
        except ValueError:
            allowed = "JSON text as written by Save schema"
            raise SchemaError(None, "file", "not JSON", allowed=allowed, remedy="Check the file.") from None
        return cls.from_dict(facts)


def _read_from_data(names: Sequence[str]) -> str:
    """Why there is no guarantee, in one sentence however many columns it is about."""
    listed = ", ".join(map(repr, names))
    if len(names) == 1:
        return f"Column {listed}: its bounds or categories were read from the data, not declared public."
    return f"The bounds or categories of {len(names)} columns were read from the data, not declared public: {listed}."
