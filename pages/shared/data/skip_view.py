"""Skipping ahead from the Data page: only where the forecast is not red, or after the visitor has read why it is."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.advice import advice, advice_rows, ways_in_words
from dpsynth_core.review.wording import ERROR_UNIT, share
from dpsynth_core.runs.forecast import AS_IT_IS, Scenario
from pages.shared.buttons import clicked
from pages.shared.layout import errors_shown, leave_for
from pages.shared.mechanism.actions import SKIP_CHECK, scenario_of, start_skip_check
from pages.shared.mechanism.forecast_view import BASIS
from pages.shared.session import Session
from pages.shared.table_work import ForecastRecord
from pages.shared.widgets import show_task

MECHANISM, SYNTHESIZE = "pages/2_Mechanism.py", "pages/3_Synthesize.py"


def begin_skip(session: Session) -> None:
    """Forecast what the suggested settings would give, before going on."""
    with errors_shown("You cannot skip ahead with these settings. Choose a mechanism first."):
        scenario, work = _scenario(session), session.work
        scenario.mechanism.plan(scenario.schema, scenario.n, scenario.budget.per_row(scenario.schema.rows_per_person))
        work.skipping = True
        if work.skip_check is None or work.skip_check.scenario != scenario:
            start_skip_check(session, scenario)
        st.rerun()


def _scenario(session: Session) -> Scenario:
    """What would be run now."""
    work = session.work
    assert work.schema is not None  # noqa: S101  the button that leads here is disabled without
    config = session.settings.config(work.schema, work.n, teaching=session.mode == "teaching")
    return scenario_of(session, replace(config, seed=None))


def show_skip(session: Session) -> None:
    """The forecast under way; then the Synthesize page, or why not."""
    work = session.current
    if work is None or work.schema is None or not work.skipping:
        return
    with errors_shown("You cannot skip ahead with these settings. Choose a mechanism first."):
        scenario = _scenario(session)
        record = work.skip_check
        if record is not None and record.scenario == scenario:
            if AS_IT_IS in record.found and record.found[AS_IT_IS].light == "red":
                _explain_red(record)
                return
            work.skipping = False
            leave_for(SYNTHESIZE)
        task = work.tasks.get(SKIP_CHECK)
        if task is None or task.about != scenario:
            work.skipping = False  # the facts have changed since
            return
        st.caption("The app first forecasts the error, from public facts alone. Nothing is spent.")
        show_task(task, key="skip_check")
        if clicked("Go on without the forecast", key="skip_unchecked"):
            task.cancel()
            work.skipping = False
            leave_for(SYNTHESIZE)


def _explain_red(record: ForecastRecord) -> None:
    """Why it is better to stop here, what to change, and both ways on."""
    found, scenario = record.found[AS_IT_IS], record.scenario
    epsilon, columns = scenario.budget.epsilon, len(scenario.schema.names)
    pairs = "" if found.pair_error is None else f" and **{share(found.pair_error)}** in a pair of columns"
    delta = f" and δ = {format_amount(scenario.budget.delta)}" if scenario.budget.delta else ""
    words = ways_in_words(epsilon, record.delta, columns)
    with st.container(border=True):
        st.warning(
            "With the suggested settings, expect a table that is far from the original.", icon=":material/block:"
        )
        st.markdown(
            f"For {scenario.n:,} rows and {columns} columns, {scenario.mechanism.title} at ε = "
            f"{format_amount(epsilon)}{delta} is forecast to put **{share(found.column_error)}** of the rows in a "
            f"wrong cell in a single column{pairs}, on average: noise would hide most of what the rows say."
        )
        st.markdown(f"**What to change.** {advice(record.found, words)}")
        st.dataframe(advice_rows(record.found, words), hide_index=True, alt="The forecast error of every change")
        st.caption(f"{ERROR_UNIT} {BASIS}")
        with st.container(horizontal=True):
            if clicked("Choose other settings", type="primary", key="skip_settings"):
                leave_for(MECHANISM)
            if clicked("Go on all the same", key="skip_anyway"):
                leave_for(SYNTHESIZE)
