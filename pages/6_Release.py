"""Review the evidence and decide on a release."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Release")

from pages.shared.data.actions import account_of
from pages.shared.diagnostics.view import show_mark
from pages.shared.layout import furnish, in_words, needs_release
from pages.shared.release.actions import checks, history
from pages.shared.release.view import (
    ask_decision,
    ask_release,
    ask_thresholds,
    ask_words,
    gathered,
    show_answer,
    show_checklist,
    show_downloads,
    show_history,
    show_pictures,
    show_products,
)
from pages.shared.synthesize.actions import collect

session = furnish("pages/6_Release.py")
collect(session)
needs_release(session)
gathered(session)

with in_words("The ledger cannot be used."):
    place = ask_release(session)
    account = account_of(session)
    found, decisions = checks(session, place, account), history(session)
    show_answer(session, place, found, decisions)

    st.header("Checklist", anchor=False)
    show_mark(session)
    ask_thresholds(session)
    show_checklist(found)
    show_pictures(session, place, found, account)

    st.header("What leaves and what stays", anchor=False)
    ask_words(session)
    show_products(session, place)

    st.header("Decision", anchor=False)
    ask_decision(session, place, found)
    show_history(session, place, decisions)

    st.header("Downloads", anchor=False)
    show_downloads(session, place, decisions)
