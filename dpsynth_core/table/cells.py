"""What one cell means: a number, a date, a label or missing, from that cell and declared facts alone.

The functions here are part of the privacy argument (docs/proofs.md, section 1). Each is total: whatever a cell holds,
it gives an answer and never an error, and it looks at no other cell. The same value means the same whichever type
carries it, because a file's writer may choose the type of a column by looking at all of its rows: 27, 27.0, "27" and
Decimal("27.00") are one number, and a date is the same as text, as a timestamp of any unit or as a day.

``number_cell``, ``date_cell`` and ``LabelReader.cell`` define the meaning. ``column_numbers``, ``column_dates`` and
``LabelReader.column`` do the same for a whole column, quickly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.file_layout import FileLayout

DEFAULT_LAYOUT = FileLayout()
"""How numbers are written where no file says otherwise."""

MISSING_LABEL, UNDECLARED_LABEL = -2, -1
_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_INFINITY = re.compile(r"([+-]?)(?:inf|infinity)", re.IGNORECASE)
_YEAR_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
_ISO_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}(?:$|[T ])")
_NUMBERS = bool | int | float | Decimal | Fraction | np.bool_ | np.integer | np.floating
_EPOCH = date(1970, 1, 1).toordinal()
_FAR = 10**12
"""Days beyond any date: what lies outside the calendar is clamped like any other value outside the bounds."""

# -------------------------------------------------------------------------------------------------------------- missing


def is_missing(cell: object, layout: FileLayout) -> bool:
    """Whether a cell counts as missing, whatever its column is."""
    if isinstance(cell, str):
        text = cell.strip()
        return not text or text in layout.missing
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | np.floating | np.datetime64):
        return bool(cell != cell)  # noqa: PLR0124  NaN and NaT differ from themselves
    return cell is None or cell is pd.NA or cell is pd.NaT


# -------------------------------------------------------------------------------------------------------------- numbers


def number_cell(cell: object, layout: FileLayout = DEFAULT_LAYOUT) -> float:
    """The number in a cell; NaN where there is none.

    Example:
        >>> number_cell(" 1.234,5 ", FileLayout(decimal=",", thousands="."))
        1234.5
        >>> number_cell("27 or more")
        nan
    """
    if is_missing(cell, layout):
        return math.nan
    if isinstance(cell, str):
        return number_in_text(cell, layout)
    if isinstance(cell, complex | np.complexfloating):
        return (
            float(cell.real) if cell.imag == 0 else math.nan
        )  # how an array stores numbers beside one that is complex
    if not isinstance(cell, _NUMBERS) or isinstance(cell, np.timedelta64):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def number_in_text(text: str, layout: FileLayout) -> float:
    """The number that a text spells out in full, in the layout's signs; NaN if it does not."""
    text = text.strip()
    if _number_pattern(layout.decimal, layout.thousands).fullmatch(text):
        if layout.thousands:
            text = text.replace(layout.thousands, "")
        return float(text.replace(layout.decimal, "."))
    infinite = _INFINITY.fullmatch(text)
    return math.nan if infinite is None else -math.inf if infinite[1] == "-" else math.inf


_patterns: dict[tuple[str, str], re.Pattern[str]] = {}


def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    if (decimal, thousands) not in _patterns:
        point, digits = re.escape(decimal), "[0-9]+"
        if thousands:
            digits = f"(?:[0-9]+|[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+)"
        number = f"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        _patterns[decimal, thousands] = re.compile(number)
    return _patterns[decimal, thousands]


def column_numbers(series: pd.Series[Any], layout: FileLayout = DEFAULT_LAYOUT) -> FloatArray:
    """``number_cell`` of every cell."""
    dtype = series.dtype
    if isinstance(dtype, pd.StringDtype):
        return text_numbers(_texts(series), layout)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.array(series, dtype=np.float64)
    return _each(series, lambda cell: number_cell(cell, layout), np.dtype(np.float64))


def text_numbers(texts: pa.Array, layout: FileLayout) -> FloatArray:
    """``number_cell`` of every text: plain decimals by a compiled loop, what is left one distinct text at a time."""
    from dpsynth_core.table.cell_loops import parse_decimals  # noqa: PLC0415  loads the compiler

    offsets, data, present = string_buffers(texts)
    numbers = np.empty(len(texts), dtype=np.float64)
    done = np.empty(len(texts), dtype=np.bool_)
    parse_decimals(offsets, data, present, ord(layout.decimal), numbers, done)
    rest = np.flatnonzero(~done)
    if len(rest):
        spelled = texts.take(pa.array(rest)).dictionary_encode()
        meanings = [number_cell(text, layout) for text in spelled.dictionary.to_pylist()]
        numbers[rest] = np.array(meanings, dtype=np.float64)[spelled.indices.to_numpy(zero_copy_only=False)]
    if layout.missing:
        # A marker that reads as a number, such as -99, is found last: few columns have one.
        markers = [m for m in layout.missing if not math.isnan(number_in_text(m, layout))]
        if markers:
            numbers[_flags(pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(markers, texts.type)))] = math.nan
    return numbers


# ---------------------------------------------------------------------------------------------------------------- dates


def date_cell(cell: object, date_format: str | None, layout: FileLayout = DEFAULT_LAYOUT) -> int | None:
    """The day in a cell as a proleptic ordinal; None where there is none.

    A moment with an offset from UTC counts on its UTC day. A number counts as its digits, 20241231.

    Example:
        >>> date_cell("1970-01-02", None) == date_cell("2/1/70", "%d/%m/%y") == _EPOCH + 1
        True
    """
    if is_missing(cell, layout):
        return None
    if isinstance(cell, date):  # a datetime is one too
        return _utc_day(cell) if isinstance(cell, datetime) else cell.toordinal()
    if isinstance(cell, np.datetime64):
        return int(cell.astype("datetime64[D]").astype(np.int64)) + _EPOCH
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, str | _NUMBERS):
        return None
    try:
        return _day_in_text(cell_text(cell), date_format)
    except (ValueError, OverflowError, re.error):
        return None


def _day_in_text(text: str, date_format: str | None) -> int | None:
    if date_format is not None:
        return _utc_day(datetime.strptime(text, date_format))
    partial = _YEAR_MONTH.fullmatch(text)
    if partial:
        return date(int(partial[1]), int(partial[2] or 1), 1).toordinal()
    return _utc_day(datetime.fromisoformat(text)) if _ISO_DAY.match(text) else None


def _utc_day(moment: datetime) -> int:
    try:
        return (moment if moment.tzinfo is None else moment.astimezone(UTC)).toordinal()
    except OverflowError:  # at either end of the calendar
        return moment.toordinal()


def column_dates(
    series: pd.Series[Any], date_format: str | None, layout: FileLayout = DEFAULT_LAYOUT
) -> tuple[IntArray, BoolArray]:
    """``date_cell`` of every cell: ordinals, and which cells have none."""
    if series.dtype.kind == "M":
        moments = series.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(series.dtype, "tz", None) else series
        days = moments.to_numpy().astype("datetime64[D]")
        missing = np.isnat(days)
        return np.where(missing, 0, days.astype(np.int64)) + _EPOCH, missing

    def day(cell: object) -> int:
        found = date_cell(cell, date_format, layout)
        return -_FAR if found is None else found

    ordinals = _each(series, day, np.dtype(np.int64))
    missing = ordinals == -_FAR
    return np.where(missing, _EPOCH, ordinals), missing


# --------------------------------------------------------------------------------------------------------------- labels


def cell_text(cell: object) -> str:  # noqa: PLR0911  one for each type that a cell can have
    """The text by which a cell is recognised: without blanks around it, whole numbers without a point.

    Example:
        >>> cell_text(3.0), cell_text(Decimal("2.50")), cell_text(datetime(2024, 1, 2))
        ('3', '2.5', '2024-01-02')
    """
    if isinstance(cell, str):
        return cell.strip()
    if is_missing(cell, DEFAULT_LAYOUT):
        return ""
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, _NUMBERS | complex) and not isinstance(cell, np.timedelta64):
        return _number_text(cell)
    if isinstance(cell, np.datetime64):
        return _moment_text(pd.Timestamp(cell.astype("datetime64[us]")).to_pydatetime())
    if isinstance(cell, date | time):
        return _moment_text(cell) if isinstance(cell, datetime) else cell.isoformat()
    return ""


def _moment_text(moment: datetime) -> str:
    midnight = moment.tzinfo is None and moment.time() == time.min
    return moment.date().isoformat() if midnight else moment.isoformat(" ")


def column_texts(series: pd.Series[Any], layout: FileLayout = DEFAULT_LAYOUT) -> pd.Series[Any]:
    """``cell_text`` of every cell that is not missing, as text."""
    texts = _each(series, lambda cell: None if is_missing(cell, layout) else cell_text(cell) or None, np.dtype(object))
    return pd.Series(texts, dtype="str").dropna()


def column_labels(series: pd.Series[Any], layout: FileLayout = DEFAULT_LAYOUT) -> pd.Series[Any]:
    """``label_spelling`` of every cell that is not missing, as text."""

    def spelled(cell: object) -> str | None:
        return None if is_missing(cell, layout) else label_spelling(cell_text(cell), layout) or None

    return pd.Series(_each(series, spelled, np.dtype(object)), dtype="str").dropna()


def label_spelling(text: str, layout: FileLayout = DEFAULT_LAYOUT) -> str:
    """One spelling for a label that is a number: without needless zeros at its end.

    Example:
        >>> [label_spelling(text) for text in ("3.0", "3", "2.50", "<5", "007.0", "30")]
        ['3', '3', '2.5', '<5', '007.0', '30']
    """
    whole, point, digits = text.partition(layout.decimal)
    if not point or _is_code(text) or not re.fullmatch("[+-]?[0-9]+", whole) or not re.fullmatch("[0-9]*", digits):
        return text
    digits = digits.rstrip("0")
    return f"{whole}{point}{digits}" if digits else whole


def _number_text(number: Any) -> str:
    if isinstance(number, int | np.integer) and abs(int(number)) < _FAR**2:  # Python spells out no int of any length
        return str(int(number))
    value = number_cell(number)
    if math.isnan(value):
        return ""
    if math.isfinite(value) and value == math.floor(value) and abs(value) <= 2**53:
        return str(int(value))
    return repr(value)


LabelKey: TypeAlias = str


class LabelReader:
    """Recognises the declared labels of one column."""

    def __init__(self, column: Column, layout: FileLayout = DEFAULT_LAYOUT) -> None:
        self._layout = layout
        self._is_boolean = column.kind == "boolean"
        self._index = {self._key(cell_text(label)): index for index, label in enumerate(column.labels)}
        if self._is_boolean:
            words = {word: code for code, group in enumerate((_FALSE, _TRUE)) for word in group}
            self._index = {**words, **self._index}
        self._by_number = self._numeric_labels(column)

    def _key(self, text: str) -> LabelKey:
        return text.casefold() if self._is_boolean else text

    def _numeric_labels(self, column: Column) -> dict[float, int]:
        """Labels that are numbers, so that 3, "3.0" and, with a decimal comma, "3,0" are one.

        Texts with a needless zero in front are codes, not numbers: "007" is not "7".
        """
        numbers: dict[float, int] = {}
        for index, label in enumerate(column.labels):
            number = self._as_number(label)
            if number in numbers:
                return {}  # declared as different, so they are
            if number is not None:
                numbers[number] = index
        return numbers

    def _as_number(self, cell: object) -> float | None:
        if isinstance(cell, bool | np.bool_) or (isinstance(cell, str) and _is_code(cell.strip())):
            return None
        number = number_cell(cell, self._layout)
        return None if math.isnan(number) else number

    def cell(self, cell: object) -> int:
        """The index of a cell's label, or ``UNDECLARED_LABEL`` or ``MISSING_LABEL``."""
        if is_missing(cell, self._layout):
            return MISSING_LABEL
        text = cell_text(cell)
        if not text:
            return MISSING_LABEL  # of a type that no label has
        index = self._index.get(self._key(text))
        if index is None and self._by_number and (number := self._as_number(cell)) is not None:
            index = self._by_number.get(number)
        return UNDECLARED_LABEL if index is None else index

    def column(self, series: pd.Series[Any]) -> IntArray:
        """``cell`` of every cell."""
        return _each(series, self.cell, np.dtype(np.int64))


def _is_code(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


# -------------------------------------------------------------------------------------------------------- whole columns


def _each(series: pd.Series[Any], meaning: Callable[[object], Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A cell function over a column, asked once for each distinct cell: one of another type is another cell."""
    if isinstance(series.dtype, pd.StringDtype):
        coded = _texts(series).dictionary_encode()
        meanings = [meaning(text) for text in [*coded.dictionary.to_pylist(), None]]
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(np.array(meanings, dtype=dtype)[codes])
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        distinct, codes = np.unique(series.to_numpy(), return_inverse=True)
        return np.array([meaning(cell) for cell in distinct], dtype=dtype)[codes]
    # True, 1 and Decimal(1) are equal and share a hash, so the type is part of the key.
    answers: dict[tuple[type, object], Any] = {}
    out = np.empty(len(series), dtype=dtype)
    for row, cell in enumerate(series.astype(object).to_numpy()):
        key = (type(cell), cell)
        try:
            out[row] = answers[key] if key in answers else answers.setdefault(key, meaning(cell))
        except TypeError:  # a cell that has no hash is asked by itself
            out[row] = meaning(cell)
    return out


def _texts(series: pd.Series[Any]) -> pa.Array:
    texts = pa.array(series, type=pa.large_string(), from_pandas=True)
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def string_buffers(texts: pa.Array) -> tuple[IntArray, NDArray[np.uint8], BoolArray]:
    """Where each text begins, all their bytes, and which texts are there."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return starts, content, _flags(texts.is_valid())


def _flags(condition: Any) -> BoolArray:
    return np.array(condition.to_numpy(zero_copy_only=False), dtype=np.bool_)
