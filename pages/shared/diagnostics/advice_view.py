"""Where a release is far from the original: why, and what would help most."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsynth_core.diagnostics import Result, TablePair
from dpsynth_core.diagnostics.causes import Causes, causes, concerned
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.diagnostics.total_variation import LIMITS
from dpsynth_core.review.advice import (
    advice,
    advice_rows,
    cause_lines,
    clipping_lines,
    elsewhere,
    finer_lines,
    ways_in_words,
)
from dpsynth_core.runs.forecast import alternatives
from dpsynth_core.table.private_table import PrivateTable
from pages.shared.buttons import clicked
from pages.shared.diagnostics.actions import ADVICE, scenario_of_run, start_advice
from pages.shared.formatting import duration
from pages.shared.layout import errors_shown
from pages.shared.mechanism.actions import BEGIN_SECONDS, offered_delta
from pages.shared.session import Session
from pages.shared.table_work import ForecastRecord, RunRecord
from pages.shared.widgets import plain_list, show_task

EXPLAINED = ("marginals", "pairs")
"""Diagnostics whose worst item can be divided among its causes."""


def show_advice(session: Session, found: Mapping[RunRecord, Evaluation]) -> None:
    """For the release in detail, if it is far apart in any respect."""
    run, evaluation = next(iter(found.items()))
    if evaluation.verdict != "poor":
        return
    with st.container(border=True):
        st.markdown("**Why is it far apart?**")
        explained = _explained(evaluation)
        far = [result for result in explained if result.verdict == "poor"]
        if not far:
            poor = [result for result in evaluation.values() if result.verdict == "poor"]
            st.markdown(elsewhere([result.title for result in poor]))
        for result in far:
            plain_list(cause_lines(_causes(session, run, result.headline.columns)))
        if all(result.verdict in ("excellent", "good") for result in explained):
            return  # what could be forecast is the error of columns and pairs, and that is small
        with errors_shown("No change can be forecast."):
            _show_changes(session, run)


def show_why(session: Session, run: RunRecord, result: Result, evaluation: Evaluation) -> None:
    """Under a verdict of visible differences or worse: where they come from, and what would help most."""
    names = concerned(result, evaluation)
    if result.verdict not in ("fair", "poor") or not names:
        return
    st.markdown("**Why?**")
    table, schema = session.work.data.table, run.result.schema
    found = _causes(session, run, names)
    if "giveaways" in result.tables and result.verdict == "poor" and found.total <= LIMITS[1]:
        plain_list((*finer_lines(found), *clipping_lines(table, schema, names)))
        return
    plain_list((*cause_lines(found), *clipping_lines(table, schema, names)))
    record = session.work.advice
    if record is not None and record.scenario == scenario_of_run(session.work, run):
        st.markdown(advice(record.found, _words(record), single=len(names) == 1))


def _causes(session: Session, run: RunRecord, names: tuple[str, ...]) -> Causes:
    """Computed once for each column or pair."""
    if names not in run.causes:
        pair = TablePair.of(_private(session, run), run.result.tables[0], names)
        run.causes[names] = causes(pair, names, run.result.expected_error)
    return run.causes[names]


def _words(record: ForecastRecord) -> dict[str, str]:
    scenario = record.scenario
    return ways_in_words(scenario.budget.epsilon, record.delta, len(scenario.schema.names))


def _explained(evaluation: Evaluation) -> list[Result]:
    """What is known of columns and pairs."""
    return [evaluation[key] for key in EXPLAINED if key in evaluation and evaluation[key].headline.value is not None]


def _private(session: Session, run: RunRecord) -> PrivateTable:
    """The original with the facts of the release: those on the Data page may have changed since."""
    private = session.work.private
    same = private is not None and private.schema == run.result.schema
    return private if private is not None and same else session.work.data.encoded(run.result.schema)


def _show_changes(session: Session, run: RunRecord) -> None:
    work, scenario = session.work, scenario_of_run(session.work, run)
    if work.advice is not None and work.advice.scenario == scenario:
        _show_found(work.advice)
        return
    task = work.tasks.get(ADVICE)
    if task is not None and task.about == scenario:
        show_task(task, key=ADVICE)
        if not task.ended_early:
            return
    seconds = len(alternatives(scenario, offered_delta(session))) * scenario.seconds
    begin = task is None and seconds <= BEGIN_SECONDS
    label = f"What would help most? ({duration(seconds)})"
    if begin or clicked(label, icon=":material/lightbulb:", key="advice"):
        start_advice(session, run)
        st.rerun()


def _show_found(record: ForecastRecord) -> None:
    words = _words(record)
    st.markdown("**What would help most?**")
    st.markdown(advice(record.found, words) or "No change can be forecast for this release.")
    st.dataframe(advice_rows(record.found, words), hide_index=True, alt="The forecast error of every change")
    st.caption(
        "Forecasts from public facts: the app ran the mechanism on simulated tables with these columns and this number "
        "of rows. They say which change helps, not what the error of your table will be. With fewer columns, the "
        "figures are those of the columns that stay; with fewer bins, finer detail is given up. Another run costs "
        "epsilon."
    )
