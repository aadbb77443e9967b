"""Make the synthetic table and pay for it."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Synthesize")

from pages.shared.layout import furnish, in_words, needs_schema, next_step
from pages.shared.synthesize.actions import collect
from pages.shared.synthesize.view import (
    ask_options,
    ask_to_run,
    show_history,
    show_outcome,
    show_run,
    show_spending,
    show_summary,
)

session = furnish("pages/3_Synthesize.py")
schema, n = needs_schema(session)
collect(session)

st.header("What will be made", anchor=False)
with in_words("Please correct the parameters on the Mechanism page."):
    ask_options(session, schema, n)
    order = session.choices.order(schema, n, teaching=session.mode == "teaching")
    missing = show_summary(session, order, schema, n)
    ask_to_run(session, order, missing)

show_run(session)

if session.outcomes:
    st.header("The synthetic table", anchor=False)
    if len(session.outcomes) == 1:
        show_outcome(session, session.outcomes[0], 0)
    show_history(session)

if session.mode == "release":
    show_spending(session)

next_step("pages/4_Diagnostics.py", "Next: see what it is worth", session.outcomes_missing)
