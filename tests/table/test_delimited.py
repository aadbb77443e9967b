"""Text files by a declared layout: total, record by record, the same as a slow plain reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.delimited import as_utf8, read_fields

PLAIN = FileLayout(missing=())


def cut(data: bytes, layout: FileLayout = PLAIN) -> list[list[str | None]]:
    """The header, if any, and the cells of each column."""
    header, columns = read_fields(data, layout)
    titles: list[str | None] = list(header) if layout.header else []
    return [[*titles[i : i + 1], *column.to_pylist()] for i, column in enumerate(columns)]


def slow_records(text: str, layout: FileLayout) -> list[list[str]] | None:
    """The grammar, character by character; None where a quotation mark is never closed."""
    records, i = [], 0
    while i < len(text):
        record = []
        while True:
            field, i, closed = slow_field(text, i, layout)
            if not closed:
                return None
            record.append(field)
            if i >= len(text) or text[i] != layout.delimiter:
                break
            i += 1
        records.append(record)
        i += 2 if text[i : i + 2] == "\r\n" else 1
    return records


def slow_field(text: str, i: int, layout: FileLayout) -> tuple[str, int, bool]:
    first = i
    while layout.space_after_delimiter and text[first : first + 1] == " ":
        first += 1
    out = ""
    if layout.quoting and text[first : first + 1] == '"':
        i = first + 1
        while True:
            if i >= len(text):
                return "", i, False
            if text[i : i + 2] == '""':
                out, i = out + '"', i + 2
            elif text[i] == '"':
                i += 1
                break
            else:
                out, i = out + text[i], i + 1
    while i < len(text) and text[i] not in (layout.delimiter, "\n", "\r"):
        out, i = out + text[i], i + 1
    return out, i, True


def columns_of(records: list[list[str]], width: int) -> list[list[str | None]]:
    padded = [[*record, *[None] * (width - len(record))] for record in records]
    # An empty cell is missing, in whatever blanks it comes.
    return [
        [cell if cell and cell.strip(" \t\n\r\v\f") else None for cell in column]
        for column in zip(*padded, strict=True)
    ]


layouts = st.builds(
    FileLayout,
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.booleans(),
    space_after_delimiter=st.booleans(),
    header=st.just(False),
    fields=st.just(4),
    missing=st.just(()),
)
structure = st.text(st.sampled_from('a1 ,;\t|"\n\ré€'), max_size=40)


@given(structure, layouts)
def test_every_text_is_cut_as_the_slow_reading_cuts_it(text: str, layout: FileLayout) -> None:
    expected = slow_records(text, layout)
    if expected is None or any(len(record) > 4 for record in expected):
        with pytest.raises(IntakeError):
            read_fields(text.encode(), layout)
        return
    found = cut(text.encode(), layout)
    assert found == (columns_of(expected, 4) if expected else [[]] * 4)


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=8), st.data())
def test_any_bytes_of_one_record_leave_the_others_alone(cells: list[bytes], data: st.DataObject) -> None:
    """Whatever bytes stand in a cell, but for those that end a record or open a quotation."""
    clean = [bytes(byte for byte in cell if byte not in b'\n\r,"') for cell in cells]
    row = data.draw(st.integers(0, len(clean) - 1))
    intruder = bytes(byte for byte in data.draw(st.binary(max_size=12)) if byte not in b'\n\r,"')
    other = [*clean[:row], intruder, *clean[row + 1 :]]

    def read(column: list[bytes]) -> list[str | None]:
        return cut(b"x\n" + b"".join(cell + b"\n" for cell in column), FileLayout())[0][1:]

    before, after = read(clean), read(other)
    assert len(before) == len(after) == len(clean)
    assert [cell for i, cell in enumerate(before) if i != row] == [cell for i, cell in enumerate(after) if i != row]


def test_a_blank_line_is_a_record() -> None:
    assert cut(b"x\n1\n\n2\n")[0] == ["x", "1", None, "2"]
    assert cut(b"x,y\n1,2\n\n") == [["x", "1", None], ["y", "2", None]]


def test_markers_of_missing_values_are_declared() -> None:
    cells = b"x\nNA\n -99 \nn/a\n0\n"
    assert cut(cells, FileLayout(missing=("-99", "n/a")))[0] == ["x", "NA", None, None, "0"]


def test_what_breaks_a_file_as_a_whole_is_refused_without_a_cell() -> None:
    for content in (b'x,y\n1,"secret\n', b"x,y\n1,2,secret\n"):
        with pytest.raises(IntakeError) as caught:
            read_fields(content, FileLayout())
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1", "iso8859-15"])
def test_declared_encodings(encoding: str) -> None:
    assert (
        as_utf8("prix,é€\n".replace("€", "" if encoding == "latin-1" else "€").encode(encoding), encoding)
        == ("prix,é\n" if encoding == "latin-1" else "prix,é€\n").encode()
    )


def test_a_wrong_byte_spoils_its_own_cell_only() -> None:
    found = cut(b"x,y\n\xe9\xff,1\n\xc3,2\n\xc3\xa9,3\n", FileLayout())
    assert found[1] == ["y", "1", "2", "3"]
    assert found[0] == ["x", "\ufffd\ufffd", "\ufffd", "é"]


def test_lines_above_the_header_are_skipped() -> None:
    assert cut(b"sep=;\r\nx;y\n1;2\n", FileLayout(delimiter=";", skip_rows=1))[1] == ["y", "2"]


@pytest.mark.parametrize(
    "facts",
    [
        {"delimiter": ",,"},
        {"delimiter": "\n"},
        {"delimiter": "€"},
        {"encoding": "base64"},
        {"encoding": "no such"},
        {"decimal": ",", "thousands": ","},
        {"header": False},
        {"missing": "NA"},
        {"missing": [1]},
        {"skip_rows": -1},
        {"format": "xml"},
        {"colour": "red"},
    ],
)
def test_a_layout_that_makes_no_sense_is_refused_by_name(facts: dict[str, object]) -> None:
    with pytest.raises(Exception, match=r"file") as caught:
        FileLayout.from_dict(facts)
    assert "allowed" in str(caught.value)


@given(
    st.sampled_from(
        [
            FileLayout(),
            FileLayout(delimiter=";", decimal=",", thousands="."),
            FileLayout(format="excel", sheet="a"),
            FileLayout(format="parquet"),
            FileLayout(header=False, fields=3),
        ]
    )
)
def test_a_layout_survives_its_dictionary(layout: FileLayout) -> None:
    assert FileLayout.from_dict(layout.to_dict()) == layout
