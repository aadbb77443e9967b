"""See how far the synthetic table can be trusted."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Diagnostics")

from dpsynth_core.diagnostics import DIAGNOSTICS
from pages.shared.diagnostics.examination_view import examined
from pages.shared.diagnostics.view import ask_columns, ask_releases, show_mark, show_panel, show_verdict
from pages.shared.layout import furnish, needs_release, next_step
from pages.shared.synthesize.actions import collect

session = furnish("pages/4_Diagnostics.py")
collect(session)
schema = needs_release(session)
show_mark(session)

places = ask_releases(session)
columns = ask_columns(session, schema.names)
if not places:
    st.info("Choose a release to look at.", icon=":material/info:")
    st.stop()

found = examined(session, places, columns)
if found:
    show_verdict(session, found)
    for key in DIAGNOSTICS:
        show_panel(session, key, found)

next_step("pages/5_Tradeoffs.py", "Next: what would another epsilon give?", [])
