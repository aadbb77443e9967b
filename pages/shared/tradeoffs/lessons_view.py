"""The lessons on a page: predict, then reveal, then play."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.shared.buttons import clicked
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.session import Session
from pages.shared.tradeoffs.lessons import MAX_SEED, UNITS, begin
from pages.shared.tradeoffs.state import Lesson
from pages.shared.tradeoffs.view import go_to
from pages.shared.widgets import show_chart


def show_lessons(session: Session) -> None:
    """One lesson at a time."""
    lesson = session.tradeoffs.lesson
    number = st.selectbox(
        f"Lesson {lesson.number} of {len(UNITS)}",
        range(1, len(UNITS) + 1),
        index=lesson.number - 1,
        key=f"lesson_{lesson.number}",
        format_func=lambda number: f"{number}. {UNITS[number - 1].title}",
    )
    if number != lesson.number:
        go_to(session, begin(number))
    with st.container(border=True):
        st.markdown(UNITS[lesson.number - 1].story)
        _ask(session, lesson)
        if lesson.answer is not None:
            _reveal(session, lesson)


def _ask(session: Session, lesson: Lesson) -> None:
    unit = UNITS[lesson.number - 1]
    given = st.radio(
        unit.question,
        range(len(unit.options)),
        index=lesson.answer,
        format_func=lambda i: unit.options[i],
        key=f"answer_{lesson.number}_{lesson.answer}",
    )
    if lesson.answer is None:
        pressed = st.button(
            "Reveal the answer",
            type="primary",
            icon=":material/visibility:",
            disabled=given is None,
            key="reveal",
            help="Choose an answer first." if given is None else None,
        )
        if pressed:
            go_to(session, replace(lesson, answer=given))
    elif given != lesson.answer:
        go_to(session, replace(lesson, answer=given))


def _reveal(session: Session, lesson: Lesson) -> None:
    unit = UNITS[lesson.number - 1]
    if lesson.answer == unit.right:
        st.success("That is right.", icon=":material/check_circle:")
    else:
        st.info(f"Not quite. The answer: {unit.options[unit.right]}.", icon=":material/lightbulb:")
    st.markdown(unit.explain(lesson))
    epsilon = st.select_slider(
        "Now change epsilon (ε)", EPSILONS, value=lesson.epsilon, key=f"lesson_epsilon_{lesson.number}"
    )
    if epsilon != lesson.epsilon:
        go_to(session, replace(lesson, epsilon=epsilon))
    with st.container(horizontal=True, vertical_alignment="center"):
        if unit.redraws and clicked("Draw again", icon=":material/casino:", key="lesson_draw"):
            go_to(session, replace(lesson, seed=lesson.seed % MAX_SEED + 1))
        as_table = st.toggle("Show as table", key="table_lesson")
    show_chart(unit.picture(lesson), key="lesson_picture", as_table=as_table)
    if unit.reading is not None:
        st.text(unit.reading(lesson))
    if lesson.number < len(UNITS) and clicked(
        f"Next lesson: {UNITS[lesson.number].title}", type="primary", icon=":material/arrow_forward:", key="lesson_next"
    ):
        go_to(session, begin(lesson.number + 1))
