"""One person in, one person out: what a release tells about somebody."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.tradeoffs import attacker_chart, neighbours_chart
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.teaching.neighbours import (
    RUNS,
    NeighbourConfig,
    NeighbourDemonstration,
    WatchedPerson,
    run_demonstration,
    watched_row,
)
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.tradeoffs.view import ask_table, show_simulation
from pages.shared.widgets import ask_epsilon, ask_one, show_chart

WHO: dict[WatchedPerson, str] = {"unusual": "the most unusual person", "typical": "a person like many others"}
RUN_SECONDS = 0.002
"""Of one run, roughly."""


def show_neighbours(session: Session) -> None:
    """Two histograms that epsilon keeps close, and what the best attacker makes of them."""
    st.markdown(
        "**Would anybody notice whether you are in the table?** The same mechanism runs many times on a table with one "
        "person in it, and many times with somebody else in that person's place. The closer the two histograms, the "
        "less a release tells about that person."
    )
    public = ask_table(session)
    left, right = st.columns(2)
    who = ask_one(session, left.radio, "Who", list(WHO), key="person_who", format_func=WHO.__getitem__, horizontal=True)
    mechanism = ask_one(
        session,
        right.selectbox,
        "Mechanism",
        list(RUNS),
        key="person_mechanism",
        format_func=lambda key: MECHANISMS[key].title,
    )
    epsilon = ask_epsilon(session, key="person_epsilon", first="1")
    with errors_shown("This cannot be shown."):
        config = NeighbourConfig(mechanism=mechanism, epsilon=epsilon, who=who)
        row = watched_row(PrivateTable(public.table, public.schema), config.who)
        st.caption("The person in question. In the other runs, somebody from the crowd stands in for this row:")
        st.dataframe(public.table.iloc[[row]], hide_index=True, alt="The person who is watched", key="person_row")
        found = show_simulation(
            session,
            "person",
            public,
            config,
            run_demonstration,
            seconds=2 * RUNS[mechanism] * RUN_SECONDS,
            label="Run",
            auto=True,
        )
        if isinstance(found, NeighbourDemonstration):
            _show(found)


def _show(found: NeighbourDemonstration) -> None:
    as_table = st.toggle("Show as tables", key="table_person")
    left, right = st.columns(2)
    with left:
        st.markdown("**What comes out, with and without the person**")
        show_chart(neighbours_chart(found), key="person_histograms", as_table=as_table)
    with right:
        st.markdown("**What an attacker can make of it**")
        measured = (found.with_row, found.without)
        show_chart(attacker_chart(found.epsilon, measured=measured), key="person_attacker", as_table=as_table)
    st.markdown(
        f"At ε = {found.epsilon:g} nothing that comes out may be more than **{found.allowed:.3g} times** as likely "
        "with the person as without: that is the promise, and the solid line is what it leaves to any attacker. The "
        "dotted line is one real attack; with a finite number of runs it wobbles a little."
    )
    with st.expander("The proof in numbers", icon=":material/function:"):
        st.text(found.sentence)
