"""Make the synthetic table, within the privacy budget."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Synthesize")

from pages.shared.comparison.view import ask_comparison
from pages.shared.layout import errors_shown, lay_out, needs_schema, next_step
from pages.shared.mechanism.forecast_view import show_forecast
from pages.shared.synthesize.view import (
    ask_options,
    ask_selection,
    ask_to_run,
    say_if_earlier,
    show_history,
    show_result,
    show_run,
    show_spending,
    show_summary,
    show_unopened,
)

session = lay_out("pages/3_Synthesize.py")
schema, n = needs_schema(session)

st.header("What will be made", anchor=False)
with errors_shown("Please correct the parameters on the Mechanism page."):
    ask_options(session, schema, n)
    config = session.settings.config(schema, n, teaching=session.mode == "teaching")
    missing = show_summary(session, config, schema, n)
    above = st.container()
    # First: a forecast that begins draws the page anew, and the button would still be for the settings before.
    ask_to_run(session, config, missing)
    with above:
        show_forecast(session, config, begin=True)
    ask_selection(session, schema, n)
ask_comparison(session, schema)

show_run(session)

if session.runs:
    st.header("The synthetic table", anchor=False)
    say_if_earlier(session)
    if len(session.runs) == 1:
        show_result(session, session.runs[0])
    show_history(session)
show_unopened(session)

if session.mode == "release":
    show_spending(session)

next_step("pages/4_Diagnostics.py", "Next: see how good it is", session.runs_missing)
