"""The schema as rows that people edit, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.column import FIELDS_BY_KIND, Column, label_text
from dpsynth_core.errors import DPSynthError, SchemaError
from dpsynth_core.schema import Schema

# Editor column -> the field of dpsynth_core.Column that it holds.
EDITOR_FIELDS = {
    "name": "name",
    "kind": "kind",
    "from": "lower",
    "to": "upper",
    "bins": "bins",
    "categories": "categories",
    "other": "other",
    "missing": "nullable",
    "decimals": "decimals",
    "unit": "unit",
    "date format": "date_format",
    "public": "public",
    "origin": "origin",
}


def to_rows(schema: Schema, all_names: Iterable[str]) -> pd.DataFrame:
    """One row per column of the table; those that the schema leaves out are kept with ``keep`` off."""
    kept = set(schema.names)
    names = [*schema.names, *(str(name) for name in all_names if name not in kept)]
    rows = [_to_row(schema[name]) if name in kept else _dropped_row(name) for name in names]
    whole = {"bins": "Int64", "decimals": "Int64"}
    return pd.DataFrame(rows, columns=["keep", *EDITOR_FIELDS]).astype(whole)


def _dropped_row(name: str) -> dict[str, Any]:
    return {"keep": False, "name": name, "kind": "categorical", "categories": [], "missing": False, "public": False}


def _to_row(column: Column) -> dict[str, Any]:
    def text(value: object) -> str | None:
        return None if value is None else label_text(value)

    return {
        "keep": True,
        "name": column.name,
        "kind": column.kind,
        "from": text(column.lower),
        "to": text(column.upper),
        "bins": column.bins,
        "categories": [label_text(label) for label in column.categories or ()],
        "other": text(column.other),
        "missing": column.nullable,
        "decimals": column.decimals,
        "unit": column.unit or None,
        "date format": column.date_format,
        "public": column.public,
        "origin": column.origin,
    }


def from_rows(
    rows: pd.DataFrame, *, numeric_labels: set[str], rows_per_person: int = 1
) -> tuple[Schema | None, list[DPSynthError]]:
    """The schema, or every problem that stands in its way.

    Args:
        rows: As edited.
        numeric_labels: Columns whose categories are numbers in the table and must stay numbers.
        rows_per_person: The unit of protection.
    """
    columns: list[Column] = []
    problems: list[DPSynthError] = []
    for row in rows.to_dict("records"):
        if not row["keep"]:
            continue
        try:
            columns.append(Column.from_dict(_facts(row, row["name"] in numeric_labels)))
        except DPSynthError as problem:
            problems.append(problem)
    if problems:
        return None, problems
    try:
        return Schema(columns=tuple(columns), rows_per_person=rows_per_person), []
    except SchemaError as problem:
        return None, [problem]


def _facts(row: dict[Any, Any], numeric: bool) -> dict[str, Any]:
    """Plain values for ``Column.from_dict``: only the fields that the kind has, and only where filled in."""
    facts: dict[str, Any] = {}
    for editor_name, field in EDITOR_FIELDS.items():
        value = row.get(editor_name)
        if field in FIELDS_BY_KIND and row["kind"] not in FIELDS_BY_KIND[field]:
            continue
        if field == "categories":
            texts = [str(label) for label in value] if isinstance(value, list | tuple | np.ndarray) else []
            if texts or row["kind"] != "boolean":
                facts[field] = _numbers(texts) if numeric else texts
        elif not pd.isna(value) and value != "":
            facts[field] = value
    for field in ("lower", "upper"):
        if field in facts and row["kind"] != "date":
            facts[field] = _number(row["name"], field, facts[field])
    for field in ("bins", "decimals"):
        if field in facts:
            facts[field] = int(facts[field])
    if numeric and "other" in facts:
        facts["other"] = _numbers([facts["other"]])[0]
    facts["nullable"], facts["public"] = bool(facts.get("nullable")), bool(facts.get("public"))
    facts["origin"] = origin_of(facts["public"], facts.get("origin"))
    return facts


def origin_of(public: bool, origin: str | None) -> str:
    """The origin that goes with the checkbox: ticking it is a person's statement, unticking withdraws it."""
    if not public:
        return "read from the data"
    return origin if origin and origin != "read from the data" else "public knowledge"


def _number(name: str, field: str, text: object) -> int | float:
    try:
        number = float(str(text).replace(",", "").replace("_", ""))
    except ValueError:
        raise SchemaError(name, field, text, allowed="a number") from None
    return int(number) if number.is_integer() and abs(number) < 2**62 else number


def _numbers(texts: list[str]) -> list[Any]:
    """Labels as numbers where every one of them is a number."""
    try:
        return [float(text) for text in texts]
    except ValueError:
        return texts


def mark_public(rows: pd.DataFrame, *, public: bool) -> pd.DataFrame:
    """The bulk action: every kept column declared public knowledge, or none."""
    changed = rows.copy()
    changed["public"] = changed["keep"] & public
    changed["origin"] = [
        origin_of(bool(p), None if pd.isna(o) else o) for p, o in zip(changed["public"], changed["origin"], strict=True)
    ]
    return changed
