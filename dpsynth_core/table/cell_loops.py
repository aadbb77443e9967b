# ruff: noqa: PLR0917  compiled loops take arrays one by one
"""Compiled loops behind reading: finding the cells of a text file, and plain decimals in them.

Slow plain counterparts are in the tests; ``cells.number_cell`` defines what a number is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.jit import compiled

ByteArray: TypeAlias = NDArray[np.uint8]
NarrowArray: TypeAlias = NDArray[np.int32]
OffsetArray: TypeAlias = NDArray[np.int32]
"""Positions in the text of a file: 32 bits, because there are two for every cell."""

_POWERS = 10.0 ** np.arange(23)  # exact doubles, all of them
_LF, _CR, _SPACE, _QUOTE = 10, 13, 32, 34
_PLUS, _MINUS, _ZERO, _NINE = 43, 45, 48, 57
_MAX_DIGITS = 15
"""Of a decimal whose digits, read as a whole number, are an exact double."""


@compiled
def parse_decimals(
    offsets: IntArray, data: ByteArray, present: BoolArray, decimal: int, numbers: FloatArray, done: BoolArray
) -> None:
    """Plain decimals of up to 15 digits; ``done`` says which texts are settled, as a number or as no text at all.

    Digits and a power of ten of at most 22 are exact doubles, so their quotient is correctly rounded (Clinger 1990).
    """
    for row in range(len(present)):
        numbers[row] = np.nan
        done[row] = not present[row]
        if not present[row]:
            continue
        start, stop = offsets[row], offsets[row + 1]
        while start < stop and data[start] == _SPACE:
            start += 1
        while start < stop and data[stop - 1] == _SPACE:
            stop -= 1
        negative = start < stop and data[start] == _MINUS
        if start < stop and (negative or data[start] == _PLUS):
            start += 1
        if stop - start > _MAX_DIGITS + 1 or stop <= start:
            continue
        digits = whole = fraction = 0
        point = False
        plain = True
        for i in range(start, stop):
            byte = data[i]
            if _ZERO <= byte <= _NINE:
                whole = 10 * whole + (byte - _ZERO)
                digits += 1
                fraction += point
            elif byte == decimal and not point:
                point = True
            else:
                plain = False
                break
        if plain and 0 < digits <= _MAX_DIGITS:
            value = whole / _POWERS[fraction]
            numbers[row] = -value if negative else value
            done[row] = True


@compiled
def count_records(
    data: ByteArray, delimiter: int, quoting: bool, spaced: bool, width: int
) -> tuple[int, int, int, int]:
    """Records, fields in a record, and where one begins that has too many or never closes a quotation mark (or -1).

    A width of 0 means that the first record tells how many fields there are.
    """
    records, position, size = 0, 0, len(data)
    while position < size:
        begin, fields = position, 0
        while True:
            fields += 1
            _, stop, quoted, closed = next_field(data, position, delimiter, quoting, spaced)
            if quoted and not closed:
                return records, width, -1, begin
            position = stop + 1
            if stop >= size or data[stop] != delimiter:
                break
        if width == 0:
            width = fields
        if fields > width:
            return records, width, begin, -1
        records += 1
        position = after_line_break(data, stop)
    return records, width, -1, -1


@compiled
def whole_records(data: ByteArray, delimiter: int, quoting: bool, spaced: bool, limit: int) -> int:
    """Where the last record that surely ends in the data ends, or the first ``limit`` of them if that is not 0.

    One that ends with the data may go on in what follows; so may a carriage return, with a line feed.
    """
    position, size, end, records = 0, len(data), 0, 0
    while position < size:
        while True:
            _, stop, quoted, closed = next_field(data, position, delimiter, quoting, spaced)
            if stop >= size or (quoted and not closed):
                return end
            position = stop + 1
            if data[stop] != delimiter:
                break
        if data[stop] == _CR and stop + 1 == size:
            return end
        position = end = after_line_break(data, stop)
        records += 1
        if records == limit:
            return end
    return end


@compiled
def next_field(
    data: ByteArray, position: int, delimiter: int, quoting: bool, spaced: bool
) -> tuple[int, int, bool, bool]:
    """A field from here on: where its content begins, where it ends, whether it is quoted and whether it is closed."""
    size = len(data)
    start = position
    if quoting:
        first = position
        while spaced and first < size and data[first] == _SPACE:
            first += 1
        if first < size and data[first] == _QUOTE:
            stop = closing_quote(data, first + 1) + 1
            if stop > size:
                return first + 1, size, True, False
            while stop < size and data[stop] != delimiter and data[stop] != _LF and data[stop] != _CR:
                stop += 1
            return first + 1, stop, True, True
    stop = start
    while stop < size and data[stop] != delimiter and data[stop] != _LF and data[stop] != _CR:
        stop += 1
    return start, stop, False, True


@compiled
def closing_quote(data: ByteArray, position: int) -> int:
    """The next quotation mark that is not doubled; the end of the data if there is none."""
    size = len(data)
    while position < size:
        if data[position] == _QUOTE:
            if position + 1 < size and data[position + 1] == _QUOTE:
                position += 1
            else:
                return position
        position += 1
    return size


@compiled
def after_line_break(data: ByteArray, position: int) -> int:
    """Where the next record begins."""
    if position + 1 < len(data) and data[position] == _CR and data[position + 1] == _LF:
        return position + 2
    return position + 1


@compiled
def find_fields(
    data: ByteArray,
    delimiter: int,
    quoting: bool,
    spaced: bool,
    starts: OffsetArray,
    stops: OffsetArray,
    quotes: BoolArray,
) -> None:
    """Fill in where each field of each record lies; a field that a record does not have keeps its start of -1."""
    position, size, record = 0, len(data), 0
    while position < size:
        field = 0
        while True:
            start, stop, quoted, _ = next_field(data, position, delimiter, quoting, spaced)
            starts[field, record], stops[field, record], quotes[field, record] = start, stop, quoted
            field += 1
            position = stop + 1
            if stop >= size or data[stop] != delimiter:
                break
        record += 1
        position = after_line_break(data, stop)


@compiled
def copy_fields(
    data: ByteArray,
    starts: OffsetArray,
    stops: OffsetArray,
    quotes: BoolArray,
    markers: ByteArray,
    marker_ends: IntArray,
    text: ByteArray,
    offsets: IntArray,
    present: BoolArray,
) -> int:
    """One column's texts, end to end; those that say that a value is missing are left out. Returns their length."""
    at = 0
    for row in range(len(starts)):
        offsets[row] = at
        present[row] = False
        if starts[row] >= 0:
            end = copy_field(data, starts[row], stops[row], quotes[row], text, at)
            present[row] = not is_marker(text, at, end, markers, marker_ends)
            if present[row]:
                at = end
    offsets[len(starts)] = at
    return at


@compiled
def copy_field(data: ByteArray, start: int, stop: int, quoted: bool, text: ByteArray, at: int) -> int:
    """The content of a field: within quotation marks a doubled one is one; what follows the closing one is kept."""
    i = start
    inside = quoted
    while i < stop:
        if inside and data[i] == _QUOTE:
            if i + 1 < stop and data[i + 1] == _QUOTE:
                i += 1
            else:
                inside = False
                i += 1
                continue
        text[at] = data[i]
        at += 1
        i += 1
    return at


@compiled
def is_marker(text: ByteArray, start: int, stop: int, markers: ByteArray, ends: IntArray) -> bool:
    """Whether a text, blanks around it ignored, is empty or one of the markers of a missing value."""
    while start < stop and text[start] <= _SPACE and text[start] in (9, 10, 11, 12, 13, 32):
        start += 1
    while start < stop and text[stop - 1] <= _SPACE and text[stop - 1] in (9, 10, 11, 12, 13, 32):
        stop -= 1
    if start == stop:
        return True
    begin = 0
    for end in ends:
        if end - begin == stop - start:
            equal = True
            for i in range(end - begin):
                if text[start + i] != markers[begin + i]:
                    equal = False
                    break
            if equal:
                return True
        begin = end
    return False


@compiled
def add_keys(counts: IntArray, keys: IntArray | NarrowArray) -> None:
    """One more for each key."""
    for row in range(len(keys)):
        counts[keys[row]] += 1


@compiled
def add_pairs(counts: IntArray, first: NarrowArray, second: NarrowArray, size: int) -> None:
    """One more for each pair of cells, ``size`` of which the second direction has."""
    for row in range(len(first)):
        counts[first[row] * size + second[row]] += 1


@compiled
def add_triples(
    counts: IntArray,
    first: NarrowArray,
    second: NarrowArray,
    third: NarrowArray,
    sizes: tuple[int, int],
) -> None:
    """One more for each three cells; ``sizes`` are those of the second and the third direction."""
    for row in range(len(first)):
        counts[(first[row] * sizes[0] + second[row]) * sizes[1] + third[row]] += 1


def warm_up() -> None:
    """Compile the loops."""
    counts, codes = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32)
    add_keys(counts, np.zeros(1, dtype=np.int64))
    add_keys(counts, codes)
    add_pairs(counts, codes, codes, 1)
    add_triples(counts, codes, codes, codes, (1, 1))
    data = np.frombuffer(b'a,"b"\n1,\n', dtype=np.uint8)
    columns: Any = (
        np.full((2, 2), -1, dtype=np.int32),
        np.zeros((2, 2), dtype=np.int32),
        np.zeros((2, 2), dtype=np.bool_),
    )
    count_records(data, 44, True, False, 0)
    whole_records(data, 44, True, False, 0)
    find_fields(data, 44, True, False, *columns)
    nothing = np.zeros(0, dtype=np.uint8)
    offsets, present = np.zeros(3, dtype=np.int64), np.zeros(2, dtype=np.bool_)
    copy_fields(
        data,
        columns[0][0],
        columns[1][0],
        columns[2][0],
        nothing,
        np.zeros(0, dtype=np.int64),
        np.empty(9, dtype=np.uint8),
        offsets,
        present,
    )
    parse_decimals(offsets, data, present, 46, np.zeros(2), np.zeros(2, dtype=np.bool_))
