"""The Mechanism page's parts: cards, epsilon, parameters, pictures, preview."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpsynth_core.charts import (
    attacker_certainty,
    compare_chart,
    domain_chart,
    error_chart,
    noise_chart,
    split_chart,
)
from dpsynth_core.errors import DPSynthError
from dpsynth_core.intake.simulate import simulate_table
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.plan import Parameter, Plan, parameters
from dpsynth_core.orders import Order
from dpsynth_core.private import PrivateTable
from dpsynth_core.release import synthesize
from dpsynth_core.schema import Schema
from pages.shared.choices import EPSILONS
from pages.shared.frame import BADGE, in_words, show_error
from pages.shared.session import Session
from pages.shared.show import show_chart
from pages.shared.words import big_number

SIMILAR = (
    "For comparison: textbooks advise 1 or less; Google's COVID-19 mobility reports used 2.64 per day; the 2020 US "
    "Census used about 17 for its redistricting counts of people."
)
MAIN_PARAMETERS = 3
PREVIEW_ROWS = 20_000


def choose_mechanism(session: Session, schema: Schema, n: int) -> None:
    """One card for every registered mechanism."""
    keys = list(MECHANISMS)
    for start in range(0, len(keys), 2):
        for slot, key in zip(st.columns(2), keys[start : start + 2], strict=False):
            with slot.container(border=True):
                _card(session, schema, n, key)


def _card(session: Session, schema: Schema, n: int, key: str) -> None:
    kind, choices = MECHANISMS[key], session.choices
    label, colour, icon = BADGE[kind.status]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{kind.title}**")
        st.badge(label, color=colour, icon=icon)
    st.markdown(kind.summary)
    st.caption(f"Good for: {kind.good_for}")
    st.caption(kind.paper)
    with in_words("It does not fit this table."):
        plan = choices.plan(schema, n, key=key)
        if isinstance(plan, str):
            raise DPSynthError(plan)
        st.caption(f"Fits this table: {big_number(plan.cells)} cells at the start, about {plan.seconds:.1f} s.")
    chosen = choices.key == key
    if st.button("Chosen" if chosen else "Choose", key=f"choose_{key}", type="primary" if chosen else "secondary"):
        choices.key = key
        choices.version += 1
        st.rerun()


def compare_two(session: Session, schema: Schema, n: int) -> None:
    """Two mechanisms side by side."""
    with st.expander("Compare two side by side"):
        keys = list(MECHANISMS)
        other = next(key for key in keys if key != session.choices.key)
        names = st.multiselect(
            "Mechanisms", keys, default=[session.choices.key, other], max_selections=2,
            key=f"pair_{session.choices.key}", format_func=lambda key: MECHANISMS[key].title,
        )  # fmt: skip
        rows: dict[str, list[str]] = {
            "": ["What it does", "Good for", "Guarantee", "Cells at the start", "Error of a count"]
        }
        for key in names:
            kind = MECHANISMS[key]
            plan = session.choices.plan(schema, n, key=key)
            figures = ["does not fit", "-"] if isinstance(plan, str) else [big_number(plan.cells), _error(plan)]
            rows[kind.title] = [kind.summary, kind.good_for, BADGE[kind.status][0], *figures]
        st.table(rows)


def _error(plan: Plan) -> str:
    return f"about {plan.count_error:.3g} rows" if plan.count_error == plan.count_error else "none: rows are drawn"


def choose_epsilon(session: Session) -> None:
    """The slider, with both ends named and a plain reading."""
    choices = session.choices
    left, middle, right = st.columns([1, 5, 1], vertical_alignment="bottom")
    left.markdown("**More private**  \n(more noise)")
    right.markdown("**More accurate**  \n(less private)")
    options = sorted({*EPSILONS, choices.epsilon}, key=float)
    chosen = middle.select_slider("Epsilon for each synthetic table", options, value=choices.epsilon)
    if chosen != choices.epsilon:
        choices.epsilon = chosen
        choices.version += 1
        st.rerun()
    certainty = attacker_certainty(float(chosen))
    st.markdown(
        f"An attacker who was **50%** sure of something about a person can become at most **{certainty:.1%}** sure, "
        "whatever else the attacker knows."
    )
    st.caption(SIMILAR)


def choose_parameters(session: Session, schema: Schema, n: int) -> None:
    """A form made from the dataclass: help from its documentation, live checks, back to what is suggested."""
    choices = session.choices
    suggestion = choices.suggested(schema, n)
    st.caption(f"Suggested: {suggestion.reason}")
    fields = parameters(type(suggestion))
    values = {p.name: choices.changed.get(choices.key, {}).get(p.name, getattr(suggestion, p.name)) for p in fields}
    for slot, parameter in zip(st.columns(MAIN_PARAMETERS), fields[:MAIN_PARAMETERS], strict=False):
        with slot:
            _ask(session, schema, n, parameter, values[parameter.name])
    with st.expander("Advanced settings"):
        slots = st.columns(MAIN_PARAMETERS)
        for i, parameter in enumerate(fields[MAIN_PARAMETERS:]):
            with slots[i % MAIN_PARAMETERS]:
                _ask(session, schema, n, parameter, values[parameter.name])
    with in_words("Please correct this:"):
        choices.mechanism(schema, n)
    if choices.changed.get(choices.key) and st.button("Reset to suggested", icon=":material/undo:", key="reset"):
        choices.reset()
        st.rerun()


def _ask(session: Session, schema: Schema, n: int, parameter: Parameter, value: Any) -> None:
    choices = session.choices
    key = f"{choices.key}_{parameter.name}_{choices.version}"
    suggested = getattr(choices.suggested(schema, n), parameter.name)
    note = f"{parameter.help} Suggested: {'chosen for you' if suggested is None else suggested}."
    if parameter.kind == "choice":
        given: Any = st.selectbox(
            parameter.title, parameter.choices, index=parameter.choices.index(value), help=note, key=key
        )
    elif parameter.kind == "text":
        given = st.text_input(parameter.title, value=value, help=note, key=key, placeholder="chosen for you") or None
        given = suggested if given is None and not parameter.optional else given
    else:
        whole = parameter.kind == "whole"
        given = st.number_input(
            parameter.title, value=value, step=1 if whole else 0.05, help=note, key=key,
            format="%d" if whole else "%.2f", placeholder="chosen for you",
        )  # fmt: skip
        given = suggested if given is None and not parameter.optional else given
    if given != value:
        choices.set(schema, n, parameter.name, given)
        st.rerun()


def show_plan(session: Session, schema: Schema, n: int) -> None:
    """Pictures that answer before anything is spent: they use public facts only."""
    plan = session.choices.plan(schema, n)
    if isinstance(plan, str):
        show_error("This does not fit the table.", DPSynthError(plan))
        return
    as_table = st.toggle("Show as tables", key="plan_as_tables")
    st.markdown("**How epsilon is shared out**")
    show_chart(split_chart(plan), key="split", as_table=as_table)
    left, right = st.columns(2)
    with left:
        st.markdown("**The cells at the start**, over the declared domain")
        show_chart(domain_chart(schema, plan.cuts), key="cells", as_table=as_table)
    with right:
        if plan.count_error == plan.count_error:
            _show_noise(session, schema, n, plan, as_table)
        else:
            st.markdown("**Noise**: this mechanism draws rows instead of counting; see the reason above.")


def _show_noise(session: Session, schema: Schema, n: int, plan: Plan, as_table: bool) -> None:
    def at(epsilon: float) -> Plan:
        found = session.choices.plan(schema, n, epsilon=epsilon)
        assert isinstance(found, Plan)  # noqa: S101  it fits at the chosen epsilon, and fit does not depend on it
        return found

    st.markdown("**Error of a count** against epsilon")
    grid = [float(epsilon) for epsilon in EPSILONS]
    show_chart(error_chart(at, float(session.choices.epsilon), grid, n), key="errors", as_table=as_table)
    scale = [stage.scale for stage in plan.stages if stage.scale is not None][-1]
    with st.expander("The noise on one count"):
        show_chart(noise_chart(scale, max(1, round(n / plan.cells))), key="noise", as_table=as_table)


def show_preview(session: Session, schema: Schema, n: int) -> None:
    """Teaching: the same mechanism on simulated data with the same schema."""
    if session.mode != "teaching" or not st.button("Preview on simulated data", icon=":material/visibility:"):
        return
    rows = min(n, PREVIEW_ROWS)
    with in_words("The preview cannot be made."), st.spinner("Simulating"):
        simulated = simulate_table(schema, rows, seed=1)
        mechanism = session.choices.mechanism(schema, n)
        made = synthesize(PrivateTable(simulated, schema), mechanism, epsilon=session.choices.epsilon, seed=1).sample()
        st.caption("Simulated rows with your schema, and what this mechanism makes of them. Nothing here is your data.")
        for slot, name in zip(st.columns(3), schema.names[:3], strict=False):
            with slot:
                show_chart(compare_chart(simulated, made, schema, name, first="simulated"), key=f"preview_{name}")


def save_and_load(session: Session, schema: Schema, n: int) -> None:
    """The whole configuration as JSON."""
    with st.expander("Save or load this configuration"):
        with in_words("Please correct the parameters first."):
            order = session.choices.order(schema, n, teaching=session.mode == "teaching")
            st.download_button(
                "Save configuration",
                order.to_json(),
                "configuration.json",
                icon=":material/download:",
                on_click="ignore",
            )
        file = st.file_uploader("Configuration (JSON)", type=["json"], key=f"configuration_{session.choices.version}")
        if file is not None and st.button("Use this configuration", key="use_configuration"):
            with in_words("This configuration cannot be used."):
                session.choices.load(Order.from_json(file.getvalue()))
                st.rerun()
