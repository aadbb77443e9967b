"""The lessons on a page: predict, then reveal, then play."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.shared.choices import EPSILONS
from pages.shared.lessons import MOST_SEED, UNITS, begin, from_address, to_address
from pages.shared.session import Lesson, Session
from pages.shared.show import show_chart

_WRITTEN = "lesson_address"


def follow_link(session: Session) -> None:
    """Go where the address leads, unless it is the one that this page wrote itself."""
    given = from_address(st.query_params)
    if given is not None and to_address(given) != st.session_state.get(_WRITTEN):
        session.lesson = given


def _write_address(lesson: Lesson) -> None:
    address = to_address(lesson)
    st.session_state[_WRITTEN] = address
    for name in ("lesson", "epsilon", "draw", "answer"):
        if name in address:
            st.query_params[name] = address[name]
        elif name in st.query_params:
            del st.query_params[name]


def show_lessons(session: Session) -> None:
    """One lesson at a time."""
    lesson = session.lesson
    number = st.selectbox(
        "Lesson", range(1, len(UNITS) + 1), index=lesson.number - 1, key=f"lesson_{lesson.number}",
        format_func=lambda place: f"{place}. {UNITS[place - 1].title}",
    )  # fmt: skip
    if number != lesson.number:
        _go(session, begin(number))
    _write_address(lesson)
    unit = UNITS[lesson.number - 1]
    with st.container(border=True):
        st.markdown(unit.story)
        _ask(session, lesson)
        if lesson.answer is not None:
            _reveal(session, lesson)
    st.caption("The address of this page leads to this lesson, with this answer and this picture: copy it to share it.")


def _ask(session: Session, lesson: Lesson) -> None:
    unit = UNITS[lesson.number - 1]
    given = st.radio(
        unit.question, range(len(unit.options)), index=lesson.answer, format_func=lambda i: unit.options[i],
        key=f"answer_{lesson.number}_{lesson.answer}",
    )  # fmt: skip
    if given != lesson.answer:
        _go(session, replace(lesson, answer=given))


def _reveal(session: Session, lesson: Lesson) -> None:
    unit = UNITS[lesson.number - 1]
    if lesson.answer == unit.right:
        st.success("That is right.", icon=":material/check_circle:")
    else:
        st.info(f"Not quite: {unit.options[unit.right]}.", icon=":material/lightbulb:")
    epsilon = st.select_slider("Epsilon (ε)", EPSILONS, value=lesson.epsilon, key=f"lesson_epsilon_{lesson.number}")
    if epsilon != lesson.epsilon:
        _go(session, replace(lesson, epsilon=epsilon))
    st.markdown(unit.told(lesson))
    with st.container(horizontal=True, vertical_alignment="center"):
        if unit.redraws and st.button("Draw again", icon=":material/casino:", key="lesson_draw"):
            _go(session, replace(lesson, seed=lesson.seed % MOST_SEED + 1))
        as_table = st.toggle("Show as table", key="table_lesson")
    show_chart(unit.picture(lesson), key="lesson_picture", as_table=as_table)
    if lesson.number < len(UNITS) and st.button(
        f"Next lesson: {UNITS[lesson.number].title}", icon=":material/arrow_forward:", key="lesson_next"
    ):
        _go(session, begin(lesson.number + 1))


def _go(session: Session, lesson: Lesson) -> None:
    session.lesson = lesson
    # Written before the page begins again: else the old address would lead back.
    _write_address(lesson)
    st.rerun()
