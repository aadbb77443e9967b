"""Plan first: what each mechanism would give at a few epsilons, from public facts alone, and one click to use it."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.wording import ERROR_UNIT, share
from dpsynth_core.runs.forecast import COLUMN_LIMITS, PAIR_LIMITS, Forecast, Light, Scenario
from dpsynth_core.runs.planning import PLAN_EPSILONS, PlanRow, best_plan, least_error
from pages.shared.accounts import account_of
from pages.shared.buttons import clicked
from pages.shared.formatting import duration
from pages.shared.layout import errors_shown
from pages.shared.mechanism.forecast_view import BASIS
from pages.shared.mechanism.plans import (
    PLANS,
    TABLES,
    UNASKED_SECONDS,
    advance,
    apply_plan,
    found_plans,
    is_applied,
    next_batch,
    planned_rows,
    start_plans,
    too_dear,
    unfit,
)
from pages.shared.session import Session
from pages.shared.tasks import Task
from pages.shared.widgets import LOOK_EVERY, offer_cancel

ICONS: dict[Light, str] = {
    "green": ":material/check_circle:",
    "amber": ":material/warning:",
    "red": ":material/block:",
}
COLOURS: dict[Light, str] = {"green": "green", "amber": "orange", "red": "red"}
LIGHTS = {light: f":{COLOURS[light]}[{icon}]" for light, icon in ICONS.items()}
LEGEND = (
    f"{LIGHTS['green']} close (columns at most {COLUMN_LIMITS[0]:.0%}, pairs at most {PAIR_LIMITS[0]:.0%}) · "
    f"{LIGHTS['amber']} usable with care · "
    f"{LIGHTS['red']} far off (columns over {COLUMN_LIMITS[1]:.0%} or pairs over {PAIR_LIMITS[1]:.0%})"
)
READING = (
    "Each button gives the error to expect in a single column and in a pair of columns, on average, and how many pairs "
    f"of all are kept (error at most {PAIR_LIMITS[1]:.0%}). Press one to use that mechanism, ε and δ."
)


def show_plans(session: Session, *, key: str) -> None:
    """The grid behind an expander, which is open where an account is still to be opened.

    Args:
        session: Whose table it is.
        key: Of the page.
    """
    work = session.current
    if work is None or work.schema is None:
        return
    open_first = session.mode == "release" and account_of(session) is None
    with (
        st.expander("Plan first: what would each ε give for this table?", expanded=open_first, icon=":material/map:"),
        errors_shown("The plans cannot be compared."),
    ):
        task = advance(session)
        active = task is not None and task.active
        if not found_plans(session) and not active:
            _offer_start(session, key)
            return
        # Drawn anew by itself while cells are on their way, and not otherwise.
        st.fragment(run_every=LOOK_EVERY if active else None)(_show_grid)(session, key, active)


def _offer_start(session: Session, key: str) -> None:
    st.markdown(
        "Before you fix a total or spend anything, compare mechanisms and epsilons for a table with your columns and "
        "your number of rows. Only public facts are used and nothing is charged."
    )
    unasked = [row for row in planned_rows(session) if row.seconds <= UNASKED_SECONDS and row.scenarios]
    seconds = sum(row.seconds for row in unasked)
    batch = next_batch(session)
    label = f"Compare plans ({duration(seconds)})"
    if clicked(label, icon=":material/query_stats:", key=f"plans_{key}", disabled=not batch):
        start_plans(session, batch)
        st.rerun()
    if not batch:
        st.caption("No mechanism fits this table as it is declared. Use fewer columns or fewer bins.")


def _show_grid(session: Session, key: str, was_active: bool) -> None:
    task = advance(session)
    active = task is not None and task.active
    if active != was_active:
        st.rerun()  # the page begins or ends drawing this by itself
    found = found_plans(session)
    _say_best(session, found, active=active)
    st.caption(LEGEND)
    for index, row in enumerate(planned_rows(session)):
        with st.container(gap="xxsmall"):
            _show_row(session, row, key=f"{key}_{index}", active=active)
    if task is not None:
        _show_state(session, task, key)
    st.caption(f"{READING} {ERROR_UNIT} {BASIS}")


def _say_best(session: Session, found: dict[Scenario, Forecast], *, active: bool) -> None:
    """Which plan to begin with, in a sentence."""
    best, least = best_plan(found), least_error(found)
    if best is not None:
        st.markdown(f"The least ε in this grid that is forecast to be close: **{_name(best)}**.")
    elif active:
        st.markdown("Forecasts are on their way, quick mechanisms first.")
    elif least is not None and found[least].light == "amber":
        st.markdown(f"No plan in this grid is forecast to be close. The most accurate: **{_name(least)}**.")
    elif least is not None:
        st.warning(
            "Every plan in this grid is far off for this table. Use fewer columns, fewer bins or more rows "
            "before you fix a total.",
            icon=":material/block:",
        )
    if session.mode == "release" and account_of(session) is None:
        st.caption(
            f"A plan also proposes the total of the account below: {TABLES} times its ε and δ, so that a second table "
            "is possible. You can change it before you open the account."
        )


def _name(scenario: Scenario) -> str:
    budget = scenario.budget
    delta = f", δ {format_amount(budget.delta, up=False)}" if budget.delta else ""
    return f"{scenario.mechanism.title}, ε {format_amount(budget.epsilon)}{delta}"


def _show_row(session: Session, row: PlanRow, *, key: str, active: bool) -> None:
    work = session.work
    delta = f", δ {format_amount(row.delta, up=False)}" if row.delta else ""
    assert work.schema is not None  # noqa: S101  there are rows
    first = " (begin with this)" if row.key == recommended(work.schema) and not row.delta else ""
    st.markdown(f"**{row.title}**{delta}{first}")
    cells = st.columns(len(PLAN_EPSILONS), vertical_alignment="center", gap="small")
    if unfit(work, row):
        cells[0].caption("Does not fit this table.")
        return
    if row.seconds > UNASKED_SECONDS and not any(each in work.forecasts for each in row.scenarios):
        label = f"Forecast it ({duration(row.seconds)})"
        with cells[0]:
            if clicked(label, key=f"slow_{key}", disabled=active, width="stretch"):
                start_plans(session, list(row.scenarios))
                st.rerun()
        return
    by_epsilon = {format_amount(each.budget.epsilon): each for each in row.scenarios}
    for slot, epsilon in zip(cells, PLAN_EPSILONS, strict=True):
        scenario = by_epsilon.get(epsilon)
        if scenario is not None and scenario in work.forecasts:
            with slot:
                _show_cell(session, scenario, key=f"{key}_{epsilon}")
        elif scenario is None or scenario in work.unforeseen:
            slot.caption(f"ε {epsilon}: does not fit")
        else:
            slot.caption(f"ε {epsilon}: not forecast yet")


def _show_cell(session: Session, scenario: Scenario, *, key: str) -> None:
    found = session.work.forecasts[scenario]
    pairs = "" if found.pair_error is None else f" / {share(found.pair_error)}"
    kept, of = found.kept_pairs
    keeps = f", {kept} of {of}" if of else ""
    refused = too_dear(session, scenario)
    chosen = is_applied(session, scenario)
    # On the button that is filled with colour, the icon has the colour of the text.
    light = ICONS[found.light] if chosen else LIGHTS[found.light]
    label = f"{light} ε {format_amount(scenario.budget.epsilon)}: {share(found.column_error)}{pairs}"
    pressed = clicked(
        f"{label}{keeps}",
        key=f"plan_{key}",
        width="stretch",
        type="primary" if chosen else "secondary",
        disabled=bool(refused),
        help=refused or f"Use {_name(scenario)}.",
    )
    if pressed:
        apply_plan(session, scenario)
        st.rerun()


def _show_state(session: Session, task: Task, key: str) -> None:
    if task.active:
        st.progress(task.job.done, text=task.queue or f"{task.job.stage} · {task.job.done:.0%}")
        if offer_cancel(task, key=f"{PLANS}_{key}"):
            st.rerun()
    elif task.ended_early:
        why = "was cancelled" if task.job.state == "cancelled" else "failed"
        st.caption(f"{task.title} {why}. Nothing was charged.")
        batch = next_batch(session)
        if batch and clicked("Go on with the rest", key=f"plans_more_{key}"):
            start_plans(session, batch)
            st.rerun()
