"""The panel on differences between groups: both tables side by side, and how reliable a low p-value is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dpsynth_core.charts.p_values import groups_chart, replay_chart, risk_chart, tests_sentence
from dpsynth_core.diagnostics import Result
from dpsynth_core.diagnostics.base import INTERNAL
from dpsynth_core.diagnostics.mann_whitney import group_columns
from dpsynth_core.inference.discovery_risk import DiscoveryRisk
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.pair_tests import all_pairs
from dpsynth_core.inference.stated_risk import CALIBRATED_FOLLOWS, RiskVerdict, of_100, shown_pvalue
from dpsynth_core.teaching.false_discovery import replay_false_discovery
from pages.shared.buttons import clicked
from pages.shared.comparison.view import show_private_test
from pages.shared.diagnostics.pvalues import (
    OWN_RISK,
    OWN_RISK_NEEDS_ROWS,
    RISK,
    RiskKey,
    Wait,
    ask,
    ask_own,
    level_pairs,
    newest_figure,
    release_of,
    value_columns,
)
from pages.shared.layout import Colour, errors_shown
from pages.shared.session import Session
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.widgets import plain_list, show_chart, show_internal_chart, show_task

RISK_BADGE: dict[RiskVerdict, tuple[str, Colour, str]] = {
    "sound": ("Ordinary tests are sound", "green", ":material/check_circle:"),
    "inflated": ("Too many false discoveries", "red", ":material/cancel:"),
    "unknown": ("Not known", "gray", ":material/help:"),
}


def show_groups(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:
    """One pair of columns in full, at first the worst, and how reliable its p-value is."""
    work, schema = session.work, run.result.schema
    groups = group_columns(schema)
    if not groups:
        return
    worst = dict(zip(("value", "group"), next(iter(named.values())).headline.columns, strict=False))
    left, right = st.columns(2)
    group = left.selectbox("Group", groups, index=_index(groups, worst.get("group")), key="group_column")
    values = value_columns(schema, group)
    value = right.selectbox("Value", values, index=_index(values, worst.get("value")), key="value_column")
    if value is None:
        return
    pairs = level_pairs(schema, group)
    levels = pairs[0] if len(pairs) == 1 else _ask_levels(pairs)
    if levels is not None:
        with errors_shown("These two columns cannot be compared."):
            comparison = GroupComparison.of(schema, value=value, group=group, levels=levels)
            _side_by_side(work, run, comparison, as_table)
        with errors_shown("The other columns cannot be tested."):
            _all_columns(work, run, group, levels)
        with st.expander("Test this on the original, privately", icon=":material/compare_arrows:"):
            st.markdown(
                "If this one comparison is what you need to know, spend epsilon on the test itself. Its p-value may be "
                "published, unlike the numbers above."
            )
            first, second = levels
            show_private_test(session, schema, value, group, (first, second), key="diagnostics", run=run)
    st.subheader("How reliable is a low p-value here?", anchor=False)
    with errors_shown("This cannot be worked out."):
        _show_risk(work, run, (value, group, None if len(pairs) == 1 else levels), as_table)
    _replay(work, as_table)


def _index(names: list[str], name: str | None) -> int:
    """Where a name is in a list; at the beginning, if it is not there."""
    return names.index(name) if name in names else 0


def _ask_levels(pairs: list[tuple[Any, ...] | None]) -> tuple[Any, ...] | None:
    labels = ["All pairs, corrected for their number" if pair is None else f"{pair[0]} and {pair[1]}" for pair in pairs]
    return pairs[st.selectbox("Groups to compare", range(len(pairs)), format_func=labels.__getitem__, key="group_pair")]


def _side_by_side(work: TableWork, run: RunRecord, comparison: GroupComparison, as_table: bool) -> None:
    private = work.private
    if private is None:
        return
    original, synthetic = private.rows(), run.result.tables[0]
    tests = {name: comparison.test_if_any(table) for name, table in (("original", original), ("synthetic", synthetic))}
    rows = [
        {
            "table": label,
            "U": f"{test.statistic:,.1f}",
            "p-value": shown_pvalue(test.pvalue),
            "effect (0.5: none)": f"{test.effect:.3f}",
            "rows": f"{test.n1:,} and {test.n2:,}",
        }
        for label, test in tests.items()
        if test is not None
    ]
    st.text(tests_sentence(comparison, tests))
    if rows:
        st.dataframe(rows, hide_index=True, alt="The Mann-Whitney test on both tables")
    show_internal_chart(groups_chart(original, synthetic, comparison), key="groups", as_table=as_table)


def _all_columns(work: TableWork, run: RunRecord, group: str, levels: tuple[Any, ...]) -> None:
    with st.expander("All columns at once, corrected for the number of tests", icon=":material/checklist:"):
        table = run.result.tables[0]
        tests = all_pairs(release_of(work, run), group=group, levels=levels, table=table, original=work.private)
        st.text(tests.sentence)
        st.dataframe(
            _readable(tests.frame()), hide_index=True, alt="P-values of every column, corrected for their number"
        )


def _readable(tests: pd.DataFrame) -> pd.DataFrame:
    """Tests with numbers as people write them; what no column has is left out."""
    known = tests.loc[:, [tests[name].replace("", None).notna().any() for name in tests]].copy()
    ways = {"effect": "{:.3f}".format, "U": "{:,.1f}".format}
    for name in map(str, known):
        write = shown_pvalue if name.startswith("p, ") else ways.get(name)
        if write is not None:
            known[name] = known[name].map(write, na_action="ignore")
    return known


def _show_risk(work: TableWork, run: RunRecord, key: RiskKey, as_table: bool) -> None:
    """A first figure on demand, then finer ones by themselves, unless somebody has pressed Cancel."""
    risk, task = newest_figure(work, run, key), work.tasks.get(RISK)
    if risk is None:
        st.markdown(
            "Privacy noise can look like a difference. How often would an analyst report one that does not exist? To "
            "find out, the app repeats this release many times on simulated tables without a difference. It uses "
            "published figures only, so the answer may be shown to anybody."
        )
    else:
        _show_figures(risk, as_table)
    at_work = task is not None and task.active and task.about == (run, key)
    if risk is None or not risk.last or at_work:
        _offer_figure(work, run, key, risk)
    if risk is not None:
        _show_own(work, run, key)


def _offer_figure(work: TableWork, run: RunRecord, key: RiskKey, risk: DiscoveryRisk | None) -> None:
    """The first figure on demand, the next one by itself if it does not take long; the wait is told before."""
    value, group, levels = key
    task, test = work.tasks.get(RISK), GroupTest.of(run.result.schema, value=value, group=group, levels=levels)
    mine, wait = task if task is not None and task.about == (run, key) else None, Wait.of(work, run, test, risk)
    if risk is None and (unknown := wait.nothing_known("difference")):
        _show_verdict("unknown")
        st.text(unknown)
    if mine is None or not (mine.active or mine.uncollected):
        stopped = mine is not None and mine.ended_early
        if risk is not None and wait.automatic and not stopped:
            mine = ask(work, run, key)
        elif not wait.problem and clicked(wait.label(first=risk is None), icon=":material/experiment:", key="ask_risk"):
            ask(work, run, key)
            st.rerun()  # the button gives way to the progress
    if mine is not None:
        show_task(mine, key=RISK)


def _show_verdict(verdict: RiskVerdict) -> None:
    label, colour, icon = RISK_BADGE[verdict]
    st.badge(label, color=colour, icon=icon)


def _show_figures(risk: DiscoveryRisk, as_table: bool) -> None:
    _show_verdict(risk.verdict)
    for sentence in (*risk.sentences, risk.tests_sentence):
        if sentence:
            st.text(sentence)
    if not risk.simulations:
        return
    refined = "" if risk.last else " The figure can still be refined."
    st.caption(f"From {risk.simulations:,} simulated releases for each end of the range.{refined}")
    if risk.pairs:
        rows = [
            {
                "groups": f"{pair.levels[0]} and {pair.levels[1]}",
                "of 100 analysts": of_100(pair.low, pair.high),
                "p, ordinary": "nothing to test" if pair.ordinary is None else shown_pvalue(pair.ordinary.pvalue),
                "p, calibrated": _calibrated(pair),
            }
            for pair in risk.pairs
        ]
        st.dataframe(rows, hide_index=True, alt="Each pair of groups by itself, not corrected for their number")
    if risk.advice:
        helpful = [advice for advice in risk.advice if advice.high < risk.high]
        others = [advice for advice in risk.advice if advice.high >= risk.high]
        for heading, listed in (("What would help", helpful), ("What would not", others)):
            if listed:
                st.markdown(f"**{heading}**")
                plain_list(f"{advice.title}: {of_100(advice.low, advice.high)} of 100" for advice in listed)
        show_chart(risk_chart(risk), key="risk", as_table=as_table)


def _calibrated(pair: DiscoveryRisk) -> str:
    """Its p-value, or that there is none."""
    if pair.calibrated is not None:
        return shown_pvalue(pair.calibrated.pvalue)
    if pair.ordinary is None:
        return "nothing to test"
    return "with the next figure" if pair.problem == CALIBRATED_FOLLOWS else "cannot be told"


def _show_own(work: TableWork, run: RunRecord, key: RiskKey) -> None:
    """The second figure, which looks at private rows."""
    with st.expander("With the original's own groups (internal review)", icon=":material/visibility_lock:"):
        own = run.own_risks.get(key)
        if not work.data.complete:
            st.caption(OWN_RISK_NEEDS_ROWS)
            return
        if own is not None:
            st.text(f"{own.sentences[0]} {INTERNAL}")
            return
        st.markdown(
            "The figure above allows for everything that the release leaves open. This one takes the group sizes and "
            "the values from the original, so it is **private: not for release**."
        )
        task = work.tasks.get(OWN_RISK)
        mine = task if task is not None and task.about == (run, key) else None
        idle = mine is None or mine.ended_early
        if idle and clicked("Work it out from the original", key="ask_own_risk"):
            mine = ask_own(work, run, key)
        if mine is not None:
            show_task(mine, key=OWN_RISK)


def _replay(work: TableWork, as_table: bool) -> None:
    """Figure 6 of Montoya Perez et al. (2024): simulated data, so it may be shown to anybody."""
    with st.expander("See a false discovery come from nothing", icon=":material/auto_awesome:"):
        st.markdown(
            "In this simulated data two groups do **not** differ. It is released at ε = 0.1 with the perturbed and "
            "with the smoothed histogram, and tested each time."
        )
        if clicked("Draw once", key="replay", icon=":material/casino:"):
            work.replay = replay_false_discovery()
        if work.replay is not None:
            st.text(work.replay.sentence)
            show_chart(replay_chart(work.replay), key="replay_chart", as_table=as_table)
