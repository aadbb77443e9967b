"""How the uploaded file is laid out: one plain line, a statement that it is public, and a form that corrects it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from dpsynth_core.table.file_layout import MAX_FIELDS, MAX_SKIPPED, THOUSANDS, FileLayout
from pages.shared.data.actions import change_layout, declare_layout
from pages.shared.layout import errors_shown
from pages.shared.session import Session

DELIMITERS = {",": "Comma", ";": "Semicolon", "\t": "Tab", "|": "Vertical bar |", " ": "Space"}
ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
DECIMALS = {".": "Point", ",": "Comma"}
THOUSANDS_NAMES = {
    "": "None",
    ",": "Comma",
    ".": "Point",
    " ": "Space",
    "'": "Apostrophe",
    "\u00a0": "No-break space",
    "\u202f": "Narrow no-break space",
}
MAX_SHEET_ROWS = 10_000_000


def edit_layout(session: Session) -> None:
    """The layout in one line, whether it is public, and the folded form; nothing where the table came from no file."""
    work = session.work
    layout = work.data.layout
    if layout is None:
        return
    st.text(f"Layout of the file: {layout.sentence()}.")
    if work.data.server is not None and layout.format == "text":
        st.caption("Whoever runs this server has declared it.")
        return
    # Without a key: only another answer, as the buttons below or a loaded schema bring it, makes another box.
    public = st.checkbox(
        "The layout is public knowledge: anyone could know it without the data.",
        value=work.layout_public,
        help="What a row means must not depend on other rows, so the file is read by a layout that is stated, not "
        "guessed. If the line above is wrong, correct the layout before you state it.",
        key=f"layout_public_{session.draft_version}",
    )
    if public != work.layout_public:
        declare_layout(session, public=public)
        st.rerun()
    if work.data.server is not None:
        return
    with st.expander("Correct the layout"):
        if work.has_runs:
            st.caption(
                "There are runs on this table as it is read now. To read the file in another way, upload it again."
            )
            return
        st.caption("The file is read again by what you enter here. Columns that you have declared stay declared.")
        corrected = ask_layout(layout, len(work.data.table.columns), key=f"layout_{session.draft_version}")
        if corrected is not None:
            with errors_shown("The layout was not changed."):
                with st.spinner("Reading the file"):
                    change_layout(session, replace(layout, **corrected))
                st.rerun()


def ask_layout(layout: FileLayout, columns: int, *, key: str) -> dict[str, Any] | None:
    """A form with the facts that a format has; what was entered, once it is submitted."""
    with st.form(key):
        values: dict[str, Any] = {}
        if layout.format == "text":
            values |= _ask_text(layout, key)
        if layout.format == "excel":
            values |= _ask_sheet(layout, key)
        if layout.format != "parquet":
            values |= _ask_rows(layout, columns, key)
        values |= _ask_signs(layout, key)
        return values if st.form_submit_button("Read the file this way", key=f"{key}_submit") else None


def _ask_text(layout: FileLayout, key: str) -> dict[str, Any]:
    left, right = st.columns(2)
    return {
        "delimiter": left.selectbox(
            "Between two cells",
            _with(DELIMITERS, layout.delimiter),
            index=_index(DELIMITERS, layout.delimiter),
            format_func=lambda mark: DELIMITERS.get(mark, mark),
            accept_new_options=True,
            key=f"{key}_delimiter",
        ),
        "encoding": right.selectbox(
            "Encoding",
            _with(ENCODINGS, layout.encoding),
            index=_index(ENCODINGS, layout.encoding),
            format_func=lambda name: ENCODINGS.get(name, name),
            accept_new_options=True,
            help="A byte that the encoding does not have spoils its own cell only.",
            key=f"{key}_encoding",
        ),
        "quoting": left.checkbox(
            "Cells may be in double quotation marks",
            layout.quoting,
            help="A quotation mark that is never closed makes the whole file unreadable. If the file has none around "
            "its cells, clear this.",
            key=f"{key}_quoting",
        ),
        "space_after_delimiter": right.checkbox(
            "Blanks may precede quotation marks", layout.space_after_delimiter, key=f"{key}_space"
        ),
    }


def _ask_sheet(layout: FileLayout, key: str) -> dict[str, Any]:
    left, middle, right = st.columns(3)
    sheet = left.text_input(
        "Sheet", layout.sheet or "", help="Empty for the first sheet with data.", key=f"{key}_sheet"
    )
    return {
        "sheet": sheet or None,
        "rows": middle.number_input(
            "Rows of data",
            1,
            MAX_SHEET_ROWS,
            layout.rows,
            help="A sheet does not show empty rows at its end. Leave empty to read as far as there are cells.",
            key=f"{key}_rows",
        ),
        "skip_columns": right.number_input(
            "Columns to the left of the table", 0, MAX_SKIPPED, layout.skip_columns, key=f"{key}_skip_columns"
        ),
    }


def _ask_rows(layout: FileLayout, columns: int, key: str) -> dict[str, Any]:
    left, right = st.columns(2)
    skipped = left.number_input("Lines above the table", 0, MAX_SKIPPED, layout.skip_rows, key=f"{key}_skip_rows")
    fields = right.number_input(
        "Number of columns",
        1,
        MAX_FIELDS,
        layout.fields or columns,
        help="Used where the first row holds no column names, and on a sheet.",
        key=f"{key}_fields",
    )
    header = left.checkbox("The first row holds the column names", layout.header, key=f"{key}_header")
    named = header and layout.format == "text"
    return {"skip_rows": skipped, "header": header, "fields": None if named else fields}


def _ask_signs(layout: FileLayout, key: str) -> dict[str, Any]:
    left, right = st.columns(2)
    decimal = left.selectbox(
        "Decimal sign",
        list(DECIMALS),
        index=list(DECIMALS).index(layout.decimal),
        format_func=lambda mark: DECIMALS[mark],
        key=f"{key}_decimal",
    )
    thousands = right.selectbox(
        "Thousands sign",
        list(THOUSANDS),
        index=THOUSANDS.index(layout.thousands),
        format_func=lambda mark: THOUSANDS_NAMES[mark],
        key=f"{key}_thousands",
    )
    missing = st.text_area(
        "Cells that count as missing, one per line",
        "\n".join(marker for marker in layout.missing if marker),
        help="Empty cells always do.",
        key=f"{key}_missing",
    )
    markers = ("", *(line.strip() for line in missing.splitlines() if line.strip()))
    return {"decimal": decimal, "thousands": thousands, "missing": markers}


def _with(options: dict[str, str], value: str) -> list[str]:
    return [*options, *(() if value in options else (value,))]


def _index(options: dict[str, str], value: str) -> int:
    return _with(options, value).index(value)
