"""What error to expect, before anything is spent: shown on the Mechanism and on the Synthesize page."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.wording import ERROR_UNIT, share
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.runs.forecast import AS_IT_IS, WITH_DELTA, Forecast
from dpsynth_core.table.schema import Schema
from pages.shared.buttons import clicked
from pages.shared.formatting import duration
from pages.shared.layout import errors_shown
from pages.shared.mechanism.actions import BEGIN_SECONDS, FORECAST, known_forecast, scenario_of, start_forecast
from pages.shared.session import Session
from pages.shared.table_work import ForecastRecord
from pages.shared.tasks import RUN
from pages.shared.widgets import show_task

BASIS = (
    "The app simulated three tables with your columns and number of rows, whose columns are unrelated, related "
    "moderately and related strongly, and ran this mechanism on them. No row of your table was looked at and nothing "
    "was spent. Your table may be easier or harder: in our tests with Private-PGM, the true error was within a factor "
    "of 2.7 of such a range."
)


def ask_forecast(session: Session, schema: Schema, n: int) -> None:
    """On demand: the Mechanism page changes with every click."""
    with errors_shown("No error can be forecast."):
        config = session.settings.config(schema, n, teaching=session.mode == "teaching")
        show_forecast(session, config, begin=False)


def show_forecast(session: Session, config: RunConfig, *, begin: bool) -> None:
    """The forecast for what would be run now, its progress, or a button that asks for it.

    Args:
        session: The visitor.
        config: What would be run.
        begin: Whether a quick one begins without being asked for, as long as nothing has been run yet.
    """
    work, scenario = session.work, scenario_of(session, replace(config, seed=None))
    known = known_forecast(session, scenario)
    if known is not None:
        _show(session, known)
        return
    task = work.tasks.get(FORECAST)
    if task is not None and task.about == scenario:
        show_task(task, key=FORECAST)
        if not task.ended_early:
            return
    elif begin and work.tasks.get(RUN) is None and scenario.seconds <= BEGIN_SECONDS:
        start_forecast(session, scenario)
        st.rerun()
    label = f"Forecast the error ({duration(scenario.seconds)})"
    if clicked(label, icon=":material/query_stats:", key="forecast", help=BASIS):
        start_forecast(session, scenario)
        st.rerun()


def _show(session: Session, record: ForecastRecord) -> None:
    if AS_IT_IS not in record.found:
        st.caption("No error can be forecast: the mechanism does not fit simulated rows of this table.")
        return
    found = record.found[AS_IT_IS]
    with st.container(border=True):
        st.markdown("**Forecast of the error**")
        left, right = st.columns(2)
        left.metric("Single columns, on average", span(found.column_range))
        if found.pair_range is not None:
            right.metric("Pairs of columns, on average", span(found.pair_range))
        if WITH_DELTA in record.found:
            st.markdown(_with_delta(record.found[WITH_DELTA], format_amount(record.delta, up=False)))
            if clicked("Use this δ", key="use_forecast_delta"):
                session.settings.use_delta(format_amount(record.delta, up=False))
                st.rerun()
        fewer = (
            f" The simulated tables have {found.rows:,} rows: expect less." if found.rows < record.scenario.n else ""
        )
        st.caption(f"{ERROR_UNIT} {BASIS}{fewer}")


def _with_delta(found: Forecast, delta: str) -> str:
    pairs = "" if found.pair_range is None else f" and **{span(found.pair_range)}** for pairs"
    return f"With δ = {delta} it would be **{span(found.column_range)}** for single columns{pairs}."


def span(ends: tuple[float, float]) -> str:
    """A range of shares.

    Example:
        >>> span((0.012, 0.034)), span((0.0121, 0.0122))
        ('1.2% to 3.4%', '1.2%')
    """
    low, high = map(share, ends)
    return low if low == high else f"{low} to {high}"
