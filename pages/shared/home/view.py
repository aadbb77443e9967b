"""The first page: what this is, the steps, where you are, and what was checked."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.audit.last_summary import headline, last_summary, layer_rows, mutant_rows, standing
from dpsynth_core.table.examples import FIRST
from pages.shared.data.actions import load_example
from pages.shared.data.leaving import may_leave
from pages.shared.layout import STAGES, WORKERS, errors_shown, lay_out


def show_home() -> None:
    """Everything under the heading."""
    session = lay_out("app.py")

    st.markdown(
        "DPSynth makes a **synthetic stand-in** for a table that is too sensitive to share. "
        "Random noise, measured by a number called **epsilon**, limits what anybody can learn from the stand-in about "
        "any one person in the original. "
        "And it tells you honestly **how good the stand-in is**: what survived, what was lost, and which findings to "
        "distrust."
    )

    if not session.person.may(*WORKERS):
        st.page_link("pages/6_Release.py", label="Go to Release", icon=":material/inventory_2:")
        audit_panel()
        return

    with st.container(horizontal=True):
        pressed = st.button("Try an example", type="primary", icon=":material/play_arrow:")
        if may_leave(session, pressed=pressed, key="try_example", title="Use another table?"):
            with errors_shown("The example cannot be used."):
                load_example(session, FIRST)
                st.switch_page("pages/1_Data.py")
        if st.button("Use my own table", icon=":material/upload_file:"):
            session.source = "file"
            st.switch_page("pages/1_Data.py")

    st.header("The steps", anchor=False)
    for number, stage in enumerate(STAGES, start=1):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.page_link(stage.path, label=f"{number}. {stage.title}", icon=stage.icon, width=170)
            st.markdown(stage.purpose)

    st.header("Where you are", anchor=False)
    if session.current is None:
        st.markdown(
            "You have not chosen a table yet. Begin with an example: a survey of 20,000 people, large enough for a "
            "good stand-in at ε = 1. Then take the same survey with 500 people and see why size matters."
        )
    else:
        data = session.current.data
        st.text(f"{data.title}: {data.n:,} rows, {len(data.table.columns)} columns")
        for step in session.missing:
            st.markdown(f"- {step}")

    st.header("Two promises", anchor=False)
    left, right = st.columns(2)
    with left.container(border=True):
        st.markdown("**Nothing is called private that is not.**")
        st.markdown(
            "Every table carries a badge that says what is guaranteed and how sure that is: proven, true only in the "
            "limit, heuristic, void, or none."
        )
    with right.container(border=True):
        st.markdown("**Everything that leaves is accounted for.**")
        st.markdown(
            "In release mode a ledger records what each release uses of the data set's privacy budget before its "
            "result appears, and refuses once the budget is used up. Comparisons with the original are for internal "
            "review and never leave."
        )

    audit_panel()


def audit_panel() -> None:
    """What the last deep audit found; nothing where none was stored."""
    stored = last_summary()
    if stored is None:
        return
    st.header("What was checked", anchor=False)
    st.markdown(headline(stored))
    st.caption(
        "An audit can refute a guarantee, never prove one; the proofs are in docs/proofs.md. It tried the program as "
        "it was on that day: what was changed later, it has not seen."
    )
    with st.expander("How, and what was broken on purpose", icon=":material/fact_check:"):
        st.dataframe(layer_rows(stored), hide_index=True)
        st.dataframe(mutant_rows(stored), hide_index=True)
        st.caption(standing(stored))
