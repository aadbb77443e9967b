"""The Data page's account: who answers for the public facts, the total budget, and tables that share one."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.declarations import NearAccountError
from dpsynth_core.privacy.budget import Budget, format_amount
from pages.shared.accounts import account_of
from pages.shared.buttons import clicked
from pages.shared.data.account_actions import other_accounts, share_account
from pages.shared.data.actions import (
    declare_facts,
    declared_facts,
    open_account,
    sign,
    use_declared_facts,
)
from pages.shared.layout import NOT_MONEY, errors_shown
from pages.shared.session import Session

_TOTAL_EPSILON, _TOTAL_DELTA, _PROPOSED = "total_epsilon", "total_delta", "total_proposed"


def ask_steward(session: Session) -> None:
    """Where people sign in, a steward puts the facts on record, and analysts use them."""
    person, work = session.person, session.work
    if person.may("steward") and work.declared_by != person.name:
        sign(session, person.name)
    if session.mode == "teaching":
        return
    with st.container(border=True), errors_shown("The facts were not declared."):
        known = declared_facts(session)
        if known is None:
            st.text("No steward has put facts about this table on record yet.")
        else:
            st.text(f"Facts on record: declared by {known.by}, {known.declared:%Y-%m-%d %H:%M} UTC.")
        same = known is not None and work.schema == known.schema
        if same:
            st.caption("These are the facts above.")
        elif person.may("steward"):
            st.caption("Analysts can use this table with the facts that you put on record, and no others.")
            if account_of(session) is None:
                st.caption("Open the account first.")
            elif clicked("Put these facts on record", icon=":material/edit_document:", key="declare_facts"):
                declare_facts(session)
                st.rerun()
        elif known is not None:
            st.caption("The facts above are others. Nothing can be made with them.")
            if clicked("Use the facts on record", icon=":material/undo:", key="use_declared"):
                use_declared_facts(session)
                st.rerun()
        else:
            st.caption("Until then nothing can be made from it. Ask a steward.")


def ask_account(session: Session) -> None:
    """In release mode, the total budget of the data set, fixed at first use."""
    if session.mode == "teaching":
        return
    account = account_of(session)
    if account is not None:
        st.text(
            f"This data set has an account, opened {account.created:%Y-%m-%d}: "
            f"ε {format_amount(account.spent.epsilon)} of {format_amount(account.total.epsilon)} spent, "
            f"δ {format_amount(account.spent.delta)} of {format_amount(account.total.delta)}."
        )
        return
    if not session.person.may("steward"):
        st.info("This data set has no account yet. A steward must open it.", icon=":material/lock:")
        return
    if session.work.near:
        _ask_whose_rows(session)
        return
    _propose_total(session)
    with st.form("account"):
        st.markdown(
            "**Total budget of this data set.** It covers everything ever released from the data and cannot be raised.",
            help=NOT_MONEY,
        )
        left, right = st.columns(2)
        epsilon = left.number_input("Total epsilon", min_value=0.01, max_value=100.0, key=_TOTAL_EPSILON)
        delta = right.text_input(
            "Total delta", key=_TOTAL_DELTA, help="With zero, mechanisms that need a delta cannot be used."
        )
        if st.form_submit_button("Open the account", type="primary"):
            with errors_shown("The account was not opened."):
                session.work.proposed_total = Budget.of(epsilon, delta)
                with st.spinner("Comparing with tables that have an account"):
                    try:
                        open_account(session, epsilon, delta)
                    except NearAccountError as found:
                        session.work.near = found.near
                st.rerun()
    _offer_other_account(session)


def _ask_whose_rows(session: Session) -> None:
    """Before a fresh budget is opened for a table that shares most of its rows with another one."""
    work, total = session.work, session.work.proposed_total
    with st.container(border=True):
        st.warning(
            "**Most of these rows have an account already.** With a second account, the people in both tables would "
            "lose more privacy than either total says.",
            icon=":material/difference:",
        )
        for number, near in enumerate(work.near):
            account = near.account
            st.text(
                f"{account.label or 'A table'}, opened {account.created:%Y-%m-%d}: about {near.share:.0%} of the "
                f"smaller table's rows are in both; ε {format_amount(account.left.epsilon, up=False)} of "
                f"{format_amount(account.total.epsilon)} left."
            )
            if clicked("Use this account", icon=":material/link:", key=f"share_account_{number}"):
                with errors_shown("The table was not attached."):
                    share_account(session, account)
                    work.near = ()
                    st.rerun()
        st.caption(
            "Use it if this is a corrected or extended version of that table. This cannot be undone. Tables of other "
            "people may share rows by chance, if few different rows are possible."
        )
        left, right = st.columns(2)
        with left:
            if clicked("These are other people: open a separate account", key="separate_account"):
                with errors_shown("The account was not opened."):
                    open_account(session, total.epsilon, total.delta, apart=True)
                    work.near = ()
                    st.rerun()
        with right:
            if clicked("Cancel", key="no_account"):
                work.near = ()
                st.rerun()


def _offer_other_account(session: Session) -> None:
    """For a version of a table that differs too much to be recognised by its rows."""
    if not st.toggle("This is another version of a table that has an account", key="is_version"):
        return
    others = {each.fingerprint: each for each in other_accounts()}
    if not others:
        st.caption("No table has an account yet.")
        return
    with st.container(border=True):
        chosen = st.selectbox("Its account", list(others), format_func=lambda name: _account_line(others[name]))
        st.caption("What is spent on either is then charged to that account. This cannot be undone.")
        if clicked("Charge this table to it", icon=":material/link:", key="attach_table"):
            with errors_shown("The table was not attached."):
                share_account(session, others[chosen])
                st.rerun()


def _account_line(account: Account) -> str:
    return (
        f"{account.label or 'A table'}, opened {account.created:%Y-%m-%d}, ε "
        f"{format_amount(account.left.epsilon, up=False)} of {format_amount(account.total.epsilon)} left"
    )


def _propose_total(session: Session) -> None:
    """What the form begins with: for each table, and again when a plan has been applied."""
    total = session.work.proposed_total
    about = session.tables_used, total
    if _TOTAL_EPSILON not in st.session_state or st.session_state.get(_PROPOSED) != about:
        # The fields stay the same elements, so that nothing typed meanwhile is lost to a second one.
        st.session_state[_TOTAL_EPSILON] = float(total.epsilon)
        st.session_state[_TOTAL_DELTA] = format_amount(total.delta)
        st.session_state[_PROPOSED] = about
