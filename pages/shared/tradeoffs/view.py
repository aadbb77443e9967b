"""The Trade-offs page's sections, one at a time, each with an address that leads back to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from dpsynth_core.table.examples import EXAMPLES
from pages.shared.buttons import clicked
from pages.shared.formatting import duration
from pages.shared.layout import errors_shown
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.presentation import link_here, presentation_link, presenting
from pages.shared.session import Session
from pages.shared.tradeoffs.actions import begin, finding_on, task_on
from pages.shared.tradeoffs.lessons import from_address, to_address
from pages.shared.tradeoffs.state import Lesson
from pages.shared.tradeoffs.tables import MINE, PublicTable, chosen, offered, public_table
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
NAMES = ("section", "lesson", "epsilon", "draw", "answer", "table")
EPSILON_KEYS = {"person": "person_epsilon", "noise": "noise_epsilon", "sweep": "sweep_at"}
"""Sections with an epsilon of their own, and the widget that holds it."""
_WRITTEN, _SEEN, _KEY = "tradeoff_address", "tradeoff_address_seen", "tradeoff_section"


def address_of(session: Session) -> dict[str, str]:
    """The parameters of a link that leads back to what is shown now: section, table and epsilon."""
    section = session.tradeoffs.section
    if section == "lessons":
        return to_address(session.tradeoffs.lesson)
    address = {"section": section, "table": shared_table(session)}
    key = EPSILON_KEYS.get(section)
    epsilon = None if key is None else st.session_state.get(key)
    if epsilon is not None:
        address["epsilon"] = f"{float(epsilon):g}"
    return {name: value for name, value in address.items() if value}


def shared_table(session: Session) -> str:
    """The table as another visitor would find it: an example's key; empty for a table of one's own."""
    key, work = chosen(session), session.current
    if key in EXAMPLES:
        return key
    return work.data.example if key == MINE and work is not None else ""


def follow_link(session: Session) -> None:
    """Go where the address leads, unless this page wrote it itself or has followed it before.

    A browser that has not taken over the newest address yet sends the one before it along with a click, and the click
    must not be lost to it.
    """
    given = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    known = st.session_state.get(_WRITTEN), st.session_state.get(_SEEN)
    st.session_state[_SEEN] = given
    if not given or given in known:
        return
    lesson = from_address(given)
    if lesson is not None:
        session.tradeoffs.section, session.tradeoffs.lesson = "lessons", lesson
    elif given.get("section") in SECTIONS:
        session.tradeoffs.section = given["section"]
        _follow_table(session, given.get("table", ""))
        _follow_epsilon(session, given.get("epsilon", ""))
    st.session_state[_KEY] = session.tradeoffs.section


def _follow_table(session: Session, table: str) -> None:
    """The example that a link names; a table of one's own stays where it is the same example."""
    if table in EXAMPLES and table != shared_table(session):
        session.tradeoffs.table = table


def _follow_epsilon(session: Session, epsilon: str) -> None:
    """The epsilon that a link names, as long as it is on the slider; a sweep's own slider sees to that itself."""
    key = EPSILON_KEYS.get(session.tradeoffs.section)
    if key is None or epsilon not in EPSILONS:
        return
    if key == "sweep_at":
        st.session_state[key] = float(epsilon)
    else:
        session.tradeoffs.choices[key] = epsilon


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
    if not presenting():
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
    return session.tradeoffs.section


def show_section(session: Session, show: Callable[[Session], None]) -> None:
    """A section under its links, which are written last, when it is known what the section shows."""
    links = st.container(horizontal=True)
    show(session)
    write_address(session)
    with links:
        _offer_links(session)


def _offer_links(session: Session) -> None:
    address = address_of(session)
    if presenting():
        st.link_button("Leave the presentation", f"?{urlencode(address)}", icon=":material/close_fullscreen:")
        return
    st.link_button(
        "Present",
        presentation_link(address, session.token),
        icon=":material/present_to_all:",
        help="Opens this view in a tab of its own: large type, dark on light, nothing around it. F11 fills the screen.",
    )
    label = "Share this lesson" if session.tradeoffs.section == "lessons" else "Share this view"
    with st.popover(label, icon=":material/link:"):
        st.markdown(
            "This link opens this lesson with this answer, this epsilon and this picture."
            if session.tradeoffs.section == "lessons"
            else "This link opens this section with this table and this epsilon. A table of your own is not part of it."
        )
        st.code(link_here(address), language=None, wrap_lines=True)


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
