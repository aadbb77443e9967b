"""The Trade-offs page's sections, one at a time, each with an address that leads back to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpsynth_core.errors import DPSynthError
from pages.shared.formatting import duration
from pages.shared.layout import in_words, show_error
from pages.shared.session import Lesson, Session
from pages.shared.tradeoffs.actions import begin_trial, current_trial
from pages.shared.tradeoffs.lessons import from_address, to_address
from pages.shared.tradeoffs.tables import Specimen, chosen, offered, specimen
from pages.shared.widgets import watch

SECTIONS = {
    "lessons": "Lessons",
    "sweep": "Compare epsilons",
    "needs": "How much do I need?",
    "person": "One person",
    "noise": "See the noise",
    "groups": "Small groups",
}
FREE = (
    "Only examples, simulated people and tables declared public are used here. Private rows are never touched, and "
    "nothing is spent."
)
NAMES = ("section", "lesson", "epsilon", "draw", "answer")
_WRITTEN, _KEY = "tradeoff_address", "tradeoff_section"


def address_of(session: Session) -> dict[str, str]:
    """The parameters of a link that leads back to what is shown now."""
    return to_address(session.lesson) if session.section == "lessons" else {"section": session.section}


def follow_link(session: Session) -> None:
    """Go where the address leads, unless it is the one that this page wrote itself."""
    given = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    if not given or given == st.session_state.get(_WRITTEN):
        return
    lesson = from_address(given)
    if lesson is not None:
        session.section, session.lesson = "lessons", lesson
    elif given.get("section") in SECTIONS:
        session.section = given["section"]
    st.session_state[_KEY] = session.section


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
        st.session_state[_KEY] = session.section
    section = st.segmented_control(
        "What to look at", list(SECTIONS), required=True, key=_KEY, format_func=SECTIONS.__getitem__,
        label_visibility="collapsed", wrap=True,
    )  # fmt: skip
    session.section = section or session.section
    write_address(session)
    return session.section


def go_to(session: Session, lesson: Lesson) -> None:
    """Show a lesson."""
    session.section, session.lesson = "lessons", lesson
    # Written before the page begins again: else the old address would lead back.
    write_address(session)
    st.rerun()


def ask_specimen(session: Session) -> Specimen:
    """The table to look at."""
    options = offered(session)
    key = st.selectbox(
        "Table", list(options), index=list(options).index(chosen(session)), format_func=options.__getitem__,
        key=f"specimen_{session.section}",
    )  # fmt: skip
    session.specimen = key
    return specimen(session)


def show_trial(
    session: Session, kind: str, found_on: Specimen, order: Any, task: Callable[..., Any], *, seconds: float,
    label: str, auto: bool,
) -> Any | None:  # fmt: skip
    """What was found, once it is there; until then the work's progress, or a button that begins it.

    Args:
        session: The visitor's.
        kind: Which kind of work.
        found_on: The table.
        order: What to do, as plain values.
        task: Does it in a worker.
        seconds: That it should take.
        label: What the button says.
        auto: Whether to begin without being asked.
    """
    trial = current_trial(session, kind, found_on)
    if trial is None or trial.order != order:
        if not auto and not st.button(
            f"{label} ({duration(seconds)})", type="primary", icon=":material/play_arrow:", key=f"start_{kind}"
        ):
            return None
        with in_words("This cannot be worked out."):
            trial = begin_trial(session, kind, found_on, order, task)
    if trial is None or trial.result is not None:
        return None if trial is None else trial.result
    job = trial.job
    if job is None:
        return None
    if job.active:
        watch(job, expected=seconds, release=False, key=kind)
        return None
    if current_trial(session, kind, found_on) is not None and trial.result is not None:
        return trial.result
    ended = "Cancelled." if job.state == "cancelled" else "This could not be worked out."
    show_error(ended, DPSynthError(f"{job.problem} Nothing is spent on this page."))
    if st.button("Run again", icon=":material/refresh:", key=f"again_{kind}"):
        begin_trial(session, kind, found_on, order, task)
        st.rerun()
    return None
