"""The Data page's form for public facts: the editor, the unit of protection, the account, private estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.privacy.budget import Budget, format_amount
from dpsynth_core.table.column import KINDS, ORIGINS, Column
from dpsynth_core.table.estimate import HOPELESS_SHARE, estimate_prospect
from dpsynth_core.table.schema import MAX_DECLARED_BY
from dpsynth_core.table.suggest import WORDS_AMONG_NUMBERS, WORDS_AMONG_NUMBERS_OF_SEVERAL
from pages.shared.accounts import account_of
from pages.shared.buttons import clicked
from pages.shared.data.account_view import ask_steward
from pages.shared.data.actions import (
    adopt_account_terms,
    declare_all_public,
    edit_draft,
    load_schema,
    replace_draft,
    sign,
)
from pages.shared.data.estimate_actions import COUNTING, can_estimate, estimate, rows_looked_at, sampled_line
from pages.shared.data.schema_rows import settle_origins, split_labels
from pages.shared.layout import errors_shown, show_error
from pages.shared.session import Session
from pages.shared.spending import Offer, ask_to_spend, show_price
from pages.shared.widgets import offer_download, plain_list, show_task

LABEL_DELTA, OTHER_LABEL = "1e-7", "other"
LABELS_HELP = (
    "Every possible label, in order if ordinal. You can type or paste several at once, separated by commas, semicolons "
    'or lines. Put a label that has a comma in it between quotation marks: "Paris, France".'
)


@dataclass(frozen=True, kw_only=True)
class AskedEstimate:
    """A private estimate that the visitor asked for."""

    name: str
    """The column."""
    budget: Budget
    other: str
    """The label for values that are not named; empty: none."""


def _editor_columns() -> dict[str, Any]:
    config = st.column_config
    return {
        "keep": config.CheckboxColumn(
            "Keep", help="Clear it to leave the column out of the synthetic table.", width="small"
        ),
        "name": config.TextColumn("Column", disabled=True, pinned=True),
        "public": config.CheckboxColumn(
            "Public", help="I state that these facts are public knowledge: anyone could know them without the data."
        ),
        "kind": config.SelectboxColumn("Kind", options=list(KINDS), required=True, help="What the values are."),
        "from": config.TextColumn("From", help="Smallest possible number or date."),
        "to": config.TextColumn("To", help="Largest possible number or date."),
        "bins": config.NumberColumn("Bins", min_value=1, step=1, help="How many cells the range is divided into."),
        "categories": config.ListColumn("Categories", help=LABELS_HELP),
        "other": config.TextColumn("Other", help="The label for every value that is not listed."),
        "missing": config.CheckboxColumn("May be missing", help="Adds a level for missing values."),
        "decimals": config.NumberColumn("Decimals", min_value=0, step=1, help="Digits after the point."),
        "unit": config.TextColumn("Unit", help="Shown on axes."),
        "date format": config.TextColumn("Date format", help="Empty for 2024-12-31; %d/%m/%Y for 31/12/2024."),
        "origin": config.SelectboxColumn("Origin", options=list(ORIGINS), help="Where the facts come from."),
    }


def edit_schema(session: Session) -> None:
    """The editable table with its bulk actions, save and load, and what is wrong with it."""
    work = session.work
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # By callback: a page that is being drawn is broken off by the next click, and would forget this one.
        st.button(
            "All of these are public knowledge",
            icon=":material/verified:",
            help="I state that the facts of every column, and how the file is laid out, are public knowledge.",
            key="all_public",
            on_click=partial(declare_all_public, session, public=True),
        )
        st.button("None is public", key="none_public", on_click=partial(declare_all_public, session, public=False))
        if work.schema is not None:
            content = work.schema.to_json().encode()
            offer_download("Save schema", lambda: content, "schema.json", "application/json")
    editor_key = f"schema_editor_{session.draft_version}"
    # The editor keeps what was typed as changes to the table it was given, so that table must not change
    # while it is on screen; it is taken from the draft whenever the editor appears anew.
    if editor_key not in st.session_state:
        work.editor_base = work.draft
    edited = st.data_editor(
        work.editor_base,
        key=editor_key,
        column_config=_editor_columns(),
        column_order=list(_editor_columns()),
        hide_index=True,
        placeholder="",
        alt="The public facts, one row per column of the table",
    )
    if not edited.equals(work.draft):
        _take_over(session, edited)
        st.rerun()
    if work.problems:
        show_error("Please correct this:", *work.problems)
    _explain_words(session)
    _explain_left_out(session)
    _load_schema(session)


def _take_over(session: Session, edited: pd.DataFrame) -> None:
    work = session.work
    settled = split_labels(settle_origins(edited, work.draft), work.draft, work.data.layout)
    if settled.equals(edited):
        edit_draft(session, edited)
    else:
        # What one cell says follows from another, so the editor must start afresh.
        replace_draft(session, settled)


def _explain_words(session: Session) -> None:
    """Which columns of numbers hold words, too, while they are still declared as numbers."""
    numeric = () if session.schema is None else [column.name for column in session.schema if column.is_numeric]
    names = [name for name in session.work.words if name in numeric]
    if len(names) == 1:
        plain_list([f"{names[0]}: {WORDS_AMONG_NUMBERS}"])
    elif names:
        plain_list([f"{', '.join(names)}: {WORDS_AMONG_NUMBERS_OF_SEVERAL}"])


def _explain_left_out(session: Session) -> None:
    """Why the suggestion leaves a column out, while it is still left out."""
    used = () if session.schema is None else session.schema.names
    reasons = {name: reason for name, reason in session.work.left_out.items() if name not in used}
    if reasons:
        st.caption("Left out unless you tick Keep:")
        plain_list(f"{name}: {reason}" for name, reason in reasons.items())


def _load_schema(session: Session) -> None:
    with st.expander("Load a saved schema"):
        file = st.file_uploader("Schema (JSON)", type=["json"], key=f"schema_file_{session.draft_version}")
        if file is not None and clicked("Use this schema", key="use_schema"):
            with errors_shown("This schema cannot be used."):
                load_schema(session, file.getvalue())
                st.rerun()


def ask_declarer(session: Session) -> None:
    """The name of whoever declares the facts; only a reviewer reads it."""
    if session.person.signed_in:
        ask_steward(session)
        return
    # Without a key: only another name, as a loaded schema brings it, makes another field. What is being typed while the
    # page is at work is not lost.
    name = st.text_input(
        "Who states that these facts are public?",
        value=session.work.declared_by,
        max_chars=MAX_DECLARED_BY,
        placeholder="Name and role, and where the facts are written down",
        help="Optional. Stored with the schema and shown to the reviewer, but never published.",
    )
    if session.work.signature_lapsed:
        st.caption("The facts have changed, so the name that came with them no longer applies. Who states them now?")
    if name.strip() != session.work.declared_by:
        sign(session, name)
        st.rerun()


def ask_unit(session: Session) -> None:
    """Whom the guarantee protects."""
    fixed = adopt_account_terms(session) is not None
    rows = st.number_input(
        "At most how many rows can one person own?",
        min_value=1,
        max_value=10**6,
        value=session.work.rows_per_person,
        help="The guarantee protects people. If a person can own k rows, the mechanism runs at epsilon divided by k.",
        disabled=fixed,
        width=360,
    )
    if rows != session.work.rows_per_person:
        session.work.rows_per_person = rows
        edit_draft(session, session.work.draft)
        st.rerun()


def ask_estimate(session: Session) -> None:
    """For "I don't know the range": a private estimate that costs epsilon."""
    with st.expander("I don't know a range or the categories: estimate them privately"):
        st.markdown(
            "If you don't know a column's range or its categories, spend a little epsilon to estimate them privately: "
            "a range that covers nearly all rows, or the labels that many rows share. The result counts as declared, "
            "and its cost is part of what every release that uses it states."
        )
        if session.schema is None:
            st.caption(
                "Complete the public facts first. If you don't know a range, enter any, such as 0 to 1: the estimate "
                "replaces it."
            )
            return
        names = [column.name for column in session.schema if can_estimate(column)]
        if not names:
            st.caption("None of the columns needs an estimate.")
            return
        left, middle, right = st.columns(3)
        name = left.selectbox("Column", names, key=f"estimate_column_{session.draft_version}")
        column, unit = session.schema[name], session.work.rows_per_person
        labels = not column.is_numeric
        n = rows_looked_at(session.work.data, labels=labels)
        first = estimate_prospect(n, Budget.of("0.1", LABEL_DELTA), labels=labels, rows_per_person=unit).epsilon_needed
        epsilon = middle.number_input(
            "Epsilon",
            min_value=0.01,
            max_value=10.0,
            value=max(0.1, float(first or 0.1)),
            key="estimate_epsilon",
            persist_state="session",
        )
        delta, other = "0", ""
        if labels:
            delta = right.text_input("Delta", value=LABEL_DELTA, key="estimate_delta", persist_state="session")
            if column.other is None and st.checkbox(
                "Add a label for everything that is not named", value=True, key="estimate_other"
            ):
                other = OTHER_LABEL
        stated = st.checkbox(
            _others_statement(column), key=f"estimate_others_{session.draft_version}_{names.index(name)}"
        )
        no_account = session.mode == "release" and account_of(session) is None
        counting = session.work.tasks.get(COUNTING)
        blocked = no_account or not stated or (counting is not None and counting.active)
        with errors_shown("Please correct this:"):
            blocked |= _say_prospect(n, Budget.of(epsilon, delta), unit, labels=labels)
            for line in sampled_line(session.work.data, labels=labels):
                st.caption(line)
        if no_account:
            st.caption("Set the total budget above first.")
        if not stated:
            st.caption("An estimate answers for the range or the categories only, so you must state the rest.")
        with errors_shown("Please correct this:"):
            asked = AskedEstimate(name=name, budget=Budget.of(epsilon, delta), other=other)
            offer: Offer[AskedEstimate] = Offer(
                name="estimate",
                price=lambda asked: asked.budget,
                explain=_explain_price,
                confirm="Spend it",
                make=lambda asked, run_id: _run_estimate(session, asked, run_id),
            )
            ask_to_spend(session, offer, "Estimate", asked, key="estimate", disabled=blocked)
        if counting is not None:
            show_task(counting, key=COUNTING)
        if session.work.estimate_problem is not None:
            show_error("Nothing was declared.", session.work.estimate_problem)
        plain_list(session.work.estimate_note)


def _say_prospect(n: int, budget: Budget, unit: int, *, labels: bool) -> bool:
    """What to expect, from the number of rows and epsilon alone; returns whether the estimate would be hopeless."""
    if labels and not budget.delta:
        return False
    prospect = estimate_prospect(n, budget, labels=labels, rows_per_person=unit)
    epsilon, needed = format_amount(budget.epsilon), f"about {prospect.rows_needed:,} of the {n:,} rows"
    what = "a label is named only if" if labels else "a part of the range is found only if"
    share_it = "share it" if labels else "lie in it"
    missed = (
        "Rarer labels are missed."
        if labels
        else "Parts of the range, such as 20 to 50 or 500 to 1,000, are cut off at either end if they hold fewer."
    )
    st.markdown(
        f"**What to expect.** At ε = {epsilon}, {what} {needed} ({prospect.share_needed:.1%}) {share_it}. {missed}"
    )
    if not prospect.hopeless:
        return False
    remedy = (
        f"Spend at least ε = {prospect.epsilon_needed}, or declare the facts from public knowledge."
        if prospect.epsilon_needed
        else "No ε up to 10 would be enough for so few rows: declare the facts from public knowledge."
    )
    st.warning(
        f"This would ruin the column, so the app does not offer it: what {HOPELESS_SHARE:.0%} of the rows share would "
        f"be missed. {remedy}",
        icon=":material/block:",
    )
    return True


def _others_statement(column: Column) -> str:
    """What the visitor must know without looking at the rows, in a sentence."""
    missing = "may be missing" if column.nullable else "are never missing"
    rest = (
        "everything else declared for it is, too" if column.public else "bins, decimals and Other start from defaults"
    )
    return f"I state as public knowledge that this column is {column.kind} and that its values {missing}; {rest}."


def _explain_price(account: Account, asked: AskedEstimate) -> bool:
    enough = show_price(account, asked.budget, f"Estimating column {asked.name!r}")
    if not enough:
        st.text("Spend less, or declare the facts from public knowledge.")
    return enough


def _run_estimate(session: Session, asked: AskedEstimate, run_id: str) -> None:
    session.work.estimate_problem = None
    try:
        # Both buttons that lead here ask for the statement about the column's other facts first.
        estimate(session, asked.name, asked.budget, run_id=run_id, others_public=True, other=asked.other)
    except DPSynthError as problem:
        # It may have cost something all the same, so the page begins again and shows what is left.
        session.work.estimate_problem = problem
    st.rerun()
