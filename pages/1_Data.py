"""Choose a table and state what is publicly known about its columns."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Data")

from pages.shared.data.account_view import ask_account
from pages.shared.data.layout_view import edit_layout
from pages.shared.data.schema_view import ask_declarer, ask_estimate, ask_unit, edit_schema
from pages.shared.data.sizes_view import offer_other_size
from pages.shared.data.skip_view import begin_skip, show_skip
from pages.shared.data.view import choose_data, choose_mode_control, show_pictures, show_preview, show_verdict
from pages.shared.layout import errors_shown, lay_out, next_step
from pages.shared.mechanism.plans_view import show_plans

session = lay_out("pages/1_Data.py")

st.header("What kind of data?", anchor=False)
choose_mode_control(session)

st.header("Which table?", anchor=False)
choose_data(session)

if session.current is not None:
    st.header("The table", anchor=False)
    visible = show_preview(session)
    offer_other_size(session, then="pages/1_Data.py")

    st.header("What is publicly known?", anchor=False)
    st.markdown(
        "The guarantee rests on facts that **do not come from these rows**: what values are possible at all, and how "
        "the file is laid out. "
        "Tick *public* where anybody could know the facts without seeing the data, from a codebook, a form or common "
        "sense. Leave it unticked if the facts were only read from this table; the guarantee is then void."
    )
    edit_layout(session)
    edit_schema(session)
    ask_declarer(session)
    with errors_shown("The ledger cannot be used."):
        ask_unit(session)
        show_plans(session, key="data")
        ask_account(session)
        ask_estimate(session)

    st.header("What follows", anchor=False)
    show_verdict(session)

    if visible:
        st.header("Pictures", anchor=False)
        show_pictures(session)

next_step(
    "pages/2_Mechanism.py",
    "Next: choose a mechanism",
    session.missing,
    skip=("Skip ahead with suggested settings", lambda: begin_skip(session)),
)
show_skip(session)
