"""Below the pictures of a regression: which one it was, and a form for another."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsynth_core.diagnostics import Result
from dpsynth_core.inference.regression.design import can_be_outcome, can_be_predictor
from pages.shared.diagnostics.actions import regress
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import plain_list


def show_regression(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    """Which regression it was; then a form for another."""
    shown = [result for result in named.values() if "coefficients" in result.tables]
    if shown:
        plain_list(shown[0].notes[:1])
        st.caption(
            "A private regression would spend the epsilon of the whole release on this one question. It is simulated "
            "here to show how much accuracy a synthetic table gives up for answering many questions."
        )
    schema = run.result.schema
    with st.form("regression_form", border=True):
        st.markdown("**Another regression**")
        names = [column.name for column in schema if can_be_outcome(column)]
        explained = next((result.headline.columns[0] for result in shown if result.headline.columns), "")
        outcome = st.selectbox("Outcome", names, index=names.index(explained) if explained in names else 0)
        predictors = st.multiselect(
            "Predictors",
            [column.name for column in schema if can_be_predictor(column)],
            placeholder="Those that correlate most with the outcome",
        )
        sent = st.form_submit_button("Compare this regression", icon=":material/search_insights:")
    if sent and outcome:
        with errors_shown("This regression cannot be fitted."):
            regress(session.work, outcome, tuple(name for name in predictors if name != outcome))
            st.rerun()
