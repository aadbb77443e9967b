"""Public facts about one column: its kind, range or labels, and where those facts come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeAlias, get_args

from dpsynth_core.errors import SchemaError, is_int

Kind: TypeAlias = Literal["continuous", "integer", "categorical", "ordinal", "boolean", "date"]
Origin: TypeAlias = Literal["public knowledge", "codebook", "estimated privately", "read from the data"]
Label: TypeAlias = str | int | float
Bound: TypeAlias = int | float | date

KINDS: tuple[Kind, ...] = get_args(Kind)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
READ_FROM_DATA: Origin = "read from the data"
"""The one origin that makes no fact public, and voids every guarantee."""
ESTIMATED: Origin = "estimated privately"
"""Of a range or of categories. A person states the column's other facts, and a guarantee holds only with the record of
what the estimate cost."""

DEFAULT_BINS = 32
"""Bins of a continuous column that declares none."""
MAX_BINS = 65_536
MAX_INTEGER = 2**53
"""Largest magnitude of an integer bound: beyond it a float no longer holds every whole number."""
MAX_DECIMALS = 12
MAX_LABELS = 100_000
MAX_NAME = 256

_NUMERIC: frozenset[Kind] = frozenset({"continuous", "integer", "date"})
_LABELLED: frozenset[Kind] = frozenset({"categorical", "ordinal"})
FIELDS_BY_KIND: dict[str, frozenset[Kind]] = {
    "lower": _NUMERIC,
    "upper": _NUMERIC,
    "bins": _NUMERIC,
    "categories": _LABELLED | {"boolean"},
    "other": _LABELLED,
    "decimals": frozenset({"continuous"}),
    "date_format": frozenset({"date"}),
}
"""Facts that only some kinds have."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """The public facts about one column.

    Values that do not fit are moved before anything is counted: numbers are clamped to the bounds, labels
    that were not declared go to ``other`` (else to missing, else to the first label), and missing values in a
    column that is not nullable go to ``other``, the first label, or the middle of the range.

    Example:
        >>> age = Column(name="age", kind="integer", lower=0, upper=120, origin="codebook")
        >>> age.size, age.public
        (121, True)
    """

    name: str
    kind: Kind
    lower: Bound | None = None
    upper: Bound | None = None
    bins: int | None = None
    """How many equal cells the range is cut into. None: 32 for continuous, one per value otherwise."""
    categories: tuple[Label, ...] | None = None
    """Every possible label; in order for an ordinal column, and false first for a boolean one."""
    other: Label | None = None
    """The label that takes every value that was not declared; added to the categories if not among them."""
    decimals: int | None = None
    """Digits after the point of a continuous column. None: as many as a float has."""
    date_format: str | None = None
    """How dates are written in text, as for ``strptime``. None: ISO, 2024-12-31."""
    nullable: bool = False
    """Whether values may be missing; adds one cell."""
    unit: str = ""
    """What the numbers measure, for axis titles: "years", "mm"."""
    origin: Origin = READ_FROM_DATA
    """Where the facts above come from."""

    def __post_init__(self) -> None:
        _check_identity(self)
        for field, kinds in FIELDS_BY_KIND.items():
            value = getattr(self, field)
            if value is not None and self.kind not in kinds:
                self._refuse(field, value, f"nothing for kind {self.kind!r}", "Remove it or change the kind.")
        if self.kind in _NUMERIC:
            _check_range(self)
        else:
            _check_labels(self)

    def _refuse(self, field: str, value: object, allowed: str, remedy: str = "") -> NoReturn:
        raise SchemaError(self.name, field, value, allowed=allowed, remedy=remedy)

    @property
    def public(self) -> bool:
        """Whether somebody answers for the facts: they do not come from the rows without noise."""
        return self.origin != READ_FROM_DATA

    @property
    def is_numeric(self) -> bool:
        """Whether the column has a range (continuous, integer or date) rather than labels."""
        return self.kind in _NUMERIC

    @property
    def lattice(self) -> tuple[int, int] | None:
        """First and last multiple of the smallest step inside the bounds; None for a true continuum.

        Integers step by one, dates by a day (as proleptic ordinals), decimals by 10 ** -decimals.
        """
        if self.kind == "integer":
            return int(self._lower), int(self._upper)
        if self.kind == "date":
            assert isinstance(self.lower, date)  # noqa: S101  established by _check_range
            assert isinstance(self.upper, date)  # noqa: S101
            return self.lower.toordinal(), self.upper.toordinal()
        if self.kind == "continuous" and self.decimals is not None:
            step = Fraction(10) ** self.decimals
            low, high = (Fraction(repr(float(b))) * step for b in (self._lower, self._upper))
            return math.ceil(low), math.floor(high)
        return None

    @property
    def points(self) -> int | None:
        """How many different values a numeric column has; None for a true continuum."""
        return None if self.lattice is None else self.lattice[1] - self.lattice[0] + 1

    @property
    def position_range(self) -> tuple[float, float]:
        """First and last position of a column with an order, as its codec encodes values."""
        if self.kind == "ordinal":
            return 0.0, float(self.levels - 1)
        return (float(self._lower), float(self._upper)) if self.points is None else (0.0, float(self.points - 1))

    def lattice_edges(self) -> list[int]:
        """First point of each cell of a lattice and one past the last, so that widths differ by at most one step."""
        if self.lattice is None:
            raise SchemaError(self.name, "kind", self.kind, allowed="a column of evenly spaced points")
        first, last = self.lattice
        span, levels = last - first + 1, self.levels
        return [first - (-i * span // levels) for i in range(levels + 1)]

    @property
    def _lower(self) -> float:
        assert isinstance(self.lower, int | float)  # noqa: S101  established by _check_range
        return self.lower

    @property
    def _upper(self) -> float:
        assert isinstance(self.upper, int | float)  # noqa: S101
        return self.upper

    @property
    def labels(self) -> tuple[Label, ...]:
        """Every label that can come out, in code order."""
        labels = self.categories or ((False, True) if self.kind == "boolean" else ())
        return labels if self.other is None or self.other in labels else (*labels, self.other)

    @property
    def levels(self) -> int:
        """Number of cells, without the missing level."""
        if not self.is_numeric:
            return len(self.labels)
        points = self.lattice
        if points is None:
            return self.bins or DEFAULT_BINS
        span = points[1] - points[0] + 1
        if self.bins is None:
            return min(span, DEFAULT_BINS) if self.kind == "continuous" else span
        return min(span, self.bins)

    @property
    def size(self) -> int:
        """Number of cells, with the missing level if there is one."""
        return self.levels + self.nullable

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, without the fields that hold their default."""
        out: dict[str, Any] = {"name": self.name, "kind": self.kind}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("name", "kind", "origin") or value == field.default:
                continue
            if isinstance(value, date):
                value = value.isoformat()
            out[field.name] = list(value) if isinstance(value, tuple) else value
        return {**out, "public": self.public, "origin": self.origin}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Column:
        """A column from plain JSON values; ``"public": true`` without an origin means public knowledge."""
        name = facts.get("name")
        if not isinstance(name, str):
            raise SchemaError(None, "name", name, allowed="text", remedy="Give every column its name.")
        known = {field.name for field in fields(cls)} | {"public"}
        for key in facts:
            if key not in known:
                raise SchemaError(name, "field", key, allowed=", ".join(sorted(known)))
        values = dict(facts)
        if values.get("kind") == "date":
            for bound in ("lower", "upper"):
                values[bound] = _as_date(name, bound, values.get(bound))
        if isinstance(values.get("categories"), list | tuple):
            values["categories"] = normalise_labels(values["categories"])
        public = values.pop("public", "origin" in values and values["origin"] != READ_FROM_DATA)
        values.setdefault("origin", "public knowledge" if public else READ_FROM_DATA)
        values.setdefault("kind", None)
        column = cls(**values)
        _check_public(column, public)
        return column


def normalise_labels(labels: Iterable[Any]) -> tuple[Label, ...]:
    """Labels of one type: numbers if all are numbers (1.0 becomes 1), else text. Anything else is left as it is."""
    given = tuple(labels)
    if not all(_is_label(label) for label in given):
        return given
    if not any(isinstance(label, str) for label in given):
        return tuple(int(x) if float(x).is_integer() else float(x) for x in given)
    return tuple(x if isinstance(x, str) else label_text(x) for x in given)


def _is_label(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return not isinstance(value, int) or _is_finite(value)


def _is_finite(value: float) -> bool:
    """Whether a number is finite as a float, too: a whole number may be too large for one."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _as_date(name: str, field: str, value: object) -> date:
    try:
        return value if type(value) is date else date.fromisoformat(str(value))
    except ValueError:
        raise SchemaError(name, field, value, allowed="a date like 2024-12-31") from None


def _check_identity(column: Column) -> None:
    refuse = column._refuse
    if not isinstance(column.name, str) or not column.name.strip() or len(column.name) > MAX_NAME:
        refuse("name", column.name, f"text of 1 to {MAX_NAME} characters")
    if column.kind not in KINDS:
        refuse("kind", column.kind, ", ".join(KINDS))
    if not isinstance(column.nullable, bool):
        refuse("nullable", column.nullable, "true or false")
    for field in ("unit", "date_format"):
        if not isinstance(getattr(column, field) or "", str):
            refuse(field, getattr(column, field), "text")
    if column.origin not in ORIGINS:
        refuse("origin", column.origin, ", ".join(ORIGINS))


def _check_public(column: Column, public: object) -> None:
    """Refuse a file that calls a column public, or not, against its origin."""
    if not isinstance(public, bool):
        column._refuse("public", public, "true or false")
    if public and not column.public:
        column._refuse(
            "origin",
            column.origin,
            "public knowledge, codebook or estimated privately for a public column",
            "What was read from the data is not public until a person states that it is public knowledge.",
        )
    if column.public and not public:
        column._refuse("public", public, f"true where the origin is {column.origin!r}")


def _check_range(column: Column) -> None:
    refuse = column._refuse
    for field in ("lower", "upper"):
        bound = getattr(column, field)
        if column.kind == "date":
            if type(bound) is not date:
                refuse(field, bound, "a date like 2024-12-31", "Declare the possible range.")
        elif isinstance(bound, bool) or not isinstance(bound, int | float) or not _is_finite(bound):
            refuse(field, bound, "a finite number", "Declare the possible range or estimate it privately.")
        elif column.kind == "integer" and (bound != int(bound) or abs(bound) > MAX_INTEGER):
            refuse(field, bound, f"a whole number from -{MAX_INTEGER} to {MAX_INTEGER}")
    low, high = column.lower, column.upper
    if low >= high if column.kind == "continuous" else low > high:  # type: ignore[operator]
        relation = "greater than" if column.kind == "continuous" else "at least"
        refuse("upper", high, f"{relation} lower ({low})", "Swap or widen the bounds.")
    if column.kind == "continuous" and not math.isfinite(column._upper - column._lower):
        refuse("upper", high, "a range whose width is a finite number", "Narrow the bounds.")
    if column.bins is not None and not is_int(column.bins, 1, MAX_BINS):
        refuse("bins", column.bins, f"a whole number from 1 to {MAX_BINS}")
    if column.kind == "continuous" and column.decimals is None:
        spacing = math.ulp(max(abs(column._lower), abs(column._upper)))
        if (column._upper - column._lower) / column.levels < 4 * spacing:
            refuse("bins", column.levels, "bins wider than the steps of a float", "Use fewer or widen the bounds.")
    if column.decimals is not None:
        _check_decimals(column)
    if column.date_format is not None and "%" not in column.date_format:
        refuse("date_format", column.date_format, "a pattern such as %d/%m/%Y")


def _check_decimals(column: Column) -> None:
    if not is_int(column.decimals, 0, MAX_DECIMALS):
        column._refuse("decimals", column.decimals, f"a whole number from 0 to {MAX_DECIMALS}")
    first, last = column.lattice or (0, 0)
    if first > last:
        column._refuse("decimals", column.decimals, "enough digits for a value between the bounds", "Add decimals.")
    if max(abs(first), abs(last)) > MAX_INTEGER:
        column._refuse(
            "decimals", column.decimals, "few enough digits to be exact within the bounds", "Remove decimals."
        )


def _check_labels(column: Column) -> None:
    refuse, given = column._refuse, column.categories
    if given is None:
        if column.kind != "boolean":
            refuse("categories", given, "a list of one or more labels", "List every possible value.")
        return
    if not isinstance(given, tuple) or not 1 <= len(given) <= MAX_LABELS:
        refuse("categories", f"{type(given).__name__}", f"a list of 1 to {MAX_LABELS} labels")
    if column.kind == "boolean" and len(given) != 2:
        refuse("categories", list(given), "two labels, the one for false first")
    finite = all(_is_label(x) and not (isinstance(x, float) and not math.isfinite(x)) for x in given)
    if not finite or given != normalise_labels(given):
        refuse("categories", "mixed", "labels that are all text or all finite numbers")
    if column.other is not None and (
        not _is_label(column.other) or isinstance(column.other, str) != isinstance(given[0], str)
    ):
        refuse("other", column.other, "a label of the same type as the categories")
    seen: set[str] = set()
    for label in column.labels:
        text = label_text(label)
        if not text or text in seen:
            refuse("categories", label, "labels that are not empty and differ from each other")
        seen.add(text)


def label_text(label: object) -> str:
    """The text by which a label is recognised: without surrounding blanks, whole numbers without a point."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).strip()
