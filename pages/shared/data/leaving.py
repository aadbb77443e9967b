"""Before a table is left for another one or for the other mode: what happens to the work on it, and the way back."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.shared.buttons import clicked
from pages.shared.data.actions import go_back
from pages.shared.session import MAX_EARLIER, Session
from pages.shared.table_work import TableWork
from pages.shared.widgets import plain_list

_AGREED = "agreed_to_leave"
"""In the tab's state: which of its buttons the visitor has confirmed."""


def may_leave(session: Session, *, pressed: bool, key: str, title: str, stay: Callable[[], None] | None = None) -> bool:
    """Whether the page may go on with what was pressed; where work would be left behind, a dialog asks first.

    Args:
        session: Whose table it is.
        pressed: Whether the control was used just now.
        key: Of the control.
        title: The question.
        stay: What else to do if the visitor stays.
    """
    if st.session_state.get(_AGREED) == key:
        del st.session_state[_AGREED]
        return True
    if not pressed:
        return False
    if session.current is None or not session.current.begun:
        return True
    st.dialog(title, on_dismiss=stay or "ignore")(lambda: _ask(session.work, key, stay))()
    return False


def _ask(work: TableWork, key: str, stay: Callable[[], None] | None) -> None:
    st.text(f"What becomes of {work.data.title}:")
    plain_list(consequences(work))
    with st.container(horizontal=True):
        if st.button("Go on", type="primary", key=f"leave_{key}"):
            st.session_state[_AGREED] = key
            st.rerun()
        if st.button("Stay here", key=f"stay_{key}"):
            if stay is not None:
                stay()
            st.rerun()


def consequences(work: TableWork) -> list[str]:
    """What becomes of the work on a table that is left, one line each."""
    lines = [
        f"While this session lasts, you can go back to it on the Data page (to the last {MAX_EARLIER} tables, "
        "or fewer if they are large), with the facts you have declared, its runs and their diagnostics."
    ]
    if work.mode == "release":
        lines.append(
            "Releases that were paid for are stored beside the ledger. They come back whenever the same table is used "
            "in release mode, in any browser and after a restart."
        )
        if any(task.paid and task.active for task in work.tasks):
            lines.append("The run that is at work was paid for, so it goes on, and its release is stored.")
        unstored = sum(bool(run.store_problem) for run in work.runs)
        if unstored:
            lines.append(f"{unstored} paid release(s) could not be stored: download them before you close the browser.")
    if any(task.active and not task.paid for task in work.tasks):
        lines.append("Unpaid work that is under way on it is cancelled. It cost nothing and can be started again.")
    return lines


def show_earlier(session: Session) -> None:
    """The tables that were in use before, and the way back to them."""
    if not session.earlier:
        return
    with st.expander(f"Go back to an earlier table ({len(session.earlier)})", icon=":material/history:"):
        for at, work in enumerate(session.earlier, start=1):
            with st.container(horizontal=True, vertical_alignment="center"):
                if clicked(f"Go back to table {at}", key=f"go_back_{at}"):
                    go_back(session, work)
                    st.rerun()
                runs = "1 run" if len(work.runs) == 1 else f"{len(work.runs)} runs"
                st.text(f"{work.data.title}: {work.n:,} rows, {work.mode} mode, {runs}")
