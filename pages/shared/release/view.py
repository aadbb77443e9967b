"""The Release page's parts: the answer, the checklist, what leaves, and the decision."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpsynth_core.charts.checklist import claims_chart, epsilon_chart
from dpsynth_core.diagnostics.purposes import FitnessLine, fitness_lines, overall
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review import Checklist, ChecklistItem, Decision
from dpsynth_core.review.checklist_item import GROUPS
from dpsynth_core.review.publication import PRIVATE_DIAGNOSTICS
from dpsynth_core.review.thresholds import LIMITS, Thresholds
from dpsynth_core.review.wording import costs, loss
from pages.shared.buttons import clicked
from pages.shared.diagnostics.actions import MAX_COMPARED
from pages.shared.diagnostics.view import show_fitness
from pages.shared.formatting import delta_badge
from pages.shared.layout import errors_shown, guarantee_badge
from pages.shared.release.actions import (
    EVIDENCE,
    checks,
    chosen_by,
    describe,
    gather_evidence,
    known_evidence,
    last_decision,
    publishable_tests,
)
from pages.shared.release.side_by_side import STATE, show_side_by_side
from pages.shared.session import Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import ask_run_to_show, plain_list, show_chart, show_task

GROUP_NOTES = {
    "Privacy": "From the run, the ledger and what people have declared. A failure here cannot be overruled, except for "
    "your own policy on epsilon and delta.",
    "Synthetic rows": "From the synthetic rows and the schema alone.",
    "Quality": "Computed from the private rows: for internal review, not for release. The thresholds are yours.",
    "Sanity check": "Computed from the private rows: for internal review, not for release. It can raise an alarm, "
    "but never prove that all is well.",
}
WAYS = "Hold it, make another release, or approve it below with a reason."


def ask_run(session: Session) -> RunRecord:
    """Which of the runs is under review."""
    run = session.runs[-1]
    if len(session.runs) > 1:
        run = ask_run_to_show(session, "Release under review", key="reviewed", describe=lambda each: each.dated_name)
    with st.container(horizontal=True, vertical_alignment="center"):
        guarantee_badge(run.outcome.guarantee)
        st.badge(f"ε = {format_amount(run.outcome.guarantee.epsilon)}", color="gray")
        st.badge(delta_badge(run.outcome.guarantee), color="gray")
        st.text(describe(run))
    plain_list(costs(run.outcome.guarantee))
    _ask_tests(session, run)
    return run


def _ask_tests(session: Session, run: RunRecord) -> None:
    """Which private tests go with the table; their cost becomes part of its statement."""
    tests = publishable_tests(session, run)
    if not tests:
        return
    before = [i for i, test in enumerate(tests) if test in run.published_tests]
    chosen = st.multiselect(
        "Private tests to publish with it",
        range(len(tests)),
        default=before,
        format_func=lambda i: f"{tests[i].finding} {loss(tests[i].cost.budget)}.",
        key=f"published_tests_{run.number}",
        help="They are paid for already. Published together, their cost is added to the release's statement.",
    )
    if sorted(chosen) != before:
        run.published_tests = tuple(tests[i] for i in sorted(chosen))
        st.rerun()


def ask_mode(session: Session) -> None:
    """Whether the review does without private evidence, and whether that still means anything."""
    work = session.work
    work.public_review = st.toggle(
        "Review on public facts and synthetic rows only",
        work.public_review,
        key="public_review",
        help="The app then gathers and shows nothing that was computed from the private rows. Your decision reveals "
        "nothing about them beyond the stated epsilon, but you decide without knowing how good the rows are.",
    )
    if not work.public_review:
        return
    work.tasks.drop(EVIDENCE)
    if chosen_by(work) == PRIVATE_DIAGNOSTICS:
        st.warning(
            "**This choice is no longer blind.** Private diagnostics of this table were looked at before, here or "
            "for an earlier decision. This page hides them now, but the data card will still say that they were seen.",
            icon=":material/visibility:",
        )
    else:
        st.info(
            "Nothing on this page is computed from the private rows, and nobody has looked at private diagnostics of "
            "this table here. The data card will say so.",
            icon=":material/visibility_off:",
        )


def show_candidates(session: Session, account: Account | None) -> None:
    """Every release of this table side by side, check by check, where there are several."""
    if len(session.runs) < 2:
        return
    runs = session.runs[-MAX_COMPARED:]
    with st.expander(f"Compare the releases, check by check ({len(runs)})", icon=":material/view_column:"):
        uses = {run.name: overall(lines) for run in runs if (lines := uses_of(session, run))}
        show_side_by_side({run.name: checks(session, run, account) for run in runs}, uses=uses, key="candidates")
        if any(known_evidence(run) is None for run in runs) and not session.work.public_review:
            st.caption(
                "What was not looked at is filled in once you compare that release with the original, on Diagnostics "
                "or here."
            )


def show_unanswered(found: Checklist) -> None:
    """What a review on public facts cannot answer."""
    if found.unanswered:
        with st.container(border=True):
            st.subheader("Unanswered", anchor=False)
            st.markdown("These questions need the private rows, so this review leaves them open:")
            plain_list(found.unanswered)


def show_answer(session: Session, run: RunRecord, found: Checklist, decisions: tuple[Decision, ...]) -> None:
    """May this be released? What is missing, and what to press."""
    decided = last_decision(run, decisions)
    with st.container(border=True):
        st.subheader("May this be released?", anchor=False)
        if decided is not None and decided.choice == "hold":
            st.info(
                "**On hold.** Nobody can download the bundle; a later decision can approve it.", icon=":material/pause:"
            )
        if decided is not None and decided.choice == "approve":
            st.success("**Approved.** Download the bundle at the end of this page.", icon=":material/verified:")
        elif found.final:
            st.error(f"**{found.answer}**", icon=":material/block:")
        elif found.of("open"):
            st.info(f"**{found.answer}** Press the button: it takes up to a minute.", icon=":material/help:")
        elif found.overrulable:
            st.warning(f"**{found.answer}** {WAYS}", icon=":material/warning:")
        else:
            st.success(f"**{found.answer}** Decide below.", icon=":material/check_circle:")
        if decided is not None:
            done = "Approved" if decided.choice == "approve" else "Put on hold"
            st.text(f"{done} by {decided.reviewer}, {decided.decided:%Y-%m-%d %H:%M} UTC")
        with st.container(horizontal=True):
            for state, (label, colour, icon) in STATE.items():
                st.badge(f"{label}: {len(found.of(state))}", icon=icon, color=colour)
        _show_missed("Not fulfilled, and nobody can overrule it:", [(c.title, c.evidence) for c in found.final])
        missed = [(check.title, f"{check.measured} ({check.asked})") for check in found.overrulable]
        _show_missed("Not fulfilled:", missed)
        if run.evidence is None and not found.public_only:
            _gather(session, run)


def _show_missed(lead: str, claims: list[tuple[str, str]]) -> None:
    """Claims of the checklist that do not hold; without the lead, a claim would read as if it did."""
    if claims:
        st.markdown(f"**{lead}**")
        plain_list(f"{title}: {found}" for title, found in claims)


def _gather(session: Session, run: RunRecord) -> None:
    task = session.work.tasks.get(EVIDENCE)
    if task is not None and task.about is run:
        show_task(task, key=EVIDENCE)
        if not task.ended_early:
            return
    if clicked("Gather the evidence", type="primary", icon=":material/fact_check:", key="gather"):
        with errors_shown("The evidence was not gathered."):
            gather_evidence(session.work, run)
            st.rerun()
    found = "What Diagnostics has found is taken from there. " if known_evidence(run) is not None else ""
    st.caption(f"This compares the release with the original. {found}It costs nothing, and the result stays inside.")


def show_checklist(found: Checklist, uses: Sequence[FitnessLine] = ()) -> None:
    """Every check in a line, in groups; what did not pass says why, the rest is one click away.

    Args:
        found: The checks.
        uses: What the release is good for, where it was compared with the original.
    """
    for group in GROUPS:
        mine = [check for check in found.checks if check.group == group]
        if not mine:
            continue
        with st.container(border=True):
            st.subheader(group, anchor=False)
            for check in mine:
                _line(check)
            if group == "Quality" and uses:
                show_fitness(uses)
            st.caption(GROUP_NOTES[group])
            with st.expander(f"Evidence: {group.lower()}", icon=":material/description:"):
                for check in mine:
                    st.markdown(f"**{check.title}**")
                    st.text(f"Asked: {check.asked}. Measured: {check.measured}.\n{check.evidence}")
                    plain_list(check.details)


def uses_of(session: Session, run: RunRecord) -> tuple[FitnessLine, ...]:
    """What a release is good for, as Diagnostics says; nothing where it was not compared or may not be."""
    evidence = None if session.work.public_review else known_evidence(run)
    return () if evidence is None else fitness_lines(evidence.evaluation, session.work.purposes)


def _line(check: ChecklistItem) -> None:
    label, colour, icon = STATE[check.state]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=90):
            st.badge(label, icon=icon, color=colour)
        # What was measured goes below the title, not below the badge, where there is no room beside it.
        with st.container(width="stretch"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(width=330):
                st.markdown(f"**{check.title}**")
            with st.container(width="stretch"):
                st.text(check.measured)
    if check.state in ("warn", "fail"):
        st.text(check.evidence)


def show_pictures(session: Session, run: RunRecord, found: Checklist, account: Account | None) -> None:
    """Claims beside thresholds, and epsilon beside policy."""
    as_table = st.toggle("Show as tables", key="release_tables")
    # One below the other: side by side, their titles are cut off at 150% zoom.
    st.markdown("**Measured against thresholds**")
    show_chart(claims_chart(found.checks), key="claims", as_table=as_table)
    own, policy = (run.outcome.guarantee.budget or run.config.total).epsilon, session.thresholds.policy.epsilon
    st.markdown("**Epsilon against policy**")
    earlier = max(account.spent.epsilon - own, own - own) if account else own - own
    chart = epsilon_chart(earlier=earlier, this=own, policy=policy, total=account.total.epsilon if account else None)
    show_chart(chart, key="epsilon_policy", as_table=as_table)


def ask_thresholds(session: Session) -> None:
    """What the reviewer asks; it is recorded with the decision."""
    now = session.thresholds
    with st.expander("Change the thresholds", icon=":material/tune:"), st.form("thresholds", border=False):
        st.caption(
            "The defaults are a starting point, not a standard. Your thresholds are recorded with your decision."
        )
        left, right = st.columns(2)
        epsilon = left.text_input("Policy: total epsilon, at most", now.epsilon, key="policy_epsilon")
        delta = right.text_input("Policy: total delta, at most", now.delta, key="policy_delta")
        values = {}
        for at, (name, limit) in enumerate(LIMITS.items()):
            values[name] = (left, right)[at % 2].number_input(
                f"{limit.title}, at most",
                0.0,
                limit.max,
                float(getattr(now, name)),
                limit.step,
                help=limit.help,
                key=f"limit_{name}",
            )
        if st.form_submit_button("Use these thresholds", icon=":material/check:"):
            with errors_shown("These thresholds cannot be used."):
                session.thresholds = Thresholds(epsilon=epsilon, delta=delta, **values)
                st.rerun()
