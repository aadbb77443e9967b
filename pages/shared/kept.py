"""Widgets that remember: their values outlive a change of section, of page, and a reload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.shared.choices import EPSILONS
from pages.shared.session import Session

Option = TypeVar("Option")


def ask_one(
    session: Session, ask: Callable[..., Any], label: str, options: Sequence[Option], *, key: str, **more: Any
) -> Option:
    """One of several options, by a select box or a radio; the one chosen before, as long as it is still offered.

    Args:
        session: Where the choice is remembered.
        ask: The widget, for instance ``st.selectbox``.
        label: Its label.
        options: What can be chosen; the first one to begin with.
        key: Its key, and the choice's name.
        more: Anything else for the widget.
    """
    before = session.kept.get(key)
    chosen: Option = ask(label, options, index=options.index(before) if before in options else 0, key=key, **more)
    session.kept[key] = chosen
    return chosen


def ask_epsilon(session: Session, *, key: str, first: str) -> str:
    """An epsilon from the slider, with both ends named."""
    chosen: str = st.select_slider("Epsilon (ε)", EPSILONS, value=session.kept.get(key, first), key=key)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown("← more private", width="content")
        st.markdown("more accurate →", width="content")
    session.kept[key] = chosen
    return chosen
