"""Requests that a page's timers send when its visitor has left it already.

While work is shown, the browser asks for it twice a second. If such a request is still to be answered when the page
changes, Streamlit 1.67 answers it on the new page with the address of the old one, and the browser is left blank.
"""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

_PAGE = "page_at_hand"
"""In the tab's state: the page that it has shown last."""


def begin_page() -> None:
    """Where a link has led to this page: what the last one's timers still ask for is not answered."""
    context = get_script_run_ctx()
    if context is None:
        return
    if st.session_state.get(_PAGE, context.page_script_hash) != context.page_script_hash:
        refuse_requests()
    st.session_state[_PAGE] = context.page_script_hash


def refuse_requests() -> None:
    """Drop what timers have asked for, and what they will ask for until the page is drawn again."""
    context = get_script_run_ctx()
    if context is None or context.script_requests is None:
        return
    context.fragment_storage.clear()  # those that are on their way are refused from here on
    waiting = context.script_requests
    with waiting._lock:
        if waiting._state is ScriptRequestType.RERUN and waiting._rerun_data.fragment_id_queue:
            waiting._state = ScriptRequestType.CONTINUE
