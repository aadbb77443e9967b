"""The Mechanism page's parts: cards, epsilon, parameters, pictures, preview."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st

from dpsynth_core.charts import (
    attacker_certainty,
    compare_chart,
    domain_chart,
    error_chart,
    noise_chart,
    split_chart,
    split_words,
)
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import Parameter, parameters
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.mechanisms.recommend import WHY_RECOMMENDED, recommended
from dpsynth_core.privacy.budget import Budget, exact
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.table.schema import Schema
from pages.shared.formatting import big_number, duration, measured
from pages.shared.layout import BADGE, errors_shown, show_error
from pages.shared.mechanism.actions import PREVIEW, start_preview
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.session import Preview, Session
from pages.shared.widgets import show_chart, show_task

SIMILAR = (
    "For comparison: textbooks advise 1 or less; Google's COVID-19 mobility reports used 2.64 per day; the 2020 US "
    "Census used about 17 for its redistricting counts of people."
)
FIELDS_IN_A_ROW = 4
PICTURES = 3


def choose_epsilon(session: Session) -> None:
    """The slider, with both ends named and a plain reading."""
    choices = session.choices
    options = sorted({*EPSILONS, choices.epsilon}, key=float)
    chosen = st.select_slider("Epsilon (ε) for each synthetic table", options, value=choices.epsilon)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown("← **more private**", width="content")
        st.markdown("**more accurate** →", width="content")
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
    kind = MECHANISMS[choices.key]
    if kind.takes_delta and not kind.needs_delta:
        _ask_whether_delta(session)
    if exact(choices.delta_of(), parameter="delta"):
        _ask_delta(session)


def _ask_whether_delta(session: Session) -> None:
    choices = session.choices
    granted = st.toggle(
        f"Allow {MECHANISMS[choices.key].title} a tiny chance of failure (delta, δ)", value=choices.grant_delta,
        help="It can then use a kind of noise that adds up more slowly: more accurate at the same epsilon.",
    )  # fmt: skip
    if granted != choices.grant_delta:
        choices.grant_delta = granted
        st.rerun()


def _ask_delta(session: Session) -> None:
    given = st.text_input(
        "Delta (δ) for each synthetic table", session.choices.delta, width=260,
        help="The chance that the limit above does not hold. Far below one in the number of rows.",
    )  # fmt: skip
    with errors_shown("Please correct this:"):
        Budget.of(session.choices.epsilon, given)
        session.choices.delta = given


def choose_mechanism(session: Session, schema: Schema, n: int) -> None:
    """One card for every registered mechanism."""
    keys = list(MECHANISMS)
    across = 2 if len(keys) in (2, 4) else 3
    for start in range(0, len(keys), across):
        for slot, key in zip(st.columns(across), keys[start : start + across], strict=False):
            with slot.container(border=True, height="stretch"):
                _card(session, schema, n, key)


def _card(session: Session, schema: Schema, n: int, key: str) -> None:
    kind, choices = MECHANISMS[key], session.choices
    _heading(key, suits=key == recommended(schema))
    st.markdown(kind.summary)
    st.caption(f"**Good for:** {kind.good_for}")
    st.caption(f"**Paper:** {kind.paper}")
    with errors_shown("It does not fit this table."):
        plan = choices.plan(schema, n, key=key)
        cells = f"{big_number(plan.cells)} cells, " if kind.counts_cells else ""
        st.caption(f"**Fits this table:** {cells}{duration(plan.seconds)}.")
    chosen = choices.key == key
    st.space("stretch")
    if st.button(
        f"{kind.title} is chosen" if chosen else f"Choose {kind.title}",
        key=f"choose_{key}", type="primary" if chosen else "secondary", width="stretch",
        icon=":material/check:" if chosen else None,
    ):  # fmt: skip
        choices.pick(key)
        st.rerun()


def _heading(key: str, *, suits: bool) -> None:
    label, colour, icon = BADGE[MECHANISMS[key].status]
    st.markdown(f"**{MECHANISMS[key].title}**")
    with st.container(horizontal=True, gap="small"):
        st.badge(label, color=colour, icon=icon)
        if suits:
            st.badge("Begin with this", color="blue", icon=":material/thumb_up:", help=WHY_RECOMMENDED)


def compare_two(session: Session, schema: Schema, n: int) -> None:
    """Two mechanisms side by side."""
    with st.expander("Compare two side by side"):
        keys = list(MECHANISMS)
        mine = keys.index(session.choices.key)
        for slot, label, index in zip(
            st.columns(2), ("One mechanism", "Another"), (mine, (mine + 1) % len(keys)), strict=True
        ):
            with slot.container(border=True, height="stretch"):
                key = st.selectbox(
                    label, keys, index=index, format_func=lambda key: MECHANISMS[key].title,
                    key=f"pair_{label}_{session.choices.key}",
                )  # fmt: skip
                _side(session, schema, n, key)


def _side(session: Session, schema: Schema, n: int, key: str) -> None:
    kind = MECHANISMS[key]
    label, colour, icon = BADGE[kind.status]
    st.badge(label, color=colour, icon=icon)
    st.markdown(f"**What it does**  \n{kind.summary}")
    st.markdown(f"**Good for**  \n{kind.good_for}")
    with errors_shown("It does not fit this table."):
        plan = session.choices.plan(schema, n, key=key)
        st.markdown(f"**Cells at the start**  \n{big_number(plan.cells)}")
        st.markdown(f"**Expected error of a count**  \n{_error(plan)}")
        st.markdown(f"**Expected time**  \n{duration(plan.seconds)}")
        st.markdown(f"**Where epsilon goes**  \n{split_words(plan)}")


def _counts(plan: Plan) -> bool:
    return not math.isnan(plan.count_error)


def _error(plan: Plan) -> str:
    return f"about {measured(plan.count_error)} rows" if _counts(plan) else "none: rows are drawn, not counted"


def choose_parameters(session: Session, schema: Schema, n: int) -> None:
    """A form made from the dataclass: help from its documentation, live checks, back to what is suggested."""
    choices = session.choices
    suggestion = choices.suggested(schema, n)
    st.markdown(f"**Suggested for this table.** {suggestion.reason}")
    fields = parameters(type(suggestion))
    _ask_all(session, suggestion, schema, n, [field for field in fields if not field.advanced])
    advanced = [field for field in fields if field.advanced]
    if advanced:
        with st.expander("Advanced settings"):
            _ask_all(session, suggestion, schema, n, advanced)
    with errors_shown("Please correct this:"):
        choices.mechanism(schema, n)
    if choices.changed.get(choices.key) and st.button("Reset to suggested", icon=":material/undo:", key="reset"):
        choices.reset()
        st.rerun()


def _ask_all(session: Session, suggestion: Mechanism, schema: Schema, n: int, fields: list[Parameter]) -> None:
    changed = session.choices.changed.get(session.choices.key, {})
    for start in range(0, len(fields), FIELDS_IN_A_ROW):
        for slot, parameter in zip(st.columns(FIELDS_IN_A_ROW), fields[start : start + FIELDS_IN_A_ROW], strict=False):
            suggested = getattr(suggestion, parameter.name)
            value = changed.get(parameter.name, suggested)
            with slot:
                given = _ask(session, parameter, value, suggested)
                if value != suggested:
                    st.caption(f"Suggested: {parameter.say(suggested)}")
            if given != value:
                session.choices.set(schema, n, parameter.name, given)
                st.rerun()


def _ask(session: Session, parameter: Parameter, value: Any, suggested: Any) -> Any:
    key = f"{session.choices.key}_{parameter.name}_{session.choices.version}"
    note = f"{parameter.help.replace('None:', 'Left empty:')} Suggested: {parameter.say(suggested)}."
    if parameter.kind == "choice":
        index = parameter.choices.index(value)
        return st.selectbox(parameter.title, parameter.choices, index, format_func=parameter.say, help=note, key=key)
    if parameter.kind == "bool":
        return st.checkbox(parameter.title, value, help=note, key=key)
    if parameter.kind == "text":
        text = st.text_input(parameter.title, value, help=note, key=key, placeholder="chosen for you") or None
        return suggested if text is None and not parameter.optional else text
    whole = parameter.kind == "int"
    given = st.number_input(
        parameter.title, value=value, step=1 if whole else 0.05, help=note, key=key,
        format="%d" if whole else "%.2f", placeholder="chosen for you",
    )  # fmt: skip
    return suggested if given is None and not parameter.optional else given


def show_plan(session: Session, schema: Schema, n: int) -> None:
    """Pictures that answer before anything is spent: they use public facts only."""
    try:
        plan = session.choices.plan(schema, n)
    except DPSynthError as error:
        show_error("This does not fit the table.", error)
        return
    if MECHANISMS[session.choices.key].counts_cells:
        _show_cells(session, schema, n, plan)
        return
    st.metric("Expected time", duration(plan.seconds), border=True, width=260)
    st.markdown("This mechanism fits a model to the whole table instead of counting rows in cells.")
    if plan.stages:
        st.markdown("**How epsilon is shared out**")
        show_chart(split_chart(plan), key="split", as_table=st.toggle("Show as tables", key="plan_as_tables"))


def _show_cells(session: Session, schema: Schema, n: int, plan: Plan) -> None:
    """Cells, the noise on their counts, and how the two compare."""
    one, two, three, four = st.columns(4)
    one.metric("Cells at the start", big_number(plan.cells), border=True)
    typical, error = measured(n / plan.cells), measured(plan.count_error)
    two.metric("Rows in an average cell", typical, border=True)
    three.metric("Error of a count", f"± {error} rows" if _counts(plan) else "none", border=True)
    four.metric("Expected time", duration(plan.seconds), border=True)
    if _counts(plan):
        st.markdown(
            f"A cell holds {typical} rows on average, and a count is off by about {error}. Where a cell "
            "holds fewer rows than that, it drowns in noise; what many rows share survives."
        )
    as_table = st.toggle("Show as tables", key="plan_as_tables")
    st.markdown("**How epsilon is shared out**")
    show_chart(split_chart(plan), key="split", as_table=as_table)
    left, right = st.columns(2)
    with left:
        st.markdown(
            f"**The cells at the start**, over {'the' if len(schema.names) < 3 else 'two of the'} declared columns"
        )
        show_chart(domain_chart(schema, plan.cuts), key="cells", as_table=as_table)
    with right:
        if _counts(plan):
            _show_noise(session, schema, n, plan, as_table)
        else:
            st.markdown("**Noise**: this mechanism draws rows instead of counting; see the reason above.")


def _show_noise(session: Session, schema: Schema, n: int, plan: Plan, as_table: bool) -> None:
    st.markdown("**Error of a count** against epsilon")
    fitting: dict[float, Plan] = {}
    for epsilon in sorted({*map(float, EPSILONS), float(session.choices.epsilon)}):
        with suppress(DPSynthError):
            fitting[epsilon] = session.choices.plan(schema, n, epsilon=epsilon)
    show_chart(error_chart(fitting, float(session.choices.epsilon), n), key="errors", as_table=as_table)
    scale = [stage.scale for stage in plan.stages if stage.scale is not None][-1]
    with st.expander("The noise on one count"):
        show_chart(noise_chart(scale, max(1, round(n / plan.cells))), key="noise", as_table=as_table)


def show_preview(session: Session, schema: Schema, n: int) -> None:
    """Teaching: the same mechanism on simulated data with the same schema."""
    if session.mode != "teaching":
        return
    with errors_shown("The preview cannot be made."):
        config = replace(session.choices.order(schema, n, teaching=True), seed=None)
        if st.button("Preview on simulated data", icon=":material/visibility:", key="preview"):
            start_preview(session, config)
        work = session.work
        task = work.tasks.get(PREVIEW)
        if work.preview is not None and work.preview.config == config:
            _show_preview(work.preview, schema)
        elif task is not None and task.about == config:
            show_task(task, key=PREVIEW)


def _show_preview(preview: Preview, schema: Schema) -> None:
    st.caption("Simulated rows with your schema, and what this mechanism makes of them. Nothing here is your data.")
    as_table = st.toggle("Show as tables", key="preview_as_tables")
    for slot, name in zip(st.columns(PICTURES), schema.names[:PICTURES], strict=False):
        with slot:
            chart = compare_chart(preview.simulated, preview.synthetic, schema, name, first="simulated")
            show_chart(chart, key=f"preview_{schema.names.index(name)}", as_table=as_table)


def save_and_load(session: Session, schema: Schema, n: int) -> None:
    """The whole configuration as JSON."""
    with st.expander("Save or load this configuration"):
        with errors_shown("Please correct the parameters first."):
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
            with errors_shown("This configuration cannot be used."):
                session.choices.load(RunConfig.from_json(file.getvalue()))
                st.rerun()
