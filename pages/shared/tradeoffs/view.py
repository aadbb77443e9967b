"""The Trade-offs page's sections, one at a time, each with an address that leads back to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.shared.buttons import clicked
from pages.shared.formatting import duration
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.tradeoffs.actions import begin, finding_on, task_on
from pages.shared.tradeoffs.lessons import from_address, to_address
from pages.shared.tradeoffs.state import Lesson
from pages.shared.tradeoffs.tables import PublicTable, chosen, offered, public_table
from pages.shared.widgets import show_task

SECTIONS = {
    "lessons": "Lessons",
    "sweep": "Compare epsilons",
    "needs": "How much do I need?",
    "person": "One person",
    "noise": "See the noise",
    "groups": "Small groups",
}
FREE = (
    "This page uses only examples, simulated people and tables declared public. It never touches private rows, and "
    "nothing is spent."
)
NAMES = ("section", "lesson", "epsilon", "draw", "answer")
_WRITTEN, _KEY = "tradeoff_address", "tradeoff_section"


def address_of(session: Session) -> dict[str, str]:
    """The parameters of a link that leads back to what is shown now."""
    return (
        to_address(session.tradeoffs.lesson)
        if session.tradeoffs.section == "lessons"
        else {"section": session.tradeoffs.section}
    )


def follow_link(session: Session) -> None:
    """Go where the address leads, unless it is the one that this page wrote itself."""
    given = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    if not given or given == st.session_state.get(_WRITTEN):
        return
    lesson = from_address(given)
    if lesson is not None:
        session.tradeoffs.section, session.tradeoffs.lesson = "lessons", lesson
    elif given.get("section") in SECTIONS:
        session.tradeoffs.section = given["section"]
    st.session_state[_KEY] = session.tradeoffs.section


def write_address(session: Session) -> None:
    """Let the address lead here."""
    address = address_of(session)
    st.session_state[_WRITTEN] = address
    for name in NAMES:
        if name in address:
            st.query_params[name] = address[name]
        elif name in st.query_params:
            del st.query_params[name]


def ask_section(session: Session) -> str:
    """One idea at a time."""
    st.caption(FREE)
    if _KEY not in st.session_state:
        st.session_state[_KEY] = session.tradeoffs.section
    section = st.segmented_control(
        "What to look at",
        list(SECTIONS),
        required=True,
        key=_KEY,
        format_func=SECTIONS.__getitem__,
        label_visibility="collapsed",
        wrap=True,
    )
    session.tradeoffs.section = section or session.tradeoffs.section
    write_address(session)
    return session.tradeoffs.section


def go_to(session: Session, lesson: Lesson) -> None:
    """Show a lesson."""
    session.tradeoffs.section, session.tradeoffs.lesson = "lessons", lesson
    # Written before the page begins again: else the old address would lead back.
    write_address(session)
    st.rerun()


def ask_table(session: Session) -> PublicTable:
    """The table to look at."""
    options = offered(session)
    session.tradeoffs.table = st.selectbox(
        "Table",
        list(options),
        index=list(options).index(chosen(session)),
        format_func=options.__getitem__,
        key=f"public_table_{session.tradeoffs.section}",
    )
    return public_table(session)


def show_simulation(
    session: Session,
    kind: str,
    table: PublicTable,
    config: Any,
    work: Callable[..., Any],
    *,
    seconds: float,
    label: str,
    auto: bool,
) -> Any | None:
    """The result, once it is there; until then the work's progress, or a button that starts it.

    Args:
        session: The visitor's.
        kind: Which kind of work.
        table: What it is done on.
        config: What to do, as plain values.
        work: Does it in a worker.
        seconds: That it should take.
        label: What the button says.
        auto: Whether to start without being asked.
    """
    finding, task = finding_on(session, kind, table), task_on(session, kind, table)
    if finding is not None and finding.config == config:
        return finding.result
    if task is None or task.about != (table.id, config):
        text = f"{label} ({duration(seconds)})"
        if not auto and not clicked(text, type="primary", icon=":material/play_arrow:", key=f"start_{kind}"):
            return None
        with errors_shown("This cannot be worked out."):
            begin(session, kind, table, config, work, expected=seconds)
            st.rerun()
        return None
    show_task(task, key=kind)
    if task.ended_early and clicked("Run again", icon=":material/refresh:", key=f"again_{kind}"):
        begin(session, kind, table, config, work, expected=seconds)
        st.rerun()
    return None
