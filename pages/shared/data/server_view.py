"""The Data page's third source: a table on this server, chosen by its name."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.errors import DPSynthError
from pages.shared.buttons import clicked
from pages.shared.data.leaving import may_leave
from pages.shared.data.server_actions import OPENING, server_tables, start_opening, use_opened
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.table_work import Mode
from pages.shared.widgets import show_task

_OPENING: dict[Mode, str] = {
    "teaching": "The app counts them and shows a random sample. Whoever runs this server has declared them public or "
    "simulated.",
    "release": "The app counts them, shows a random sample, and reads every row to find the data set's account and "
    "other versions of the table. That costs nothing.",
}


def offers_server_tables(session: Session) -> bool:
    """Whether there is something to choose, or something to say about the list; else nothing of it is seen."""
    try:
        return bool(server_tables(session)) or session.source == "server"
    except DPSynthError:
        return True


def choose_server_table(session: Session) -> None:
    """Which one, and opening it in a worker."""
    with errors_shown("Tables on this server cannot be used."):
        _use(session)
        names = [source.name for source in server_tables(session)]
        if not names:
            st.caption("This server offers you no table in this mode.")
            return
        if st.session_state.get("server_table") not in names:
            st.session_state["server_table"] = session.server_table if session.server_table in names else names[0]
        chosen = st.selectbox("Table", names, key="server_table")
        session.server_table = chosen
        st.caption(f"Its rows stay where they are. {_OPENING[session.mode]}")
        task = session.opening.get(OPENING)
        if task is None or not task.active:
            pressed = clicked("Use this table", type="primary", key="use_server_table")
            if may_leave(session, pressed=pressed, key="use_server_table", title="Use another table?"):
                task = start_opening(session, chosen)
        if task is not None:
            show_task(task, key=OPENING)


def _use(session: Session) -> None:
    """Go on with a table that was opened meanwhile."""
    if session.opened is not None and use_opened(session):
        st.rerun()
