"""How a file is laid out: a declared, public fact about a table, like the bounds of its columns.

Nothing here is read from the rows once it is declared. What a cell means follows from that cell, the layout and the
declared column, so that no record of a file can change what another record means (docs/proofs.md, section 1).
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from dpsynth_core.errors import SchemaError, is_int

FileFormat: TypeAlias = Literal["text", "excel", "parquet"]

DEFAULT_MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")
"""Cells that count as missing unless declared otherwise; "None" and "N" are labels like any other."""
THOUSANDS = ("", ",", ".", " ", "'", "\u00a0", "\u202f")
MAX_MARKERS, MAX_MARKER = 50, 40
MAX_SKIPPED, MAX_FIELDS = 1_000, 100_000

_DELIMITERS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated", "|": "separated by |"}
_ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32", "cp1252": "Windows-1252", "latin-1": "Latin-1"}


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """How the cells of a file are found and how numbers are written in them.

    Example:
        >>> FileLayout(delimiter=";", decimal=",").sentence()
        'semicolon-separated, UTF-8, decimal comma, header in row 1'
    """

    format: FileFormat = "text"
    encoding: str = "utf-8"
    """Of a text file. A byte that it cannot decode becomes a replacement character in its own cell."""
    delimiter: str = ","
    quoting: bool = True
    """Whether a cell may be put in double quotation marks, so that it can hold delimiters and line breaks."""
    space_after_delimiter: bool = False
    """Whether blanks may stand between a delimiter and an opening quotation mark, as in `1, "a, b"`."""
    skip_rows: int = 0
    """Lines above the header, or above the first record where there is no header."""
    header: bool = True
    fields: int | None = None
    """Number of fields in a record; must be declared where there is no header to tell it."""
    decimal: Literal[".", ","] = "."
    thousands: str = ""
    missing: tuple[str, ...] = DEFAULT_MISSING
    """Cells that count as missing, blanks around them ignored. An empty cell always does."""
    sheet: str | None = None
    """Of a workbook; None is its first sheet."""
    skip_columns: int = 0
    """Columns of a sheet to the left of the table."""
    rows: int | None = None
    """Records on a sheet, which does not say where its table ends if the last cells are empty; None: to the last
    cell that is not."""

    def __post_init__(self) -> None:
        for name, value, problem in self._problems():
            if problem:
                raise SchemaError(None, f"file.{name}", value, allowed=problem)

    def _problems(self) -> list[tuple[str, object, str]]:
        """Each field with what is allowed where its value is not."""
        thousands = [mark for mark in THOUSANDS if mark != self.decimal]
        return [
            ("format", self.format, "" if self.format in get_args(FileFormat) else ", ".join(get_args(FileFormat))),
            ("encoding", self.encoding, "" if _is_encoding(self.encoding) else "a text encoding such as utf-8"),
            ("delimiter", self.delimiter, "" if _is_delimiter(self.delimiter) else "one character such as , ; or |"),
            *(
                (name, getattr(self, name), _if_not(isinstance(getattr(self, name), bool), "true or false"))
                for name in ("quoting", "space_after_delimiter", "header")
            ),
            ("skip_rows", self.skip_rows, _if_not(is_int(self.skip_rows, 0, MAX_SKIPPED), f"0 to {MAX_SKIPPED}")),
            (
                "fields",
                self.fields,
                _if_not(
                    is_int(self.fields, 1, MAX_FIELDS)
                    or (self.fields is None and (self.header or self.format == "parquet")),
                    f"a whole number from 1 to {MAX_FIELDS} where there is no header",
                ),
            ),
            (
                "skip_columns",
                self.skip_columns,
                _if_not(is_int(self.skip_columns, 0, MAX_SKIPPED), f"0 to {MAX_SKIPPED}"),
            ),
            ("rows", self.rows, _if_not(self.rows is None or is_int(self.rows, 1, 10**7), "1 to 10000000")),
            ("decimal", self.decimal, _if_not(self.decimal in (".", ","), ". or ,")),
            (
                "thousands",
                self.thousands,
                _if_not(self.thousands in thousands, "nothing or a sign unlike the decimal sign"),
            ),
            ("missing", "a list", _if_not(_are_markers(self.missing), f"up to {MAX_MARKERS} short texts")),
            ("sheet", "a name", _if_not(self.sheet is None or isinstance(self.sheet, str), "text")),
        ]

    def sentence(self) -> str:
        """The layout in one plain line."""
        header = f"header in row {self.skip_rows + 1}" if self.header else "no header"
        if self.format == "parquet":
            return "Parquet"
        if self.format == "excel":
            sheet = "first sheet" if self.sheet is None else f"sheet {self.sheet!r}"
            return f"Excel, {sheet}, {header}"
        decimal = "decimal comma" if self.decimal == "," else "decimal point"
        parts = [
            _DELIMITERS.get(self.delimiter, f"separated by {self.delimiter}"),
            _ENCODINGS.get(self.encoding, self.encoding),
            decimal,
            header,
        ]
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, without those that a format does not have."""
        facts = asdict(self) | {"missing": list(self.missing)}
        unused = {"parquet": _TEXT_ONLY | _ROWS | _SHEET, "excel": _TEXT_ONLY, "text": _SHEET}
        return {name: value for name, value in facts.items() if name not in unused[self.format]}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> FileLayout:
        """A layout from plain JSON values; what is not given takes its default, unknown keys are refused."""
        if not isinstance(facts, Mapping):
            raise SchemaError(None, "file", type(facts).__name__, allowed='an object such as {"delimiter": ","}')
        known = {field.name for field in fields(cls)}
        for key in facts:
            if key not in known:
                raise SchemaError(None, "file", key, allowed=", ".join(sorted(known)))
        values = dict(facts)
        if isinstance(values.get("missing"), list):
            values["missing"] = tuple(values["missing"])
        return cls(**values)


_ATTRIBUTE = "dpsynth_file"


def remember_layout(attributes: dict[Any, Any], layout: FileLayout) -> None:
    """Note in a table's attributes which layout it was read by."""
    attributes[_ATTRIBUTE] = layout.to_dict()


def layout_of(attributes: Mapping[Any, Any]) -> FileLayout | None:
    """The layout that a table was read by; None if it did not come from a file here."""
    facts = attributes.get(_ATTRIBUTE)
    return None if facts is None else FileLayout.from_dict(facts)


_TEXT_ONLY = frozenset({"encoding", "delimiter", "quoting", "space_after_delimiter"})
_ROWS = frozenset({"skip_rows", "header", "fields"})
_SHEET = frozenset({"sheet", "skip_columns", "rows"})


def _if_not(condition: bool, allowed: str) -> str:
    return "" if condition else allowed


def _is_encoding(value: object) -> bool:
    """Whether text can be decoded with it; codecs such as base64 or rot13 are not encodings of text."""
    try:
        return isinstance(value, str) and len(value) <= 40 and codecs.lookup(value)._is_text_encoding
    except (LookupError, ValueError):
        return False


def _is_delimiter(value: object) -> bool:
    # One byte in every encoding that is read byte by byte, and no part of a longer character.
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '"\r\n' and value >= "\t"


def _are_markers(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) <= MAX_MARKERS
        and all(isinstance(marker, str) and len(marker) <= MAX_MARKER and marker == marker.strip() for marker in value)
    )
