"""The second half of the Release page: what leaves, the decision, its history, and the downloads."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.checklist import flow_chart
from dpsynth_core.review import Checklist, Decision
from dpsynth_core.review.decision import MEANING, Choice, missing_for
from dpsynth_core.review.publication import MAX_CHARACTERS, Publication
from dpsynth_core.review.report import MARK
from dpsynth_core.review.wording import choice as chosen
from pages.shared.buttons import clicked
from pages.shared.layout import errors_shown
from pages.shared.release.actions import (
    approved_archive,
    approved_file,
    bundle_of,
    current_approval,
    last_decision,
    publication_now,
    record,
    report_of,
)
from pages.shared.release.submissions_view import ask_submission
from pages.shared.session import Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import offer_download, plain_list, show_chart

HIDDEN = "hidden: private evidence"
FILES = {
    "synthetic.csv": "the rows, safe for spreadsheets",
    "synthetic.parquet": "the rows, with their types",
    "schema.json": "the public facts",
    "configuration.json": "mechanism, parameters and budget, exactly",
    "data_card.md": "what a reader must know, in plain language",
    "private_tests.json": "private tests on the original, paid for",
    "reproduce.py": "runs the same pipeline again",
    "croissant.json": "table, columns and guarantee for machines (Croissant)",
    "SHA256SUMS": "what each file must hash to",
}


def ask_words(session: Session) -> None:
    """What is said about the table to everybody."""
    work = session.work
    now = work.publication
    with st.expander("What the bundle says about the table (public)", icon=":material/edit_note:"):
        st.caption("These words are published as they are. They are part of what is approved.")
        left, right = st.columns(2)
        title = left.text_input("Title", now.title, max_chars=200, key="said_title")
        publisher = right.text_input("Publisher", now.publisher, max_chars=200, key="said_publisher")
        hint = "The address of a licence, or its name."
        licence = right.text_input("Licence", now.license, max_chars=200, key="said_license", help=hint)
        about = left.text_area(
            "What its rows are about", now.description, max_chars=MAX_CHARACTERS, key="said_description", height=68
        )
        with errors_shown("These words cannot be used."):
            work.publication = Publication(title=title, publisher=publisher, license=licence, description=about)


def show_products(session: Session, run: RunRecord) -> None:
    """What leaves and what stays, and the bundle's contents with their hashes."""
    as_table = st.toggle("Show as table", key="flow_table")
    show_chart(flow_chart(), key="flow", as_table=as_table)
    st.markdown("**In the release bundle**, and nothing else:")
    with errors_shown("There is no release bundle."):
        bundle = bundle_of(session.work, run)
        rows = [
            {"file": name, "what it is": FILES.get(name, "synthetic rows"), "bytes": f"{size:,}", "SHA-256": digest}
            for name, size, digest in bundle.contents()
        ]
        st.dataframe(rows, hide_index=True, alt="Files of the release bundle with their sizes and hashes")
        st.text(f"SHA-256 of the whole archive: {bundle.sha256}")


def ask_decision(session: Session, run: RunRecord, found: Checklist, decisions: tuple[Decision, ...]) -> None:
    """Approve or hold, with a name and a reason."""
    latest = last_decision(run, decisions)
    if session.person.signed_in and session.mode == "release":
        ask_submission(session, run, found)
        return
    left, right = st.columns([1, 2])
    choice: Choice | None = left.radio(
        "Decision",
        ["approve", "hold"],
        index=None,
        format_func=str.capitalize,
        key=f"choice_{session.work.ticket}",
        captions=["This bundle may leave.", "Nobody can download it; nothing is deleted."],
    )
    reviewer = right.text_input("Reviewer's name", session.reviewer, max_chars=200, key="reviewer")
    session.reviewer = reviewer
    note = right.text_area(
        "Note: why?", max_chars=10_000, key=f"note_{session.work.ticket}", help="Internal. Required if a check failed."
    )
    st.caption(chosen(publication_now(session.work)))
    missing = missing_for(found, choice, reviewer, note)
    if clicked(
        "Record the decision",
        type="primary",
        icon=":material/gavel:",
        disabled=bool(missing) or choice is None,
        key="decide",
    ):
        with errors_shown("The decision was not recorded."):
            assert choice is not None  # noqa: S101  the button is disabled
            record(session, run, choice, reviewer=reviewer, note=note, after=latest.number if latest else 0)
            st.rerun()
    if missing:
        st.markdown(
            "**Before a decision can be recorded:**" if choice != "approve" else "**Before it can be approved:**"
        )
        plain_list(missing)
    where = (
        "Teaching mode: decisions last for this session only."
        if session.mode == "teaching"
        else "A decision is stored in the ledger with its thresholds. It is never overwritten; the latest one applies. "
        "The two-person rule is not in force, because people do not sign in here: whoever made a release can approve "
        "it, and the record says so."
    )
    st.caption(where)


def show_history(run: RunRecord, decisions: tuple[Decision, ...], *, public_only: bool) -> None:
    """Every decision so far, newest first; in a review on public facts without what others saw of the private rows."""
    if not decisions:
        return
    st.markdown("**Decisions so far**")
    about = run.digest
    st.dataframe(
        [
            _decision_row(decision, this=decision.release == about, hidden=public_only and not decision.public_only)
            for decision in reversed(decisions)
        ],
        hide_index=True,
        alt="Decisions on releases of this data set, newest first",
    )


def _decision_row(decision: Decision, *, this: bool, hidden: bool) -> dict[str, str]:
    asked = decision.thresholds
    failed = [key for key, state in decision.states.items() if state == "fail"]
    return {
        "when (UTC)": decision.decided.strftime("%Y-%m-%d %H:%M"),
        "decision": decision.choice,
        "reviewer": decision.reviewer,
        "two people": "" if decision.choice != "approve" else "yes" if decision.two_people else "not in force",
        "note": HIDDEN if hidden else decision.note,
        "release": f"{decision.release[:12]}{' (this one)' if this else ''}",
        "failed checks": HIDDEN if hidden else ", ".join(key.replace("_", " ") for key in failed) or "none",
        "chosen by": decision.chosen_by,
        "reviewed on": "public facts only" if decision.public_only else "private evidence",
        "policy": f"ε ≤ {asked.epsilon}, δ ≤ {asked.delta}" if asked else "",
    }


def show_downloads(session: Session, run: RunRecord, decisions: tuple[Decision, ...]) -> None:
    """The two products, apart from each other."""
    left, right = st.columns(2)
    with left.container(border=True):
        st.markdown("**Release bundle** (may leave)")
        approved = current_approval(run, decisions)
        if approved is None:
            st.markdown("You can download it once a reviewer has approved it.")
            decided = last_decision(run, decisions)
            if decided is not None and decided.choice == "hold":
                st.caption(MEANING["hold"])
        else:
            st.caption(MEANING["approve"])
            with errors_shown("The approved bundle cannot be downloaded."):
                approved_archive(session.work, run, approved)  # refused here rather than after the click
                name, content = f"approved_{approved.release[:12]}.zip", approved_file(session, run)
                offer_download("Download the approved bundle", content, name, "application/zip", look="primary")
    with right.container(border=True):
        st.markdown("**Internal review report** (stays)")
        st.caption(MARK)
        if session.work.public_review:
            st.markdown("This review is on public facts only, so there is no report on the private rows.")
        elif run.evidence is not None:
            offer_download("Download the review report", report_of(session, run), "internal_review.html", "text/html")
        else:
            st.markdown("You can download it once the evidence is gathered.")
