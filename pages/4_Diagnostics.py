"""See how far the synthetic table can be trusted."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Diagnostics")

from dpsynth_core.diagnostics import DIAGNOSTICS
from pages.shared.data.sizes_view import offer_other_size
from pages.shared.diagnostics.advice_view import show_advice
from pages.shared.diagnostics.view import (
    ask_columns,
    ask_purposes,
    ask_runs,
    examined,
    show_changes,
    show_mark,
    show_panel,
    show_ready,
    show_verdict,
)
from pages.shared.layout import lay_out, needs_run, next_step
from pages.shared.tradeoffs.tables import choose_comparison

session = lay_out("pages/4_Diagnostics.py")
schema = needs_run(session).result.schema
show_mark(session)

runs = ask_runs(session)
columns = ask_columns(session, schema.names)
ask_purposes(session, schema)
if not runs:
    st.info("Choose a release to look at.", icon=":material/info:")
    st.stop()

found = examined(session, runs, columns)
if found:
    show_verdict(session, found)
    show_changes(session, found, columns)
    show_advice(session, found)
    for key in DIAGNOSTICS:
        show_panel(session, key, found)
    offer_other_size(session, then="pages/3_Synthesize.py")
else:
    show_ready(session, runs, columns)

next_step(
    "pages/5_Tradeoffs.py",
    "Next: what would another epsilon give?",
    [],
    prepare=lambda: choose_comparison(session),
)
