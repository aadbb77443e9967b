"""The private test of two groups: the form, what it would find, the confirmation, and its results."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpsynth_core.charts.p_values import power_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.private_comparison import ComparisonRequest
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.wording import claim, costs
from dpsynth_core.table.schema import Schema
from pages.shared.accounts import account_of
from pages.shared.buttons import clicked
from pages.shared.comparison.actions import (
    GROUPS,
    POWER,
    ask_power,
    group_columns,
    labels_of,
    power_asked,
    results,
    rows_tested,
    run_private_test,
    value_columns,
)
from pages.shared.layout import errors_shown, guarantee_badge, show_error
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.session import Session
from pages.shared.spending import Offer, ask_to_spend, show_price, warn_of_void
from pages.shared.table_work import RunRecord
from pages.shared.widgets import plain_list, show_chart, show_task

EFFECTS = tuple(range(55, 100, 5))
LEVEL = 0.05


def point_to_comparison(schema: Schema) -> None:
    """On the Mechanism page: a synthetic table may be more than the question needs."""
    if group_columns(schema):
        st.caption(
            "If your question is one comparison of two groups, a private test on the original rows usually finds more "
            "than a synthetic table at the same epsilon. The Synthesize page offers it and shows by how much."
        )


def ask_comparison(session: Session, schema: Schema) -> None:
    """On the Synthesize page: one comparison instead of a synthetic table."""
    with st.expander("Is your question one comparison? Test it privately instead", icon=":material/compare_arrows:"):
        st.markdown(
            "A synthetic table spends epsilon on every column. If all you want to know is whether two groups differ, "
            "let the app test that on the original rows, with noise, for the same or for less epsilon."
        )
        groups = group_columns(schema)
        form, key = session.work.comparing, session.draft_version
        if not groups:
            st.markdown("This table has no column of labels whose groups could be compared.")
            return
        left, right = st.columns(2)
        form.group = left.selectbox("Group", groups, index=_index(groups, form.group), key=f"test_group_{key}")
        values = value_columns(schema, form.group)
        if not values:
            st.markdown("No other column has an order, so there is nothing to compare.")
            return
        form.value = right.selectbox("Value", values, index=_index(values, form.value), key=f"test_value_{key}")
        levels = _ask_levels(session, schema, form.group)
        if levels is not None:
            show_private_test(session, schema, form.value, form.group, levels, key="synthesize")


def _index(options: list[str], chosen: str) -> int:
    return options.index(chosen) if chosen in options else 0


def _ask_levels(session: Session, schema: Schema, group: str) -> tuple[Any, Any] | None:
    labels, key = labels_of(schema, group), f"{session.draft_version}_{schema.names.index(group)}"
    if len(labels) == 2:
        return labels[0], labels[1]
    chosen = st.multiselect(
        "The two groups", labels, default=labels[:2], max_selections=2, format_func=str, key=f"test_levels_{key}"
    )
    if len(chosen) != 2:
        st.caption("Choose two groups. Rows of the others are left out.")
        return None
    return chosen[0], chosen[1]


def show_private_test(
    session: Session,
    schema: Schema,
    value: str,
    group: str,
    levels: tuple[Any, Any],
    *,
    key: str,
    run: RunRecord | None = None,
) -> None:
    """The form for one comparison, its power, and every result on this table.

    Args:
        session: The visitor.
        schema: The public facts to test with.
        value: The column to compare.
        group: The column of the groups.
        levels: The two groups.
        key: Of the widgets.
        run: A release whose mechanism and rows the power is simulated with; None: simulated rows.
    """
    with errors_shown("Please correct this:"):
        request = _ask_request(session, value, group, levels, key=key, run=run)
        request.comparison(schema, session.work.n)
        _show_power(session, schema, request, key=key, run=run)
        _ask_test(session, schema, request, key=key)
    if session.work.comparison_problem is not None:
        show_error("There is no result.", session.work.comparison_problem)
    with errors_shown("The ledger cannot be read."):
        _show_results(session, (value, group, levels))


def _ask_request(
    session: Session, value: str, group: str, levels: tuple[Any, Any], *, key: str, run: RunRecord | None
) -> ComparisonRequest:
    form, first = session.work.comparing, session.settings.epsilon if run is None else run.config.epsilon
    options = EPSILONS if (form.epsilon or first) in EPSILONS else (*EPSILONS, form.epsilon or first)
    left, right = st.columns([3, 1])
    form.epsilon = left.select_slider(
        "Epsilon of the test", options, value=form.epsilon or first, key=f"test_epsilon_{key}"
    )
    form.delta = right.text_input(
        "Delta",
        value=form.delta,
        key=f"test_delta_{key}",
        help="The test needs a tiny chance of failure: the noisy sizes of the groups could be far off.",
    )
    return ComparisonRequest(value=value, group=group, levels=levels, epsilon=form.epsilon, delta=form.delta)


def _show_power(
    session: Session, schema: Schema, request: ComparisonRequest, *, key: str, run: RunRecord | None
) -> None:
    """How often the test, and a release at the same epsilon, would find a difference: simulated, on demand."""
    work, form = session.work, session.work.comparing
    st.markdown("**What would it find?**")
    left, right = st.columns(2)
    form.effect = left.select_slider(
        "The difference that matters",
        EFFECTS,
        value=form.effect,
        key=f"test_effect_{key}",
        format_func=lambda pairs: f"{pairs} of 100",
        help="Of 100 random pairs, one from each group, how many have the larger value in the first group. 50 is no "
        "difference; 76 is one standard deviation between two bell curves.",
    )
    if run is None:
        form.share = right.slider("Rows in the first group (%)", 1, 99, form.share, key=f"test_share_{key}")
    share = None if run is not None else form.share / 100
    asked = power_asked(session, request, effect=form.effect / 100, share=share, run=run)
    power = work.powers.get(asked)
    if power is not None:
        st.text(power.sentence)
        as_table = st.toggle("Show as table", key=f"test_power_table_{key}")
        show_chart(power_chart(power), key=f"test_power_{key}", as_table=as_table)
        source = "made-up rows that fit your public facts" if run is None else "the released rows"
        st.caption(f"Simulated with {source}; no private row was looked at. The intervals are the simulation's error.")
        return
    task = work.tasks.get(POWER)
    mine = task if task is not None and task.about == asked else None
    if (mine is None or mine.ended_early) and clicked(
        "Compare with a synthetic table", icon=":material/experiment:", key=f"test_ask_power_{key}"
    ):
        mine = ask_power(session, schema, asked)
    if mine is not None:
        show_task(mine, key=f"{POWER}_{key}")


def _ask_test(session: Session, schema: Schema, request: ComparisonRequest, *, key: str) -> None:
    """The button; in release mode it leads to a confirmation that states the charge."""
    release = session.work.data.fingerprint is not None
    again = any(found.about == (request.value, request.group, request.levels) for found in results(session))
    label = "Test again with fresh noise" if again else "Run the private test"
    no_account = release and account_of(session) is None
    offer: Offer[ComparisonRequest] = Offer(
        name="test",
        price=lambda asked: asked.budget,
        explain=lambda account, asked: _explain_price(session, account, schema, asked),
        confirm="Spend it and test",
        make=lambda asked, run_id: _run(session, schema, asked, run_id),
    )
    look = {"type": "primary", "icon": ":material/compare_arrows:"}
    counting = session.work.tasks.get(GROUPS)
    busy = counting is not None and counting.active
    ask_to_spend(session, offer, label, request, key=f"test_run_{key}", disabled=no_account or busy, **look)
    _say_how_many(session)
    if counting is not None and (busy or counting.ended_early):
        show_task(counting, key=f"{GROUPS}_{key}")
    if no_account:
        st.caption("Open the data set's account on the Data page first.")
    elif again and release:
        st.caption("The result below is paid for and free to use. Another one costs epsilon again.")


def _say_how_many(session: Session) -> None:
    data = session.work.data
    if rows_tested(data) < data.n:
        st.caption(f"The test is made on {rows_tested(data):,} of {data.n:,} rows, drawn at random by position.")


def _explain_price(session: Session, account: Account, schema: Schema, request: ComparisonRequest) -> bool:
    enough = show_price(account, request.budget, f"Testing {request.value!r} by {request.group!r}")
    if session.schema == schema:
        warn_of_void(session.guarantee)
    return enough


def _run(session: Session, schema: Schema, request: ComparisonRequest, run_id: str) -> None:
    session.work.comparison_problem = None
    try:
        run_private_test(session, schema, request, run_id=run_id)
    except DPSynthError as problem:
        # It may have cost something all the same, so the page begins again and shows what is left.
        session.work.comparison_problem = problem
    st.rerun()


def _show_results(session: Session, question: tuple[str, str, tuple[Any, Any]]) -> None:
    found = results(session)
    mine = [each for each in found if each.about == question]
    for each in reversed(mine):
        _show_result(each)
    if len(found) > len(mine):
        st.markdown("**Other private tests on this table**")
        plain_list(_line(each) for each in found if each.about != question)
    if len(found) > 1:
        st.text(
            f"{len(found)} private tests were made on this table. To keep the chance of any false discovery at 5%, "
            f"compare each p-value with {LEVEL / len(found):.2g}."
        )


def _show_result(found: PaidComparison) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            guarantee_badge(found.guarantee)
            st.badge(f"ε = {format_amount(found.guarantee.epsilon)}", color="gray")
            st.badge(f"δ = {format_amount(found.guarantee.delta)}", color="gray")
        st.metric("p-value of the private test", f"{found.pvalue:.3g}")
        st.text(f"{found.finding}\n{_reading(found)}")
        st.text(claim(found.guarantee))
        plain_list((*costs(found.guarantee), *found.guarantee.caveats))
        if found.guarantee.status == "proven":
            st.caption("The noise is in the result, so it may be published at this cost, unlike the rest of this page.")


def _reading(found: PaidComparison) -> str:
    if found.pvalue <= LEVEL:
        return (
            "So small a p-value is rare if the groups do not differ: at most 5 of 100 analysts would see it by chance."
        )
    return "This does not show that the groups are alike: the noise can hide a difference."


def _line(found: PaidComparison) -> str:
    return f"ε {format_amount(found.cost.budget.epsilon)}: {found.finding}"
