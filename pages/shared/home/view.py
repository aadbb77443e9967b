"""The panel that says what was checked, and when."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.audit.last_summary import headline, last_summary, layer_rows, mutant_rows, standing


def audit_panel() -> None:
    """What the last deep audit found; nothing where none was stored."""
    stored = last_summary()
    if stored is None:
        return
    st.header("What was checked", anchor=False)
    st.markdown(headline(stored))
    st.caption("An audit can refute a guarantee, never prove one; the proofs are in docs/proofs.md.")
    with st.expander("How, and what was broken on purpose", icon=":material/fact_check:"):
        st.dataframe(layer_rows(stored), hide_index=True)
        st.dataframe(mutant_rows(stored), hide_index=True)
        st.caption(standing(stored))
