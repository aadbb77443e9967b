"""Proposing a schema by looking at the table.

Everything proposed here was read from the data and is marked so: used as it is, it voids every guarantee. It saves
typing; only a person can state that a fact is public.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import SchemaError
from dpsynth_core.table.cells import (
    DEFAULT_LAYOUT,
    column_dates,
    column_labels,
    column_numbers,
    column_texts,
    is_missing,
)
from dpsynth_core.table.column import DEFAULT_BINS, MAX_DECIMALS, MAX_INTEGER, Column
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.schema import Schema

MAX_SUGGESTED_CATEGORIES = 60
"""A text column with more distinct values is not proposed as categorical."""
MAX_SUGGESTED_LEVELS = 200
"""An integer or date column with a wider range is proposed with bins."""
IDENTIFIER_SHARE = 0.95
"""A text or integer column with at least this share of distinct values is taken for an identifier."""
MIN_ROWS_FOR_IDENTIFIER = 20
MIN_NUMBER_SHARE, MAX_WORDS = 0.5, 10
"""A column of numbers may have this many different words among them ("?", "<5"), in fewer than half of its cells."""
MIN_NUMBERS, MIN_NUMBERS_AMONG_RANGES = 5, 20
"""Different numbers from which words among them are no labels; more are asked where a word has digits, like "5+"."""
IDENTIFIER = "Its values are all different, so it identifies rows instead of describing them."

WORDS_AMONG_NUMBERS = (
    'Most of its cells are numbers and some are words, such as "?" or "<5". It is suggested as numbers, and the words '
    "count as missing. To keep them, declare it as categorical and list every label."
)

WORDS_AMONG_NUMBERS_OF_SEVERAL = (
    'Most of their cells are numbers and some are words, such as "?" or "<5". They are suggested as numbers, and the '
    "words count as missing. To keep the words of a column, declare it as categorical and list every label."
)

_DATE_FORMATS = (None, "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9xX]")
_ISO_START = re.compile(r"\s*\d{4}-\d{2}-\d{2}")
_IDENTIFIER_NAME = re.compile(r"(^|[^a-z])(id|uuid|guid|ssn|key|index|email|phone)([^a-z]|$)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A proposed schema and the columns it leaves out."""

    schema: Schema
    dropped: dict[str, str]
    """Columns that should not enter a synthetic table, each with the reason as a sentence."""
    words: tuple[str, ...] = ()
    """Columns proposed as numbers although some of their cells hold words, which count as missing."""


def suggest(table: pd.DataFrame) -> Suggestion:
    """Propose the file's layout, kinds, rounded bounds, categories and missing levels, and which columns to drop."""
    columns: list[Column] = []
    dropped: dict[str, str] = {}
    words: list[str] = []
    layout = layout_of(table.attrs)
    for name in table.columns:
        has_words = False
        try:
            proposed, has_words = _propose(str(name), table[name], layout or DEFAULT_LAYOUT)
        except SchemaError:
            proposed = "No range can be declared for values this extreme."
        if has_words:
            words.append(str(name))
        if isinstance(proposed, Column):
            columns.append(proposed)
        else:
            dropped[str(name)] = proposed
    if not columns:
        remedy = "Every column looks like an identifier, free text or is empty; declare a schema by hand."
        raise SchemaError(None, "columns", [], allowed="at least one column that describes rows", remedy=remedy)
    schema = Schema(columns=tuple(columns), file=layout)
    return Suggestion(schema=schema, dropped=dropped, words=tuple(name for name in words if name not in dropped))


def suggest_schema(table: pd.DataFrame) -> Schema:
    """The proposed schema alone; no column is public until a person says so.

    Example:
        >>> suggest_schema(pd.DataFrame({"age": [31, 47, 78]}))["age"].upper
        80
    """
    return suggest(table).schema


def _propose(name: str, series: pd.Series[Any], layout: FileLayout) -> tuple[Column | str, bool]:
    """A column, or why it should be dropped; and whether it is one of numbers with words among them."""
    gone = series.isna()
    if series.dtype == object:
        gone = pd.Series([is_missing(cell, layout) for cell in series], index=series.index)
    nullable, present = bool(gone.any()), series[~gone]
    if present.empty:
        return "It has no values.", False
    kind = _kind_of(present)
    if kind == "boolean":
        return Column(name=name, kind="boolean", nullable=nullable), False
    if kind == "date":
        days, _ = column_dates(present, None, layout)
        return _propose_date(name, days, nullable, None), False
    values = column_numbers(present, layout)
    if kind == "number" or (not np.isnan(values).any() and not _are_codes(present)):
        return _propose_number(name, values, nullable), False
    if _are_numbers_with_words(present, values, layout):
        return _propose_number(name, values[~np.isnan(values)], nullable=True), True
    return _propose_text(name, present, nullable, layout), False


def _kind_of(present: pd.Series[Any]) -> str:
    """What the cells say of themselves: by the type of the column, or by the types of all cells where those differ."""
    if present.dtype.kind in "biufM":
        return {"b": "boolean", "M": "date"}.get(present.dtype.kind, "number")
    if present.dtype == object:
        types = {type(cell) for cell in present}
        return "boolean" if types == {bool} else "date" if types <= {date, datetime, pd.Timestamp} else "mixed"
    return "boolean" if set(present.str.strip().str.casefold().unique()) <= {"true", "false"} else "text"


def _are_codes(present: pd.Series[Any]) -> bool:
    """Whether numbers are rather codes or telephone numbers, as a needless zero, a plus or many digits tell."""
    texts = [cell.strip() for cell in present.unique() if isinstance(cell, str)]
    wholes = [text for text in texts if _WHOLE.fullmatch(text)]
    if any(_LEADING_ZERO.match(text) for text in texts):
        return True
    return len(wholes) == len(texts) and any(text.startswith("+") or len(text) > 18 for text in wholes)


def _are_numbers_with_words(present: pd.Series[Any], values: FloatArray, layout: FileLayout) -> bool:
    """Whether a column holds numbers but for a few words: what is unknown or below what can be measured."""
    is_word = np.isnan(values)
    if not np.isfinite(values).any() or is_word.mean() >= MIN_NUMBER_SHARE or _are_codes(present[~is_word]):
        return False
    words = column_texts(present[is_word], layout).unique()
    ranges = any(character.isdigit() for word in words for character in word)
    needed = MIN_NUMBERS_AMONG_RANGES if ranges else MIN_NUMBERS
    return len(words) <= MAX_WORDS and len(np.unique(values[~is_word])) >= needed


def _propose_number(name: str, present: FloatArray, nullable: bool) -> Column | str:
    values = present[np.isfinite(present)]
    if not len(values):
        return "It has no finite values."
    if np.abs(values).max() > 1e15:
        return "Its numbers are too large to suggest a range; to keep it, declare one by hand."
    integral = bool((values == np.rint(values)).all()) and bool(np.abs(values).max() <= MAX_INTEGER / 2)
    distinct = np.unique(values)
    if integral and len(distinct) <= 2:
        labels = tuple(int(v) for v in distinct)
        return Column(name=name, kind="categorical", categories=labels, nullable=nullable)
    if integral and _is_identifier(
        name, len(distinct), len(present), gapless=distinct[-1] - distinct[0] < 1.1 * len(distinct)
    ):
        return IDENTIFIER
    lower, upper = rounded_bounds(float(values.min()), float(values.max()), integral=integral)
    if integral:
        wide = upper - lower + 1 > MAX_SUGGESTED_LEVELS
        bins = DEFAULT_BINS if wide else None
        return Column(name=name, kind="integer", lower=int(lower), upper=int(upper), bins=bins, nullable=nullable)
    decimals = _decimals(values, max(abs(lower), abs(upper)))
    return Column(
        name=name, kind="continuous", lower=lower, upper=upper, bins=DEFAULT_BINS, decimals=decimals, nullable=nullable
    )


def _propose_text(name: str, present: pd.Series[Any], nullable: bool, layout: FileLayout) -> Column | str:
    for date_format in _DATE_FORMATS:
        days = _as_dates(present, date_format, layout)
        if days is not None:
            return _propose_date(name, days, nullable, date_format)
    texts = sorted(column_labels(present, layout).unique())
    if not texts:
        return "It has no values."
    if len(texts) <= MAX_SUGGESTED_CATEGORIES and not _is_identifier(name, len(texts), len(present), gapless=False):
        return Column(name=name, kind="categorical", categories=tuple(texts), nullable=nullable)
    if _is_identifier(name, len(texts), len(present), gapless=True):
        return IDENTIFIER
    return (
        f"It has more than {MAX_SUGGESTED_CATEGORIES} different texts. "
        "To keep it, declare its categories by hand, with an 'other' for the rest."
    )


def _propose_date(name: str, days: IntArray, nullable: bool, date_format: str | None) -> Column:
    first, last = (date.fromordinal(int(np.clip(day, 1, date.max.toordinal()))) for day in (days.min(), days.max()))
    lower, upper = date(first.year, 1, 1), date(last.year, 12, 31)
    wide = (upper - lower).days + 1 > MAX_SUGGESTED_LEVELS
    bins = DEFAULT_BINS if wide else None
    return Column(
        name=name, kind="date", lower=lower, upper=upper, bins=bins, date_format=date_format, nullable=nullable
    )


def _as_dates(present: pd.Series[Any], date_format: str | None, layout: FileLayout) -> IntArray | None:
    """The values as days if every one of them is written that way."""
    texts = column_texts(present, layout)
    if texts.empty or (date_format is None and not texts.str.match(_ISO_START).all()):
        return None
    days, missing = column_dates(texts, date_format, layout)
    return None if missing.any() else days


def _is_identifier(name: str, distinct: int, rows: int, *, gapless: bool) -> bool:
    """Nearly every row has a value of its own, and either the name or the values themselves look like a key."""
    nearly_all = distinct >= IDENTIFIER_SHARE * rows and rows >= MIN_ROWS_FOR_IDENTIFIER
    return nearly_all and (gapless or bool(_IDENTIFIER_NAME.search(name)))


def _decimals(values: np.ndarray[Any, np.dtype[np.float64]], largest: float) -> int | None:
    """How many digits after the point the values use; None if as many as a float has."""
    for digits in range(7):
        if largest * 10**digits > MAX_INTEGER or digits > MAX_DECIMALS:
            return None
        if np.array_equal(np.round(values, digits), values):
            return digits
    return None


def rounded_bounds(low: float, high: float, *, integral: bool = False) -> tuple[float, float]:
    """Bounds rounded outwards to a step that people would choose: 1, 2 or 5 times a power of ten.

    Example:
        >>> rounded_bounds(31, 78, integral=True)
        (30, 80)
    """
    largest = max(abs(low), abs(high))
    width = max((high - low) or largest or 1.0, 1e-9 * largest, 1e-12)
    power = 10.0 ** math.floor(math.log10(width / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width / 10)
    step = max(step, 1.0) if integral else step
    lower, upper = math.floor(low / step) * step, math.ceil(high / step) * step
    if lower >= upper:
        lower, upper = lower - step, upper + step
    if low >= 0:
        lower = max(lower, 0.0)
    # Multiples of 0.1 and the like pick up binary dust; twelve digits are more than the step carries.
    lower, upper = float(f"{lower:.12g}"), float(f"{upper:.12g}")
    return (int(lower), int(upper)) if integral else (min(lower, low), max(upper, high))
