"""The panel on differences between groups: both tables side by side, and how reliable a low p-value is."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsynth_core.charts.p_values import groups_chart, reliability_chart, replay_chart
from dpsynth_core.diagnostics import Result
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.pair_tests import all_pairs
from dpsynth_core.inference.reliability_question import ReliabilityAnswer
from dpsynth_core.teaching.false_discovery import replay_false_discovery
from pages.shared.comparison.actions import labels_of
from pages.shared.comparison.view import show_private_test
from pages.shared.diagnostics.pvalues import (
    PVALUE,
    ask,
    group_columns,
    release_of,
    value_columns,
)
from pages.shared.formatting import measured
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.widgets import show_chart, show_internal_chart, show_task


def show_groups(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """One pair of columns in full, and how reliable its p-value is."""
    work, schema = session.work, run.result.schema
    groups = group_columns(schema)
    if not groups:
        return
    left, right = st.columns(2)
    group = left.selectbox("Group", groups, key="group_column")
    value = right.selectbox("Value", value_columns(schema, group), key="value_column")
    if value is None:
        return
    with errors_shown("These two columns cannot be compared."):
        _side_by_side(work, run, GroupComparison.of(schema, value=value, group=group), as_table)
    with errors_shown("The other columns cannot be tested."):
        _all_columns(work, run, group)
    with st.expander("Test this on the original, privately", icon=":material/compare_arrows:"):
        st.markdown(
            "If this one comparison is what you need to know, spend epsilon on the test itself. Its p-value may be "
            "published, unlike the numbers above."
        )
        first, second = labels_of(schema, group)
        show_private_test(session, schema, value, group, (first, second), key="diagnostics", run=run)
    st.subheader("How reliable is a low p-value here?", anchor=False)
    with errors_shown("This cannot be worked out."):
        _show_reliability(work, run, value, group, as_table)
    _replay(work, as_table)


def _side_by_side(work: TableWork, run: RunRecord, comparison: GroupComparison, as_table: bool) -> None:
    private = work.private
    if private is None:
        return
    original, synthetic = private.rows(), run.result.tables[0]
    tests = {"original": comparison.test(original), "synthetic": comparison.test(synthetic)}
    rows = [
        {
            "table": label,
            "U": f"{test.statistic:,.1f}",
            "p-value": f"{test.pvalue:.3g}",
            "effect (0.5: none)": f"{test.effect:.3f}",
            "rows": f"{test.n1:,} and {test.n2:,}",
        }
        for label, test in tests.items()
    ]
    st.dataframe(rows, hide_index=True, alt="The Mann-Whitney test on both tables")
    show_internal_chart(groups_chart(original, synthetic, comparison), key="groups", as_table=as_table)


def _all_columns(work: TableWork, run: RunRecord, group: str) -> None:
    with st.expander("All columns at once, corrected for the number of tests", icon=":material/checklist:"):
        table = run.result.tables[0]
        tests = all_pairs(release_of(work, run), group=group, table=table, original=work.private)
        st.text(tests.sentence)
        st.dataframe(tests.frame(), hide_index=True, alt="P-values of every column, corrected for their number")


def _show_reliability(work: TableWork, run: RunRecord, value: str, group: str, as_table: bool) -> None:
    answer = run.answers.get((value, group))
    if answer is not None:
        _show_answer(run, answer, as_table)
        return
    task = work.tasks.get(PVALUE)
    mine = task if task is not None and task.about == (run, value, group) else None
    if mine is None or mine.ended_early:
        st.markdown(
            "Privacy noise can look like a difference. How often would an analyst report one that does not exist, and "
            "how often miss one that does? To find out, the app repeats the release many times on simulated data."
        )
        if st.button("Work it out", icon=":material/experiment:", key="ask_reliability"):
            mine = ask(work, run, value, group)
    if mine is not None:
        show_task(mine, key=PVALUE)


def _show_answer(run: RunRecord, answer: ReliabilityAnswer, as_table: bool) -> None:
    (st.success if answer.reliability.sound else st.warning)(answer.reliability.verdict)
    if len(run.result.schema.names) > 2:
        st.caption("This holds for a table of these two columns alone; with more columns, each one gets more noise.")
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


def _replay(work: TableWork, as_table: bool) -> None:
    """Figure 6 of Montoya Perez et al. (2024): simulated data, so it may be shown to anybody."""
    with st.expander("See a false discovery come from nothing", icon=":material/auto_awesome:"):
        st.markdown(
            "In this simulated data two groups do **not** differ. It is released at ε = 0.1 with the perturbed and "
            "with the smoothed histogram, and tested each time."
        )
        if st.button("Draw once", key="replay", icon=":material/casino:"):
            work.replay = replay_false_discovery()
        if work.replay is not None:
            st.text(work.replay.sentence)
            show_chart(replay_chart(work.replay), key="replay_chart", as_table=as_table)
