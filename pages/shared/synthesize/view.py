"""The Synthesize page's parts: summary, confirmation, progress, result, history."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts import compare_chart
from dpsynth_core.charts.spending import spending_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.export import parquet, safe_csv
from dpsynth_core.runs.configuration import MAX_COPIES, RunConfig, RunResult
from dpsynth_core.table.schema import Schema
from pages.shared.data.actions import account_of
from pages.shared.formatting import duration, format_loss
from pages.shared.layout import guarantee_badge, in_words, show_error
from pages.shared.mechanism.settings import plan_for
from pages.shared.session import Session
from pages.shared.synthesize.actions import charge_words, start
from pages.shared.widgets import plain_list, show_chart, show_series, watch

PREVIEW_ROWS = 100
PICTURES_IN_A_ROW = 3
MOST_ROWS = 10**8
MOST_SEED = 10**9


def ask_options(session: Session, schema: Schema, n: int) -> None:
    """How many tables, how many rows, and in teaching mode a seed."""
    choices = session.choices
    left, middle, right = st.columns(3)
    choices.copies = left.number_input(
        "Synthetic tables",
        1,
        MAX_COPIES,
        choices.copies,
        help="Several tables show how much chance is in them. Each costs epsilon.",
    )
    rows = choices.mechanism(schema, n).rows
    given = middle.number_input(
        "Rows in each", 1, MOST_ROWS, rows, placeholder=f"{n:,}, as in the original",
        help="Free for most mechanisms: rows are drawn from what was learned.",
        key=f"rows_{choices.key}_{choices.version}",
    )  # fmt: skip
    if given != rows:
        choices.set(schema, n, "rows", given)
    if session.mode == "teaching":
        choices.seed = right.number_input(
            "Seed (optional)", 0, MOST_SEED, choices.seed, placeholder="none: real noise",
            help="With a seed the run can be repeated, so it is not private. For teaching only.",
        )  # fmt: skip


def show_summary(session: Session, order: RunConfig, schema: Schema, n: int) -> list[str]:
    """What will be made and what it costs; returns what stands in the way."""
    total, missing = order.total, []
    delta = f", δ = {format_amount(total.delta)}" if total.delta else ""
    rows = order.mechanism.rows or n
    with st.container(border=True):
        if order.copies == 1:
            st.markdown(f"**{order.mechanism.title}** makes one synthetic table of {rows:,} rows.")
            st.markdown(f"Privacy loss: **ε = {format_amount(total.epsilon)}**{delta}.")
        else:
            st.markdown(
                f"**{order.mechanism.title}** makes {order.copies} synthetic tables of {rows:,} rows, "
                f"at ε = {order.epsilon} each."
            )
            st.markdown(f"Privacy loss of all together: **ε = {format_amount(total.epsilon)}**{delta}.")
        try:
            plan = plan_for(order.mechanism, schema, n, order.epsilon, order.delta)
            st.caption(f"Expected time: {duration(plan.seconds * order.copies)}.")
        except DPSynthError:
            missing.append("Choose a mechanism that fits this table.")
    if session.mode == "release":
        missing += _budget_problems(session, order)
    return missing


def _budget_problems(session: Session, order: RunConfig) -> list[str]:
    account = account_of(session)
    if account is None:
        return ["Open the data set's account on the Data page."]
    if order.total.epsilon > account.left.epsilon or order.total.delta > account.left.delta:
        left = format_amount(account.left.epsilon, up=False)
        return [f"Lower epsilon or the number of tables: only ε = {left} is left."]
    return []


def ask_to_run(session: Session, order: RunConfig, missing: list[str]) -> None:
    """The button; in release mode it leads to a confirmation that states the charge."""
    busy = session.job is not None and session.job.active
    if st.button(
        "Synthesize", type="primary", icon=":material/casino:", disabled=bool(missing) or busy, key="synthesize"
    ):
        if session.mode == "release":
            confirm(session, order)
        else:
            with in_words("The run was not started."):
                start(session, order)
                st.rerun()
    if missing and not busy:
        st.markdown("**Before this can run:**")
        plain_list(missing)


@st.dialog("Spend part of the budget?")
def confirm(session: Session, order: RunConfig) -> None:
    """State cost and remainder; nothing is spent before the second button."""
    account = account_of(session)
    if account is None:
        return
    left, total = account.left, order.total
    st.text(f"This run costs {format_loss(total.epsilon, total.delta)}.")
    st.text(f"Left now: {format_loss(left.epsilon, left.delta, up=False)}.")
    afterwards = format_loss(left.epsilon - total.epsilon, left.delta - total.delta, up=False)
    st.text(f"Left afterwards: {afterwards}.")
    with st.container(horizontal=True):
        if st.button("Spend it and run", type="primary", key="confirm_run"):
            with in_words("The run was not started."):
                start(session, order)
                st.rerun()
        if st.button("Cancel", key="cancel_confirm"):
            st.rerun()


def show_run(session: Session) -> None:
    """The run at work; or how the last one ended, where it did not finish, and what it cost."""
    job = session.job
    if job is None:
        return
    release = session.mode == "release"
    if job.active:
        watch(job, expected=session.expected, release=release, key="run")
    elif job.state == "cancelled":
        st.info("The run was cancelled.", icon=":material/cancel:")
        st.text(charge_words(session))
    elif job.state == "failed":
        show_error("The run failed.", DPSynthError(f"{job.problem}\n{charge_words(session)}"))
    elif job.series:
        with st.expander("How it went"):
            show_series(job, release=release, key="ended")


def show_outcome(session: Session, outcome: RunResult, place: int) -> None:
    """The synthetic table, its badge, and its files."""
    with st.container(horizontal=True, vertical_alignment="center"):
        guarantee_badge(outcome.guarantee)
        st.badge(f"ε = {format_amount(outcome.guarantee.epsilon)}", color="gray")
        st.badge(
            "δ = 0 (pure)" if outcome.guarantee.kind == "pure" else f"δ = {format_amount(outcome.guarantee.delta)}",
            color="gray",
        )
    st.caption(outcome.guarantee.meaning)
    plain_list(outcome.guarantee.caveats)
    which = 0
    if len(outcome.tables) > 1:
        which = st.segmented_control(
            "Table", range(len(outcome.tables)), default=0, format_func=lambda i: f"Table {i + 1}", key=f"which_{place}"
        ) or 0  # fmt: skip
    table = outcome.tables[which]
    st.dataframe(table.head(PREVIEW_ROWS), height=245, hide_index=True, alt="The first rows of the synthetic table")
    with st.container(horizontal=True):
        icon, name = ":material/download:", f"synthetic_{place + 1}_{which + 1}"
        st.download_button(
            "Download CSV",
            lambda: safe_csv(table),
            f"{name}.csv",
            "text/csv",
            icon=icon,
            on_click="ignore",
            key=f"csv_{place}",
        )
        st.download_button(
            "Download Parquet",
            lambda: parquet(table),
            f"{name}.parquet",
            icon=icon,
            on_click="ignore",
            key=f"parquet_{place}",
        )
    _compare(session, outcome, which, place)


def _compare(session: Session, outcome: RunResult, which: int, place: int) -> None:
    """A first look beside the original: private, so in release mode only on demand."""
    if session.data is None:
        return
    teaching, names = session.mode == "teaching", outcome.schema.names
    note = "Compare with the original" if teaching else "Compare with the original (not for release: private data)"
    if not st.toggle(note, value=teaching, key=f"compare_{place}"):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.multiselect("Columns", names, default=names[:PICTURES_IN_A_ROW], key=f"compared_{place}")
        as_table = st.toggle("Show as tables", key=f"compare_as_tables_{place}")
    for first in range(0, len(shown), PICTURES_IN_A_ROW):
        for slot, name in zip(st.columns(PICTURES_IN_A_ROW), shown[first : first + PICTURES_IN_A_ROW], strict=False):
            with slot:
                chart = compare_chart(session.data.table, outcome.tables[which], outcome.schema, name)
                show_chart(chart, key=f"compare_{place}_{names.index(name)}", as_table=as_table)


def show_history(session: Session) -> None:
    """This session's releases, newest first, and what they cost together."""
    if len(session.outcomes) < 2:
        return
    rows = [
        {
            "run": i + 1,
            "mechanism": outcome.config.mechanism.title,
            "epsilon": format_amount(outcome.config.total.epsilon),
            "tables": outcome.config.copies,
            "guarantee": outcome.guarantee.status,
            "seconds": f"{outcome.seconds:.1f}",
        }
        for i, outcome in enumerate(session.outcomes)
    ]
    together = sum((outcome.config.total for outcome in session.outcomes[1:]), session.outcomes[0].config.total)
    st.markdown(
        "**History.** Anyone who sees all of these can learn at most as much as from one at "
        f"ε = {format_amount(together.epsilon)}."
    )
    st.dataframe(rows[::-1], hide_index=True, alt="Releases of this session")
    chosen = st.selectbox("Look at run", range(len(rows), 0, -1), key="history")
    show_outcome(session, session.outcomes[chosen - 1], chosen - 1)


def show_spending(session: Session) -> None:
    """What the data set has spent so far, step by step."""
    with in_words("The ledger cannot be read."):
        account = account_of(session)
        if account is not None and account.spent.epsilon:
            st.header("What was spent", anchor=False)
            show_chart(
                spending_chart(account), key="spending", as_table=st.toggle("Show as table", key="spending_table")
            )
