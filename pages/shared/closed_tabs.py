"""Letting go of what Streamlit keeps of a tab that was closed.

Its uploads, and its whole state for a connection that comes back: up to 128 tabs, until somebody else leaves, with
everything that their last pages have shown. The app finds a visitor's session again by itself (pages/shared/memory.py),
and drops its table when its time is over; nothing else may hold on to the rows for longer.
"""

from __future__ import annotations

from streamlit.runtime import Runtime


def forget_tab(tab: str) -> None:
    """Remove what a closed tab has left behind; one that is connected, or connected again, stays as it is.

    Args:
        tab: Streamlit's name of it.
    """
    if not Runtime.exists():
        return
    runtime = Runtime.instance()

    def close() -> None:
        if not runtime.is_active_session(tab):
            runtime.uploaded_file_mgr.remove_session_files(tab)
            runtime.close_session(tab)

    # Streamlit changes its sessions in one thread only.
    runtime._get_async_objs().eventloop.call_soon_threadsafe(close)
