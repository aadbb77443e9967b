"""The schema as rows that people edit, and back."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError, SchemaError
from dpsynth_core.table.cells import label_spelling
from dpsynth_core.table.column import FIELDS_BY_KIND, Column, label_text
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.json_text import MAX_NUMBER
from dpsynth_core.table.schema import Schema

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

# Field -> what the editor's heading calls it, where that differs.
HEADINGS = {"lower": "From", "upper": "To", "nullable": "May be missing", "date_format": "Date format"}
NUMERIC_LABELS = "labels are numbers"
"""A column of the draft that the editor does not show: [1, 2] and ["1", "2"] look alike there but are not the same."""
_TEXTS = ("name", "kind", "from", "to", "other", "unit", "date format", "origin")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[,\s'’]\d{3})+(?:\.\d+)?")


def to_rows(schema: Schema, all_names: Iterable[str]) -> pd.DataFrame:
    """One row per column of the table; those that the schema leaves out have ``keep`` off."""
    used = set(schema.names)
    names = [*schema.names, *(str(name) for name in all_names if name not in used)]
    return _frame([_to_row(schema[name]) if name in used else _dropped_row(name) for name in names])


def with_column(rows: pd.DataFrame, column: Column) -> pd.DataFrame:
    """The rows with one column's facts replaced; what was typed elsewhere stays, dropped columns included."""
    return _frame([_to_row(column) if row["name"] == column.name else row for row in rows.to_dict("records")])


def merge_rows(draft: pd.DataFrame, suggested: pd.DataFrame, now: pd.DataFrame) -> pd.DataFrame:
    """One row per column of a table that was read again: as the draft has it, or as suggested now if nobody changed it.

    Args:
        draft: As edited.
        suggested: What was suggested before the table was read again.
        now: What is suggested now.
    """
    untouched = {row["name"]: _comparable(row) for row in suggested.to_dict("records")}
    edited = {row["name"]: row for row in draft.to_dict("records") if _comparable(row) != untouched.get(row["name"])}
    return _frame([edited.get(row["name"], row) for row in now.to_dict("records")])


def _comparable(row: dict[Any, Any]) -> tuple[object, ...]:
    return tuple(
        tuple(value) if isinstance(value, list | tuple | np.ndarray) else None if pd.isna(value) else value
        for value in row.values()
    )


def _frame(records: list[dict[Any, Any]]) -> pd.DataFrame:
    # Said outright: pandas takes a column without any text for numbers, and the editor would not let anybody write.
    types = dict.fromkeys(_TEXTS, "str") | dict.fromkeys(("bins", "decimals"), "Int64")
    rows = pd.DataFrame(records, columns=["keep", *EDITOR_FIELDS, NUMERIC_LABELS]).astype(types)
    return rows.assign(**{NUMERIC_LABELS: [_ticked(value) for value in rows[NUMERIC_LABELS]]})


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
        NUMERIC_LABELS: _has_numeric_labels(column),
    }


def _has_numeric_labels(column: Column) -> bool:
    """Whether the labels are numbers, or would be if a column of numbers were declared as one of labels."""
    if column.is_numeric:
        return column.kind != "date"
    return bool(column.categories) and not any(isinstance(label, str | bool) for label in column.labels)


def has_numeric_labels(rows: pd.DataFrame, name: str) -> bool:
    """Whether the labels of a column are numbers, as declared; the table has no say in it."""
    return any(_ticked(value) for value in rows.loc[rows["name"] == name, NUMERIC_LABELS])


def from_rows(
    rows: pd.DataFrame, *, file: FileLayout | None = None, rows_per_person: int = 1, declared_by: str = ""
) -> tuple[Schema | None, list[DPSynthError]]:
    """The schema, or every problem with it.

    Args:
        rows: As edited.
        file: The layout of the file, if it is declared.
        rows_per_person: The unit of protection.
        declared_by: Who states that the facts are public.
    """
    columns: list[Column] = []
    problems: list[DPSynthError] = []
    for row in rows.to_dict("records"):
        if not _ticked(row["keep"]):
            continue
        try:
            columns.append(Column.from_dict(_facts(row, numeric=_ticked(row[NUMERIC_LABELS]))))
        except SchemaError as problem:
            problems.append(_in_editor_words(problem))
    if problems:
        return None, problems
    try:
        schema = Schema(columns=tuple(columns), file=file, rows_per_person=rows_per_person, declared_by=declared_by)
    except SchemaError as problem:
        return None, [problem]
    return schema, []


def _ticked(value: object) -> bool:
    """Whether a checkbox is on; an empty one is off."""
    return isinstance(value, bool | np.bool_) and bool(value)


def _in_editor_words(problem: SchemaError) -> SchemaError:
    """The same problem under the heading that the reader sees."""
    before = f"Column {problem.column!r}: {problem.field} is {problem.value!r};"
    heading = HEADINGS.get(problem.field, problem.field.capitalize())
    value = "empty" if problem.value is None else repr(problem.value)
    if str(problem).startswith(before):
        problem.args = (f"Column {problem.column!r}: {heading} is {value};{str(problem)[len(before) :]}",)
    return problem


def _facts(row: dict[Any, Any], *, numeric: bool) -> dict[str, Any]:
    """Plain values for ``Column.from_dict``: only the fields that the kind has, and only where filled in."""
    facts: dict[str, Any] = {}
    for editor_name, field in EDITOR_FIELDS.items():
        value = row.get(editor_name)
        if field in FIELDS_BY_KIND and row["kind"] not in FIELDS_BY_KIND[field]:
            continue
        if field == "categories":
            texts = [str(label) for label in value] if isinstance(value, list | tuple | np.ndarray) else []
            if texts:
                facts[field] = numbers(texts) if numeric else texts
        elif not pd.isna(value) and value != "":
            facts[field] = value
    for field in ("lower", "upper"):
        if field in facts and row["kind"] != "date":
            facts[field] = _number(row["name"], field, facts[field])
    for field in ("bins", "decimals"):
        if field in facts:
            facts[field] = int(facts[field])
    if numeric and "other" in facts:
        facts["other"] = numbers([facts["other"]])[0]
    facts["nullable"], facts["public"] = _ticked(row.get("missing")), _ticked(row.get("public"))
    facts["origin"] = origin_of(facts["public"], facts.get("origin"))
    return facts


def origin_of(public: bool, origin: str | None) -> str:
    """The origin that goes with the checkbox: ticking it is a person's statement, unticking withdraws it."""
    if not public:
        return "read from the data"
    return origin if origin and origin != "read from the data" else "public knowledge"


def _number(name: str, field: str, text: object) -> int | float:
    written = str(text).strip()
    # Only where it groups thousands: 1,5 may mean one and a half, and fifteen would be a silent mistake.
    plain = re.sub(r"[,\s'’]", "", written) if _GROUPED.fullmatch(written) else written
    try:
        return _exact(plain)
    except ValueError:
        remedy = "Write the decimal point as a point."
        raise SchemaError(name, field, text, allowed="a number such as 1234.5", remedy=remedy) from None


def numbers(texts: Iterable[str]) -> list[Any]:
    """Labels as numbers where every one of them is a number."""
    given = list(texts)
    try:
        return [_exact(text) for text in given]
    except ValueError:
        return given


def _exact(text: str) -> int | float:
    """A whole number with all its digits, or a float."""
    if len(text) > MAX_NUMBER:
        raise ValueError
    try:
        return int(text)
    except ValueError:
        number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**62 else number


def settle_origins(rows: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """What was typed, with checkbox and origin in agreement: the one that was changed decides about the other."""
    public = [_ticked(value) for value in rows["public"]]
    origins = [_text(value) for value in rows["origin"]]
    was = zip(before["public"], before["origin"], strict=True)
    for i, (ticked, origin) in enumerate((_ticked(a), _text(b)) for a, b in was):
        if origins[i] != origin and origins[i] is not None:
            public[i] = origins[i] != "read from the data"
        if (public[i], origins[i]) != (ticked, origin):
            origins[i] = origin_of(public[i], origins[i])
    return rows.assign(public=public, origin=pd.Series(origins, index=rows.index, dtype=rows["origin"].dtype))


def split_labels(rows: pd.DataFrame, before: pd.DataFrame, layout: FileLayout | None = None) -> pd.DataFrame:
    """What was typed, with a new label that is a list ("0,1,2") as the labels in it; those from before stay."""
    layout = layout or FileLayout()
    known = {row["name"]: _labels(row["categories"]) for row in before.to_dict("records")}
    changed = list(rows["categories"])
    for index, (name, given) in enumerate(zip(rows["name"], map(_labels, changed), strict=True)):
        split = _split(given, known.get(name, []), layout)
        if split != given:
            changed[index] = split
    return rows.assign(categories=pd.Series(changed, index=rows.index, dtype=rows["categories"].dtype))


def _labels(value: object) -> list[str]:
    return [str(label) for label in value] if isinstance(value, list | tuple | np.ndarray) else []


def _split(labels: list[str], known: list[str], layout: FileLayout) -> list[str]:
    """The same in order, a new label only where none before it is the same: 3 and 3.0 are one."""
    spelled = {label_spelling(label, layout) for label in labels if label in known}
    found: list[str] = []
    for label in labels:
        if label in known:
            found.append(label)
            continue
        for part in labels_in(label, layout):
            if label_spelling(part, layout) not in spelled:
                spelled.add(label_spelling(part, layout))
                found.append(part)
    return found


def labels_in(text: str, layout: FileLayout | None = None) -> list[str]:
    """The labels in a text that somebody typed or pasted: parts between lines, semicolons or commas.

    Example:
        >>> labels_in("0,1, 2"), labels_in('"Paris, France", Rome'), labels_in("none")
        (['0', '1', '2'], ['Paris, France', 'Rome'], ['none'])
        >>> labels_in("0,5; 1,5", FileLayout(decimal=",", delimiter=";"))
        ['0,5', '1,5']
    """
    lines = [line for line in re.split(r"[\n\r\t]+", text) if line.strip()]
    # A comma separates nothing where numbers are written with one.
    semicolons = ";" in text or (layout is not None and layout.decimal == ",")
    try:
        parts = [*csv.reader(lines, delimiter=";" if semicolons else ",", skipinitialspace=True)]
    except csv.Error:  # longer than any label
        return [text]
    return [part.strip() for line in parts for part in line if part.strip()]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def mark_public(rows: pd.DataFrame, *, public: bool) -> pd.DataFrame:
    """The bulk action: every kept column declared public knowledge, or none."""
    return _with_public(rows, [public and _ticked(keep) for keep in rows["keep"]])


def withdraw_estimates(rows: pd.DataFrame) -> pd.DataFrame:
    """Columns that were estimated privately count as read from the data again."""
    pairs = zip(rows["public"], rows["origin"], strict=True)
    return _with_public(rows, [_ticked(public) and origin != "estimated privately" for public, origin in pairs])


def _with_public(rows: pd.DataFrame, public: list[bool]) -> pd.DataFrame:
    origins = [None if pd.isna(origin) else origin for origin in rows["origin"]]
    changed = [origin_of(ticked, origin) for ticked, origin in zip(public, origins, strict=True)]
    return rows.assign(public=public, origin=changed)
