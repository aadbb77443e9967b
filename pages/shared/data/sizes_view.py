"""The same example with fewer rows, and back: why the size of a table matters."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.table.examples import EXAMPLES
from pages.shared.buttons import clicked
from pages.shared.data.actions import load_example
from pages.shared.data.leaving import may_leave
from pages.shared.layout import errors_shown, leave_for
from pages.shared.session import Session

WHY = "Noise is as large for few rows as for many, so the same epsilon costs a small table far more."


def offer_other_size(session: Session, *, then: str) -> None:
    """A button for the same example at its other size, where it has one.

    Args:
        session: Whose table it is.
        then: The page to go on with.
    """
    work = session.current
    example = None if work is None else EXAMPLES.get(work.data.example)
    if work is None or example is None or example.few_rows is None:
        return
    few = work.n > example.few_rows
    rows = example.few_rows if few else example.default_rows
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = clicked(f"The same with {rows:,} rows", icon=":material/compare_arrows:", key="other_size")
        st.caption(WHY if few else "With more rows, the same noise matters less.")
    if may_leave(session, pressed=pressed, key="other_size", title="Use another table?"):
        with errors_shown("This example cannot be used."):
            load_example(session, example.key, rows)
            leave_for(then)
