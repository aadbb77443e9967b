"""The panel on differences between groups: both tables side by side, and what a low p-value is worth."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsynth_core.charts.p_values import groups_chart, reliability_chart, replay_chart
from dpsynth_core.diagnostics import Result
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.pair_tests import all_pairs
from dpsynth_core.inference.reliability_question import ReliabilityAnswer
from dpsynth_core.teaching.false_discovery import replay_false_discovery
from pages.shared.diagnostics.pvalues import (
    ask,
    collect_answer,
    comparison_of,
    group_columns,
    release_of,
    value_columns,
)
from pages.shared.formatting import measured
from pages.shared.layout import in_words, show_error
from pages.shared.session import Question, Session
from pages.shared.widgets import show_chart, show_internal_chart, watch


def show_groups(session: Session, place: int, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """One pair of columns in full, and how reliable its p-value is."""
    schema = session.outcomes[place].schema
    groups = group_columns(schema)
    if not groups:
        return
    left, right = st.columns(2)
    group = left.selectbox("Group", groups, key="group_column")
    value = right.selectbox("Value", value_columns(schema, group), key="value_column")
    if value is None:
        return
    question: Question = (place, value, group)
    with in_words("These two columns cannot be compared."):
        _side_by_side(session, question, as_table)
    with in_words("The other columns cannot be tested."):
        _all_columns(session, question)
    st.subheader("What is a low p-value worth here?", anchor=False)
    with in_words("This cannot be worked out."):
        _worth(session, question, as_table)
    _replay(session, as_table)


def _side_by_side(session: Session, question: Question, as_table: bool) -> None:
    private, outcome = session.private(), session.outcomes[question[0]]
    if private is None:
        return
    comparison = comparison_of(outcome.schema, question)
    original, synthetic = private.rows(), outcome.tables[0]
    tests = {"original": comparison.test(original), "synthetic": comparison.test(synthetic)}
    rows = [
        {
            "table": label, "U": f"{test.statistic:,.1f}", "p-value": f"{test.pvalue:.3g}",
            "effect (0.5: none)": f"{test.effect:.3f}", "rows": f"{test.n1:,} and {test.n2:,}",
        }
        for label, test in tests.items()
    ]  # fmt: skip
    st.dataframe(rows, hide_index=True, alt="The Mann-Whitney test on both tables")
    show_internal_chart(groups_chart(original, synthetic, comparison), key="groups", as_table=as_table)


def _all_columns(session: Session, question: Question) -> None:
    place, _, group = question
    with st.expander("All columns at once, with the number of tests in mind", icon=":material/checklist:"):
        found = all_pairs(
            release_of(session, place), group=group, table=session.outcomes[place].tables[0], original=session.private()
        )
        st.text(found.sentence)
        st.dataframe(found.frame(), hide_index=True, alt="P-values of every column, corrected for their number")


def _worth(session: Session, question: Question, as_table: bool) -> None:
    collect_answer(session)
    answer = session.answers.get(question)
    if answer is not None:
        _show_answer(session, answer, question, as_table)
        return
    job = session.enquiry
    if job is not None and session.question == question and job.state in ("cancelled", "failed"):
        show_error("This was not worked out.", DPSynthError(job.problem))
    if job is None or not job.active or session.question != question:
        st.markdown(
            "Privacy noise can look like a difference. How often would an analyst report one that does not exist, and "
            "how often miss one that does? This repeats the release many times on simulated data."
        )
        if not st.button("Work it out", icon=":material/experiment:", key="ask_worth"):
            return
        ask(session, question)
    if session.enquiry is not None:
        watch(session.enquiry, expected=None, release=False, key="enquiry")


def _show_answer(session: Session, answer: ReliabilityAnswer, question: Question, as_table: bool) -> None:
    (st.success if answer.reliability.sound else st.warning)(answer.reliability.verdict)
    if len(session.outcomes[question[0]].schema.names) > 2:
        st.caption("For a table of these two columns alone; with more columns, there is more noise on each.")
    if answer.calibrated is not None:
        test = answer.calibrated
        st.text(
            f"On this release: ordinary p-value {test.ordinary.pvalue:.2g}; calibrated for the privacy noise "
            f"{test.pvalue:.2g} (± {measured(test.error)}, from {test.simulations:,} simulated releases)."
        )
    elif answer.problem:
        st.text(answer.problem)
    left, right = st.columns(2)
    with left:
        show_chart(reliability_chart(answer.reliability, "false"), key="worth_false", as_table=as_table)
    with right:
        show_chart(reliability_chart(answer.reliability, "missed"), key="worth_missed", as_table=as_table)


def _replay(session: Session, as_table: bool) -> None:
    """Figure 6 of Montoya Perez et al. (2024): simulated data, so it may be shown to anybody."""
    with st.expander("See a false discovery come from nothing", icon=":material/auto_awesome:"):
        st.markdown(
            "Simulated data in which two groups do **not** differ, released at ε = 0.1 with the perturbed and with the "
            "smoothed histogram, and tested each time."
        )
        if st.button("Draw once", key="replay", icon=":material/casino:"):
            session.replay = replay_false_discovery()
        if session.replay is not None:
            st.text(session.replay.sentence)
            show_chart(replay_chart(session.replay), key="replay_chart", as_table=as_table)
