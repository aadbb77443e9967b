"""Small groups pay most."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.sweeps import group_error_chart
from dpsynth_core.mechanisms import MECHANISMS
from pages.shared.session import Session
from pages.shared.tradeoffs.sweep_view import sweep_found
from pages.shared.tradeoffs.view import ask_table
from pages.shared.widgets import ask_one, show_chart


def show_groups(session: Session) -> None:
    """By how much the size of a group is off, against that size."""
    st.markdown(
        "**The same noise hurts a small group more.** Every column, and every pair of columns, cuts the people into "
        "groups. How far off is the size of a group in the synthetic table, as a share of the group?"
    )
    public = ask_table(session)
    found = sweep_found(session, public, "Run")
    if found is None:
        return
    keys = [key for key in found.config.mechanisms if any(s.mechanism == key and s.groups for s in found.points)]
    if not keys:
        st.info("This table has too few groups of any size.", icon=":material/info:")
        return
    mechanism = ask_one(
        session,
        st.radio,
        "Mechanism",
        keys,
        key="groups_mechanism",
        format_func=lambda key: MECHANISMS[key].title,
        horizontal=True,
    )
    as_table = st.toggle("Show as table", key="table_groups")
    show_chart(group_error_chart(found, mechanism), key="groups_chart", as_table=as_table)
    st.caption(
        "Each mark is the median over groups of about that size. 100% means: typically wrong by the whole group. The "
        "dashed line is what a fresh sample of real people would show without any privacy."
    )
