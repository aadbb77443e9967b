"""A button whose click is not lost."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

KEPT_SECONDS = 5.0
"""How long a click waits for its button to be drawn; after that the visitor will have clicked again, or moved on."""


def clicked(label: str, *, key: str, disabled: bool = False, **look: Any) -> bool:
    """A button; returns whether it was clicked, in this run of the page or in one that was broken off.

    Streamlit tells a click to one run of the page only. If that run begins anew before it comes to the button, because
    work in the background has just ended, nobody would answer the click. A callback comes before everything else.

    Args:
        label: What the button says.
        key: Its key.
        disabled: Whether it can be clicked.
        look: Anything else for ``st.button``.
    """
    waiting = f"{key}_clicked"
    now = st.button(label, key=key, disabled=disabled, on_click=_remember, args=(waiting,), **look)
    since = st.session_state.pop(waiting, None)
    recently = since is not None and time.monotonic() - since <= KEPT_SECONDS
    return not disabled and (now or recently)


def _remember(waiting: str) -> None:
    st.session_state[waiting] = time.monotonic()
