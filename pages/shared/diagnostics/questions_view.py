"""Other questions about a release: a difference in shares, a correlation, a slope, and how far each can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from dpsynth_core.inference.correlation_test import CorrelationTest
from dpsynth_core.inference.group_comparison import group_labels
from dpsynth_core.inference.question import Question
from dpsynth_core.inference.question_risk import QuestionRisk, question_risk
from dpsynth_core.inference.share_test import ShareTest
from dpsynth_core.inference.slope_test import MAX_OTHERS, SlopeTest
from dpsynth_core.table.schema import Schema
from pages.shared.buttons import clicked
from pages.shared.comparison.actions import group_columns, value_columns
from pages.shared.diagnostics.pvalues import MAX_WAIT, Wait, release_of
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.tasks import Task
from pages.shared.widgets import show_task

QUESTION = "question"
KINDS = ("A difference in shares", "A correlation", "A slope")


def show_questions(session: Session, run: RunRecord) -> None:
    """The ordinary result of a question, its rate of false discoveries on this release, and the calibrated p-value."""
    work, schema = session.work, run.result.schema
    with st.expander("Another question: a share, a correlation or a slope", icon=":material/help_center:"):
        st.markdown(
            "The same warning holds for every test on synthetic rows. Everything here comes from the released rows and "
            "the mechanism, so it may be shown to anybody."
        )
        kind = st.segmented_control("Question", KINDS, default=KINDS[0], key="question_kind") or KINDS[0]
        with errors_shown("This cannot be asked."):
            question = _ASK[kind](schema)
            if question is not None:
                _answer(work, run, question)


def _ask_shares(schema: Schema) -> Question | None:
    groups = group_columns(schema)
    if len(groups) < 2:
        st.markdown("A difference in shares needs two columns of labels.")
        return None
    left, right = st.columns(2)
    group = left.selectbox("Groups", groups, key="question_group")
    value = right.selectbox("Outcome", [name for name in groups if name != group], key="question_outcome")
    labels, outcomes = group_labels(schema[group]), group_labels(schema[value])
    levels = list(labels)
    if len(labels) > 2:
        key = f"question_levels_{schema.names.index(group)}"
        levels = left.multiselect("The two groups", labels, default=labels[:2], max_selections=2, key=key)
    key = f"question_label_{schema.names.index(value)}"
    outcome = right.selectbox("Whose share?", outcomes, index=len(outcomes) - 1, format_func=str, key=key)
    if len(levels) != 2:
        st.caption("Choose two groups.")
        return None
    return ShareTest.of(schema, value=value, group=group, levels=levels, outcome=outcome)


def _ask_correlation(schema: Schema) -> Question | None:
    names = value_columns(schema, "")
    if len(names) < 2:
        st.markdown("A correlation needs two columns of numbers, dates or ordered labels.")
        return None
    left, right = st.columns(2)
    other = left.selectbox("First column", names, key="question_first")
    value = right.selectbox("Second column", [name for name in names if name != other], key="question_second")
    return CorrelationTest.of(schema, value=value, other=other)


def _ask_slope(schema: Schema) -> Question | None:
    names = value_columns(schema, "")
    if len(names) < 2:
        st.markdown("A slope needs two columns of numbers, dates or ordered labels.")
        return None
    left, right = st.columns(2)
    value = left.selectbox("Outcome", names, key="question_y")
    predictor = right.selectbox("Predictor", [name for name in names if name != value], key="question_x")
    rest = [name for name in names if name not in (value, predictor)]
    others = st.multiselect(
        "Held fixed", rest, key="question_fixed", max_selections=MAX_OTHERS, placeholder="No other column"
    )
    return SlopeTest.of(schema, value=value, predictor=predictor, others=tuple(others))


_ASK: dict[str, Callable[[Schema], Question | None]] = dict(
    zip(KINDS, (_ask_shares, _ask_correlation, _ask_slope), strict=True)
)


def _answer(work: TableWork, run: RunRecord, question: Question) -> None:
    """A first figure within seconds, refined while it is being read."""
    risk, task = run.questions.get(question), work.tasks.get(QUESTION)
    mine = task if task is not None and task.about == (run, question) else None
    if risk is not None:
        _show(risk)
        if risk.last:
            return
    wait = Wait.of(work, run, question, risk)
    if risk is None and (unknown := wait.nothing_known("relation")):
        st.text(unknown)
    if mine is None or not (mine.active or mine.uncollected):
        stopped = mine is not None and mine.ended_early
        if risk is not None and wait.automatic and mine is not None and not stopped:
            mine = ask(work, run, question, stage=risk.stage + 1)
        elif not wait.problem and clicked(
            wait.label(first=risk is None), icon=":material/experiment:", key="ask_question"
        ):
            ask(work, run, question, stage=0 if risk is None else risk.stage + 1)
            st.rerun()  # the button gives way to the progress
    if mine is not None:
        show_task(mine, key=QUESTION)


def ask(work: TableWork, run: RunRecord, question: Question, *, stage: int) -> Task:
    """Simulate in a worker; it looks at published things only, so it costs nothing."""
    return work.tasks.start(
        QUESTION,
        "The simulation",
        partial(question_risk, table=run.result.tables[0], stage=stage, max_seconds=MAX_WAIT),
        release_of(work, run),
        question,
        about=(run, question),
        store=lambda risk: run.questions.update({question: risk}),
        background=stage > 0,
    )


def _show(risk: QuestionRisk) -> None:
    figure, meaning = risk.sentences
    box = {"sound": st.success, "inflated": st.warning, "unknown": st.info}[risk.verdict]
    box("This p-value can be trusted." if risk.verdict == "sound" else "Do not take an ordinary p-value at face value.")
    st.text(f"{figure} {meaning}")
    st.text(risk.tests_sentence)
    if risk.calibrated is not None:
        st.caption(
            f"The calibrated p-value has a simulation error of about {risk.error:.2g}, from {risk.simulations:,} "
            "simulated releases of each distribution that the release leaves plausible."
        )
