"""See what epsilon costs and what it buys."""

from __future__ import annotations

import streamlit as st

from pages.shared.frame import next_step, page
from pages.shared.lessons_view import follow_link, show_lessons
from pages.shared.tradeoffs_view import offer_example, show_closed, show_noise, show_sweep

session = page("Trade-offs", "pages/5_Tradeoffs.py")
follow_link(session)

st.header("Five short lessons", anchor=False)
show_lessons(session)

st.header("Sweep epsilon", anchor=False)
if session.mode == "release":
    show_closed()
elif session.data is None or session.schema is None:
    offer_example(session)
else:
    show_sweep(session, session.schema, len(session.data.table))
    st.header("Noise you can see", anchor=False)
    show_noise(session, session.schema)

next_step("pages/6_Release.py", "Next: review and decide", [])
