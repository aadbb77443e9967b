"""Examinations at work: begun by themselves in teaching mode, on demand in release mode."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.errors import DPSynthError
from pages.shared.diagnostics.actions import collect_review, examine, next_missing, release_name
from pages.shared.layout import in_words, show_error
from pages.shared.session import Session, Subject
from pages.shared.widgets import watch


def examined(session: Session, places: list[int], columns: tuple[str, ...]) -> dict[int, Evaluation]:
    """What is known about these releases; what is not is examined one after the other while the page is open."""
    collect_review(session)
    subject = next_missing(session, places, columns)
    if subject is not None:
        _work_on(session, subject)
    return {place: session.found[place, columns] for place in places if (place, columns) in session.found}


def _work_on(session: Session, subject: Subject) -> None:
    job = session.examination
    at_work = job is not None and job.active and session.subject == subject
    if not at_work:
        ended_badly = job is not None and session.subject == subject
        by_itself = session.mode == "teaching" and not ended_badly
        if ended_badly:
            _show_end(session)
        label = f"Compare {release_name(session, subject[0])} with the original"
        if not by_itself and not st.button(label, type="primary", icon=":material/search_insights:", key="examine"):
            return
        with in_words("The examination was not started."):
            examine(session, subject)
    if session.examination is not None and session.examination.active:
        watch(session.examination, expected=None, release=False, key="examination")


def _show_end(session: Session) -> None:
    """How an examination ended, where it did not finish."""
    job = session.examination
    if job is not None and job.state in ("cancelled", "failed"):
        heading = "The examination was cancelled." if job.state == "cancelled" else "The examination failed."
        show_error(heading, DPSynthError(f"{job.problem} Nothing is charged for an examination."))
