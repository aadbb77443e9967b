"""The reviewers' door on the Release page: submissions, two side by side, the decision; and what was approved."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.checklist import claims_chart
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.review import Checklist
from dpsynth_core.review.decision import MEANING, Choice, missing_for
from dpsynth_core.review.report import MARK
from dpsynth_core.review.submission import MAX_MESSAGE, ReviewCase
from pages.shared.buttons import clicked
from pages.shared.layout import WORKERS, errors_shown, guarantee_badge, show_budget
from pages.shared.release.actions import submit_release
from pages.shared.release.side_by_side import show_side_by_side
from pages.shared.release.submission_actions import (
    ListedSubmission,
    approved,
    approved_download,
    bundle_contents,
    opened,
    own_work,
    record_decision,
    submissions,
)
from pages.shared.release.view import show_checklist, show_unanswered
from pages.shared.session import Door, Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import offer_download, plain_list, show_chart

PREVIEW_ROWS = 5


def ask_door(session: Session) -> Door:
    """Which part of the page: only what the visitor's roles allow, and no question where there is one answer."""
    person = session.person
    doors: list[Door] = ["This table"] if person.may(*WORKERS) else []
    if person.signed_in and person.may("reviewer", "analyst"):
        doors.append("Submissions")
    if person.signed_in or approved():
        doors.append("Approved bundles")
    if len(doors) == 1:
        return doors[0]
    first: Door = "Submissions" if "Submissions" in doors and not session.runs else doors[0]
    chosen = st.segmented_control("What to look at", doors, default=session.door or first, key="door", required=True)
    session.door = chosen
    return session.door


def show_approved(session: Session) -> None:
    """Every approved bundle, for everybody who may download it."""
    st.header("Approved bundles", anchor=False)
    st.markdown("Each was approved by a reviewer, and is handed out exactly as it was approved.")
    found = approved()
    if not found:
        st.info("Nothing is approved at the moment.", icon=":material/inventory_2:")
    for each in found:
        with st.container(border=True):
            st.text(each.title)
            by = f" by {each.decision.reviewer}" if session.person.may("reviewer", *WORKERS) else ""
            st.text(f"Approved {each.decision.decided:%Y-%m-%d %H:%M} UTC{by}")
            st.caption(each.decision.people)
            offer_download(
                f"Download {each.file_name}", approved_download(each.decision.bundle), each.file_name, "application/zip"
            )


def show_submissions(session: Session) -> None:
    """The list, one submission in full, another beside it, and the decision."""
    st.header("Submissions", anchor=False)
    listed = submissions(session)
    if not listed:
        st.info("Nobody has submitted a release yet.", icon=":material/inbox:")
        return
    st.dataframe(
        [_row(each) for each in listed], hide_index=True, alt="Submissions, newest first, with what was decided"
    )
    names = {each.submission.number: each.name for each in listed}
    waiting = [each.submission.number for each in listed if each.state == "open"]
    numbers = list(names)
    left, right = st.columns(2)
    chosen = left.selectbox(
        "Submission",
        numbers,
        index=numbers.index(waiting[-1] if waiting else numbers[0]),
        format_func=names.__getitem__,
        key="submission",
    )
    others = [number for number in numbers if number != chosen]
    beside = right.selectbox(
        "Compare with", others, index=None, format_func=names.__getitem__, key="submission_beside", disabled=not others
    )
    by_number = {each.submission.number: each for each in listed}
    with errors_shown("This submission cannot be shown."):
        one = by_number[chosen]
        case, account = opened(one.submission)
        found = case.checks(account)
        _show_case(case, account)
        if beside is not None:
            other, its_account = opened(by_number[beside].submission)
            st.subheader("Side by side", anchor=False)
            st.text(f"{names[chosen]}\n{names[beside]}")
            named = {f"Submission {chosen}": found, f"Submission {beside}": other.checks(its_account)}
            show_side_by_side(named, key="beside")
        st.subheader("Checklist", anchor=False)
        _say_thresholds(case)
        show_checklist(found)
        show_unanswered(found)
        show_chart(claims_chart(found.checks), key="submission_claims", as_table=st.toggle("Show as table"))
        _show_contents(case)
        st.subheader("Decision", anchor=False)
        _ask(session, case, one, found, account)
        _show_decisions(one)


def _row(each: ListedSubmission) -> dict[str, str]:
    about, one = each.submission.details, each.submission
    return {
        "number": str(one.number),
        "title": str(about.get("title", "")),
        "state": each.state,
        "submitted by": str(one.by),
        "when (UTC)": one.submitted.strftime("%Y-%m-%d %H:%M"),
        "mechanism": str(about.get("mechanism", "")),
        "ε": str(about.get("epsilon", "")),
        "δ": str(about.get("delta", "")),
        "guarantee": str(about.get("status", "")),
    }


def _show_case(case: ReviewCase, account: Account) -> None:
    one, outcome = case.submission, case.outcome
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            guarantee_badge(outcome.guarantee)
            rows = " + ".join(f"{len(table):,}" for table in outcome.tables)
            st.text(
                f"{rows} synthetic rows, {len(outcome.schema.names)} columns, by {outcome.config.mechanism.title}; "
                f"submitted by {one.by}"
            )
        if case.message:
            st.caption("Message to the reviewers")
            st.text(case.message)
        st.caption("The data set's account now")
        show_budget(account)
        if case.report is not None:
            report = case.report
            offer_download("Download the internal report", lambda: report, "internal_review.html", "text/html")
            st.caption(MARK)


def _say_thresholds(case: ReviewCase) -> None:
    asked = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in case.thresholds.to_dict().items())
    st.text(f"Thresholds as submitted: {asked}.")
    st.caption("Privacy is checked anew, with everything charged since. The rest is as it was when it was submitted.")


def _show_contents(case: ReviewCase) -> None:
    st.subheader("What would leave", anchor=False)
    files, card = bundle_contents(case)
    st.dataframe(
        [{"file": name, "bytes": f"{size:,}"} for name, size in files], hide_index=True, alt="Files of the bundle"
    )
    st.text(f"SHA-256 of the archive: {case.submission.bundle}")
    with st.expander("First synthetic rows", icon=":material/table:"):
        st.dataframe(case.outcome.tables[0].head(PREVIEW_ROWS), alt="The first synthetic rows")
    with st.expander("The data card", icon=":material/description:"):
        st.text(card)


def _ask(session: Session, case: ReviewCase, listed: ListedSubmission, found: Checklist, account: Account) -> None:
    if not session.person.may("reviewer"):
        st.info("A reviewer decides on it.", icon=":material/gavel:")
        return
    own = own_work(session, case, account)
    if own:
        st.info(
            "You made or submitted this release, so somebody else must approve it. You can put it on hold.",
            icon=":material/group:",
        )
    choices: list[Choice] = ["hold"] if own else ["approve", "hold"]
    left, right = st.columns([1, 2])
    choice: Choice | None = left.radio(
        "Decision",
        choices,
        index=None,
        format_func=str.capitalize,
        key=f"review_choice_{session.review_ticket}",
    )
    note = right.text_area("Note: why?", max_chars=10_000, key=f"review_note_{session.review_ticket}")
    missing = missing_for(found, choice, str(session.person), note)
    if clicked(
        "Record the decision", type="primary", icon=":material/gavel:", disabled=bool(missing), key="decide_submission"
    ):
        with errors_shown("The decision was not recorded."):
            assert choice is not None  # noqa: S101  the button is disabled
            record_decision(session, case, listed, choice, note)
            st.rerun()
    plain_list(missing)
    if choice is not None:
        st.caption(MEANING[choice])


def _show_decisions(listed: ListedSubmission) -> None:
    if not listed.decisions:
        return
    st.markdown("**Decisions so far**")
    rows = [
        {
            "when (UTC)": each.decided.strftime("%Y-%m-%d %H:%M"),
            "decision": each.choice,
            "reviewer": each.reviewer,
            "two people": "" if each.choice != "approve" else "yes" if each.two_people else "not known",
            "note": each.note,
        }
        for each in reversed(listed.decisions)
    ]
    st.dataframe(rows, hide_index=True, alt="Decisions on this release, newest first")


def ask_submission(session: Session, run: RunRecord, found: Checklist) -> None:
    """Where people sign in, somebody else decides: hand the release in."""
    st.markdown("A reviewer who neither made nor submitted this release decides on it.")
    earlier = [each for each in submissions(session) if each.submission.release == run.digest]
    for each in earlier:
        st.text(f"Submission {each.submission.number} by {each.submission.by}: {each.state}")
    message = st.text_area(
        "Message to the reviewers", max_chars=MAX_MESSAGE, key=f"message_{session.work.ticket}", help="Internal."
    )
    missing = [f"{check.title}: this cannot be overruled." for check in found.final]
    missing += [f"{check.title}: evidence is missing." for check in found.of("open")]
    if not session.person.may("analyst"):
        missing.append("Only an analyst can submit a release.")
    if clicked(
        "Submit for review", type="primary", icon=":material/outbox:", disabled=bool(missing), key="submit_release"
    ):
        with errors_shown("The release was not submitted."):
            submit_release(session, run, message)
            st.rerun()
    plain_list(missing)
    st.caption("Rows, guarantee, configuration, evidence, thresholds and the bundle are stored beside the ledger.")
