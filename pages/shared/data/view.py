"""The Data page's parts: mode, table, preview, verdict, pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dpsynth_core.charts.columns import column_chart
from dpsynth_core.charts.domain import pair_size_chart, range_chart
from dpsynth_core.errors import IntakeError
from dpsynth_core.review.wording import cost_line
from dpsynth_core.runs.reading import prepare_reading
from dpsynth_core.table.cells import column_numbers
from dpsynth_core.table.encoding import moved_cells, reading_layout
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.examples.base import MAX_ROWS
from dpsynth_core.table.readers.read import guess_layout
from dpsynth_core.table.schema import Schema
from pages.shared.data.actions import choose_mode, load_example, load_upload
from pages.shared.data.layout_view import ask_layout
from pages.shared.data.leaving import may_leave, show_earlier
from pages.shared.data.server_view import choose_server_table, offers_server_tables
from pages.shared.formatting import big_number, rows_per_cell
from pages.shared.layout import errors_shown, prospect_badge
from pages.shared.session import Session, Source
from pages.shared.table_work import Mode
from pages.shared.upload_limits import let_go
from pages.shared.widgets import plain_list, show_chart

PREVIEW_ROWS = 100
PICTURES_AT_ONCE = 6
MODES: dict[Mode, str] = {
    "teaching": "Teaching: public or simulated data, free",
    "release": "Release: private data, every result for the public uses up some of its privacy budget",
}

SOURCES: dict[Source, str] = {"example": "An example", "file": "My own file", "server": "A table on this server"}
_MODE_ASKED = "mode_asked"
"""How often the visitor was asked about another mode and stayed."""
_UNREAD = "unread_file"
"""Of a file that could not be read as it seems to be laid out."""


def choose_mode_control(session: Session) -> None:
    """Teaching or release."""
    chosen = st.radio(
        "Mode",
        list(MODES),
        index=list(MODES).index(session.mode),
        format_func=lambda mode: MODES[mode],
        horizontal=True,
        label_visibility="collapsed",
        key=f"mode_{session.mode}_{st.session_state.get(_MODE_ASKED, 0)}",
    )
    title = f"Switch to {chosen} mode?"
    if may_leave(session, pressed=chosen != session.mode, key="mode", title=title, stay=_stay_in_mode):
        with errors_shown("The mode was not changed."):
            with st.spinner("Looking up the data set's account"):
                choose_mode(session, chosen)
            st.rerun()


def _stay_in_mode() -> None:
    """The control must show the mode that applies, so it begins afresh."""
    st.session_state[_MODE_ASKED] = st.session_state.get(_MODE_ASKED, 0) + 1


def choose_data(session: Session) -> None:
    """An example, a file, or a table on this server where there are any."""
    offered = [each for each in SOURCES if each != "server" or offers_server_tables(session)]
    if st.session_state.get("source") not in offered:
        st.session_state["source"] = session.source if session.source in offered else offered[0]
    session.source = st.radio(
        "Source",
        offered,
        format_func=lambda source: SOURCES[source],
        horizontal=True,
        label_visibility="collapsed",
        key="source",
    )
    {"example": _choose_example, "file": _choose_file, "server": choose_server_table}[session.source](session)
    show_earlier(session)


def _choose_example(session: Session) -> None:
    st.session_state.setdefault("example_key", session.example or next(iter(EXAMPLES)))
    key = st.selectbox("Example", list(EXAMPLES), format_func=lambda k: EXAMPLES[k].title, key="example_key")
    session.example, chosen = key, EXAMPLES[key]
    st.caption(f"{chosen.summary} {chosen.source}")
    rows = None
    if chosen.is_simulated:
        # Of the table in use, where it is this example: a link elsewhere may have chosen the size.
        work = session.current
        first = work.n if work is not None and work.data.example == key else chosen.default_rows
        rows = st.number_input(
            "Rows to simulate", 1, MAX_ROWS, first, step=100, key=f"rows_{key}_{session.tables_used}"
        )
    pressed = st.button("Use this example", type="primary", key="use_example")
    if may_leave(session, pressed=pressed, key="use_example", title="Use another table?"):
        with errors_shown("This example cannot be used."):
            load_example(session, key, rows)
            st.rerun()


def _choose_file(session: Session) -> None:
    prepare_reading()
    allowed = True
    if session.mode == "teaching":
        allowed = st.checkbox("This file holds only public or simulated data.", key="upload_is_public")
        st.caption("For private data switch to release mode above.")
    file = st.file_uploader(
        "CSV, TSV, Parquet or Excel (.xlsx), at most 200 MB",
        disabled=not allowed,
        key=f"upload_{session.mode}_{session.tables_used}",
    )
    if file is None or not allowed:
        return
    pressed = st.button("Use this file", type="primary", key="use_file")
    if may_leave(session, pressed=pressed, key="use_file", title="Use another table?"):
        st.session_state.pop(_UNREAD, None)
        with errors_shown("This file cannot be used."):
            with st.spinner("Reading the file"):
                _load(session, file)
            st.rerun()
    if st.session_state.get(_UNREAD) == file.file_id:
        _ask_how_to_read(session, file)


def _load(session: Session, file: UploadedFile) -> None:
    try:
        load_upload(session, file.name, file.getvalue())
    except IntakeError:
        st.session_state[_UNREAD] = file.file_id
        raise
    let_go(file)


def _ask_how_to_read(session: Session, file: UploadedFile) -> None:
    """For a text that is no table by the layout that was guessed: perhaps it is one by another."""
    guess = guess_layout(file.getvalue())
    if guess is None:
        return
    st.text(f"It was read as {guess.sentence()}. If that is wrong, correct it:")
    corrected = ask_layout(guess, guess.fields or 1, key="unread_layout")
    if corrected is not None:
        with errors_shown("This file cannot be used."):
            with st.spinner("Reading the file"):
                load_upload(session, file.name, file.getvalue(), replace(guess, **corrected))
                let_go(file)
            st.session_state.pop(_UNREAD)
            st.rerun()


def show_preview(session: Session) -> bool:
    """The first rows at hand; returns whether private content may be shown on this page."""
    data = session.work.data
    table = data.table
    st.text(f"{data.title}: {data.n:,} rows, {len(table.columns)} columns")
    if data.basis:
        st.caption(
            f"The rows stay on the server. What this page shows of them is {data.basis}, drawn at random by position; "
            "a release is made from all of them."
        )
    visible = True
    if session.mode == "release":
        visible = st.toggle(
            "Show rows and pictures (private: only in front of people who may see this data)", key="show_private"
        )
    if visible:
        shown = _with_numbers(table.head(PREVIEW_ROWS), session.schema)
        st.dataframe(shown, height=245, alt="The first rows of the table")
    return visible


def _with_numbers(rows: pd.DataFrame, schema: Schema | None) -> pd.DataFrame:
    """The cells of a text file as numbers where their column holds numbers; as they are where one cell does not."""
    layout, shown = reading_layout(rows), rows.copy()
    for column in schema or ():
        if column.kind in ("integer", "continuous") and isinstance(rows[column.name].dtype, pd.StringDtype):
            numbers = column_numbers(rows[column.name], layout)
            if np.array_equal(np.isnan(numbers), rows[column.name].isna()):
                shown[column.name] = numbers
    return shown


def show_verdict(session: Session) -> None:
    """How large the declared domain is and whether a guarantee can hold."""
    if session.schema is None:
        st.info("Complete the public facts above to see this.", icon=":material/info:")
        return
    schema, rows = session.schema, session.work.n
    cells = schema.domain_size()
    one, two, three = st.columns(3)
    one.metric("Columns used", len(schema.columns), border=True)
    two.metric(
        "Possible cells",
        big_number(cells),
        border=True,
        help="Of all columns together, as declared: every combination of their levels or bins.",
    )
    three.metric(
        "Rows per cell", rows_per_cell(rows, cells), border=True, help="On average, if the rows were spread evenly."
    )
    _explain_guarantee(session)
    chart = pair_size_chart(schema, rows)
    st.markdown(
        "**Which pairs of columns are too fine?** To the right of the line most cells are empty, and noise dominates."
    )
    as_table = st.toggle("Show as table", key="pairs_as_table")
    show_chart(chart, key="pair_sizes", as_table=as_table)


def _explain_guarantee(session: Session) -> None:
    guarantee = session.guarantee
    assert guarantee is not None  # noqa: S101  there is a schema
    with st.container(border=True):
        prospect_badge(guarantee)
        if guarantee.status == "void":
            st.markdown("A release made now would **not** be differentially private:")
        else:
            st.markdown("Every fact is declared public, so a release from this table can be differentially private.")
        paid = [f"Estimated privately. {cost_line(cost)}, stated with every release" for cost in guarantee.parts[1:]]
        plain_list((*paid, *guarantee.caveats))
        if session.mode == "teaching":
            _explain_touched(session)


def _explain_touched(session: Session) -> None:
    """How many cells do not fit: for teaching only, because it depends on the rows."""
    assert session.schema is not None  # noqa: S101
    moved = {name: t for name, t in moved_cells(session.work.data.table, session.schema).items() if t.total}
    if not moved:
        st.caption("Every value fits the declared facts.")
        return
    basis = session.work.data.basis
    counted = f"; {basis}" if basis else ""
    st.caption(f"Values that do not fit are moved into the declared domain (not shown in release mode{counted}):")
    plain_list(
        f"{name}: {t.clamped} clamped, {t.undeclared} undeclared, {t.missing} missing filled in"
        for name, t in moved.items()
    )


def show_pictures(session: Session) -> None:
    """Each column's distribution and how well the declared ranges fit."""
    private = session.work.private
    if private is None:
        st.info("Complete the public facts above to see pictures.", icon=":material/info:")
        return
    names = list(private.schema.names)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = f"pictures_{session.draft_version}"
        shown = st.multiselect("Columns", names, default=names[:PICTURES_AT_ONCE], key=key)
        as_table = st.toggle("Show as tables", key="pictures_as_tables")
    for start in range(0, len(shown), 3):
        for slot, name in zip(st.columns(3), shown[start : start + 3], strict=False):
            with slot:
                show_chart(column_chart(private, name), key=f"column_{names.index(name)}", as_table=as_table)
    ranges = range_chart(private)
    if ranges is not None:
        st.markdown(
            "**How much of each declared range do the rows use?** "
            "A range that is too wide wastes accuracy on values that never occur."
        )
        show_chart(ranges, key="ranges", as_table=as_table)
