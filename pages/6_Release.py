"""Review the evidence and decide on a release."""

from __future__ import annotations

import streamlit as st

from pages.shared.heading import heading

heading("Release")

from pages.shared.accounts import account_of
from pages.shared.diagnostics.view import show_mark
from pages.shared.layout import errors_shown, lay_out, needs_run
from pages.shared.release.actions import checks, history
from pages.shared.release.decision_view import ask_decision, ask_words, show_downloads, show_history, show_products
from pages.shared.release.submissions_view import ask_door, show_approved, show_submissions
from pages.shared.release.view import (
    ask_mode,
    ask_run,
    ask_thresholds,
    show_answer,
    show_candidates,
    show_checklist,
    show_pictures,
    show_unanswered,
    uses_of,
)

session = lay_out("pages/6_Release.py")
with errors_shown("The ledger cannot be used."):
    door = ask_door(session)
    if door == "Submissions":
        show_submissions(session)
        st.stop()
    if door == "Approved bundles":
        show_approved(session)
        st.stop()
needs_run(session)

with errors_shown("The ledger cannot be used."):
    ask_mode(session)
    run = ask_run(session)
    account = account_of(session)
    found, decisions = checks(session, run, account), history(session)
    if not found.public_only:
        show_mark(session, "The figures on quality and the sanity check are")
    show_answer(session, run, found, decisions)
    show_candidates(session, account)

    st.header("Checklist", anchor=False)
    ask_thresholds(session)
    show_checklist(found, uses_of(session, run))
    show_unanswered(found)
    show_pictures(session, run, found, account)

    st.header("What leaves and what stays", anchor=False)
    ask_words(session)
    show_products(session, run)

    st.header("Decision", anchor=False)
    ask_decision(session, run, found, decisions)
    show_history(run, decisions, public_only=found.public_only)

    st.header("Downloads", anchor=False)
    show_downloads(session, run, decisions)
