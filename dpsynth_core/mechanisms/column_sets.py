"""Sets of columns: which columns are asked about together, as people write them."""

from __future__ import annotations

import csv
import math
from itertools import combinations
from typing import TypeAlias

from dpsynth_core.errors import ParameterError
from dpsynth_core.table.schema import Schema

ColumnSet: TypeAlias = tuple[str, ...]
"""Names of columns, in the schema's order."""

MOST_SETS = 20_000
"""Sets of columns that are listed before anything else is done."""


def read_sets(text: str, schema: Schema, *, parameter: str) -> tuple[ColumnSet, ...]:
    """Column sets from text: columns separated by commas, sets by semicolons; quote a name that holds either.

    Example:
        >>> columns = [{"name": name, "kind": "boolean"} for name in ("a", "b", "c")]
        >>> read_sets("b, a; c", Schema.from_dict({"columns": columns}), parameter="columns")
        (('a', 'b'), ('c',))
    """
    found: dict[ColumnSet, None] = {}
    for part in _split(text, ";"):
        names = [name.strip() for name in next(csv.reader([part], skipinitialspace=True), [])]
        unknown = [name for name in names if name not in schema.names]
        if unknown or not names:
            raise ParameterError(
                parameter, unknown[0] if unknown else text, allowed="columns of the schema, as in 'age, sex; age, pain'"
            )
        found[tuple(name for name in schema.names if name in names)] = None
    return tuple(found)


def _split(text: str, mark: str) -> list[str]:
    """Parts between marks that stand outside quotes, without the empty ones."""
    parts, quoted = [""], False
    for character in text:
        quoted ^= character == '"'
        if character == mark and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def every_set(schema: Schema, order: int) -> tuple[ColumnSet, ...]:
    """All sets of ``order`` columns, or of as many as there are."""
    order = min(order, len(schema.names))
    number = math.comb(len(schema.names), order)
    if number > MOST_SETS:
        raise ParameterError(
            "order",
            order,
            allowed=f"few enough that at most {MOST_SETS:,} sets of columns arise, not {number:,}",
            remedy="Lower the order or name the sets of columns.",
        )
    return tuple(combinations(schema.names, order))


def chosen_sets(text: str | None, schema: Schema, order: int, *, parameter: str) -> tuple[ColumnSet, ...]:
    """The sets that somebody named, or all of that order."""
    named = read_sets(text, schema, parameter=parameter) if text else ()
    return named or every_set(schema, order)
