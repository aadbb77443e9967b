"""The Mechanism page's parts: cards, epsilon, parameters, pictures, preview."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import streamlit as st

from dpsynth_core.charts.privacy import attacker_certainty, split_words
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.parameters import Parameter, parameters
from dpsynth_core.mechanisms.recommend import WHY_RECOMMENDED, recommended
from dpsynth_core.privacy.budget import Budget, Status, exact, format_amount
from dpsynth_core.review.wording import ERROR_UNIT
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.table.schema import Schema
from pages.shared.accounts import account_of
from pages.shared.buttons import clicked
from pages.shared.formatting import big_number, duration
from pages.shared.layout import BADGE, errors_shown
from pages.shared.mechanism.actions import RIVALS, offered_delta, rival_rows, rival_scenarios, start_rivals
from pages.shared.mechanism.plan_view import error_text
from pages.shared.mechanism.settings import DEFAULT_EPSILON, EPSILONS
from pages.shared.session import Session
from pages.shared.widgets import offer_download, show_task

SIMILAR = (
    "For comparison: textbooks advise 1 or less; Google's COVID-19 mobility reports used 2.64 per day; the 2020 US "
    "Census used about 17 for its redistricting counts of people."
)
FIELDS_IN_A_ROW = 3
_EPSILON = "epsilon_slider"


def choose_epsilon(session: Session, schema: Schema, n: int) -> None:
    """The slider, with both ends named and a plain reading."""
    settings = session.settings
    options = sorted({*EPSILONS, settings.epsilon}, key=float)

    def take() -> None:
        settings.pick_epsilon(st.session_state[_EPSILON])

    # Taken over by a callback and under one key: the slider stays the same element, and the keyboard's focus with it.
    if st.session_state.get(_EPSILON) != settings.epsilon:
        st.session_state[_EPSILON] = settings.epsilon
    chosen = st.select_slider("Epsilon (ε) for each synthetic table", options, key=_EPSILON, on_change=take)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown("← **more private**", width="content")
        st.markdown("**more accurate** →", width="content")
    _explain_proposal(session)
    _say_limit(session, schema, n, attacker_certainty(float(chosen)))
    st.caption(SIMILAR)
    kind = MECHANISMS[settings.key]
    if kind.takes_delta and not kind.needs_delta:
        _ask_whether_delta(session, schema, n)
    if exact(settings.delta_of(), parameter="delta"):
        _ask_delta(session)


def _say_limit(session: Session, schema: Schema, n: int, certainty: float) -> None:
    """What epsilon means for an attacker, if it means anything with the chosen mechanism and parameters."""
    try:
        status = session.settings.guarantee(schema, n).status
    except DPSynthError:  # said beside the parameters
        status = MECHANISMS[session.settings.key].status
    if status == "none":
        st.markdown("The chosen mechanism is not private: its rows may tell an attacker anything, whatever epsilon is.")
        return
    who, can = ("An", "can") if status == "proven" else ("If the guarantee held in full, an", "could")
    st.markdown(
        f"{who} attacker who was **50%** sure of something about a person {can} become at most **{certainty:.1%}** "
        "sure because of that person's row, whatever else the attacker knows. What the rows of others say about people "
        "like them is not covered: it would come out without that row too."
    )


def _explain_proposal(session: Session) -> None:
    """Where the epsilon comes from, if the visitor has not chosen one and the account has a say in it."""
    account, settings = account_of(session), session.settings
    if session.mode == "teaching" or settings.epsilon_picked or settings.epsilon == DEFAULT_EPSILON:
        return
    if account is None:
        total = format_amount(session.work.proposed_total.epsilon)
        has = f"No account is open yet. The Data page proposes a total of ε {total}, and the app half of it"
    else:
        left = format_amount(account.left.epsilon, up=False)
        has = f"The account has ε {left} left. The app proposes at most half of it"
    st.caption(f"{has} for one table, so that a second one is possible. Move the slider to use more or less.")


def _ask_whether_delta(session: Session, schema: Schema, n: int) -> None:
    """What a delta would buy, whether the account has one, and the choice."""
    settings, kind = session.settings, MECHANISMS[session.settings.key]
    granted = st.toggle(
        f"Allow {kind.title} a tiny chance of failure (delta, δ)",
        value=settings.grant_delta,
        key=f"grant_delta_{settings.version}",
        help="It can then use a kind of noise that adds up more slowly: more accurate at the same epsilon.",
    )
    if granted != settings.grant_delta:
        settings.grant_delta = granted
        st.rerun()
    if granted:
        return
    delta = offered_delta(session)
    gain = kind.delta_gain(schema, n, settings.epsilon, delta) if delta else ""
    if session.mode == "release" and not delta:
        st.caption("The account of this data set has no δ left, so a run with one would be refused.")
    elif gain:
        has = "The account of this data set has a δ that this run could use. " if session.mode == "release" else ""
        st.info(
            f"{has}With δ = {format_amount(delta, up=False)}, {kind.title} could make {gain}.",
            icon=":material/lightbulb:",
        )
        if clicked("Use this δ", key="use_delta"):
            settings.use_delta(format_amount(delta, up=False))
            st.rerun()


def _ask_delta(session: Session) -> None:
    given = st.text_input(
        "Delta (δ) for each synthetic table",
        session.settings.delta,
        width=260,
        help="The chance that the limit above does not hold. Far below one in the number of rows.",
    )
    with errors_shown("Please correct this:"):
        Budget.of(session.settings.epsilon, given)
        session.settings.delta = given


def choose_mechanism(session: Session, schema: Schema, n: int) -> None:
    """One card for every registered mechanism; the papers' comparators are folded away."""
    apart = [key for key, kind in MECHANISMS.items() if kind.comparator]
    _cards(session, schema, n, [key for key in MECHANISMS if key not in apart])
    if apart:
        with st.expander("Comparators from the papers", expanded=session.settings.key in apart):
            st.markdown(
                "The papers compare their mechanisms with these. Their guarantees are proven and need a small δ. They "
                "are here so that you can repeat the comparison; the app never suggests one of them."
            )
            _cards(session, schema, n, apart)


def _cards(session: Session, schema: Schema, n: int, keys: list[str]) -> None:
    across = 2  # three would be too narrow at 150% zoom
    for start in range(0, len(keys), across):
        for slot, key in zip(st.columns(across), keys[start : start + across], strict=False):
            with slot.container(border=True, height="stretch"):
                _card(session, schema, n, key)


def _card(session: Session, schema: Schema, n: int, key: str) -> None:
    kind, settings = MECHANISMS[key], session.settings
    _heading(kind, _claimed(session, schema, n, key), suits=key == recommended(schema))
    st.markdown(kind.summary)
    st.caption(f"**Good for:** {kind.good_for}")
    st.caption(f"**Paper:** {kind.paper}")
    with errors_shown("It does not fit this table."):
        plan = settings.plan(schema, n, key=key)
        cells = f"{big_number(plan.cells)} cells at the start, " if kind.counts_cells else ""
        st.caption(f"**Fits this table:** {cells}{duration(settings.seconds(schema, n, key=key))}.")
    chosen = settings.key == key
    st.space("stretch")
    if clicked(
        f"{kind.title} is chosen" if chosen else f"Choose {kind.title}",
        key=f"choose_{key}",
        type="primary" if chosen else "secondary",
        width="stretch",
        icon=":material/check:" if chosen else None,
    ):
        settings.pick(key)
        st.rerun()


def _claimed(session: Session, schema: Schema, n: int, key: str) -> Status:
    """What a run could claim with the visitor's changes: a paper's settings may claim less than the suggested ones."""
    if session.settings.changed.get(key):
        with suppress(DPSynthError):  # said beside the parameters
            return session.settings.guarantee(schema, n, key).status
    return MECHANISMS[key].status


def _heading(kind: type[Mechanism], status: Status, *, suits: bool) -> None:
    label, colour, icon = BADGE[status]
    st.markdown(f"**{kind.title}**")
    with st.container(horizontal=True, gap="small"):
        st.badge(label, color=colour, icon=icon)
        if suits:
            st.badge("Begin with this", color="blue", icon=":material/thumb_up:", help=WHY_RECOMMENDED)


def compare_two(session: Session, schema: Schema, n: int) -> None:
    """Two mechanisms side by side, at first the chosen one and the one to begin with; errors are on one scale."""
    with st.expander("Compare two side by side"):
        keys, chosen = list(MECHANISMS), []
        mine, suits = keys.index(session.settings.key), keys.index(recommended(schema))
        other = suits if suits != mine else (mine + 1) % len(keys)
        for slot, label, index in zip(st.columns(2), ("One mechanism", "Another"), (mine, other), strict=True):
            with slot.container(border=True, height="stretch"):
                key = st.selectbox(
                    label,
                    keys,
                    index=index,
                    format_func=lambda key: MECHANISMS[key].title,
                    key=f"pair_{label}_{session.settings.key}",
                )
                _side(session, schema, n, key)
                chosen.append(key)
        _forecast_both(session, schema, n, tuple(chosen))


def _forecast_both(session: Session, schema: Schema, n: int, keys: tuple[str, ...]) -> None:
    """The same simulated tables released by both, and the share of rows that each gets wrong."""
    work = session.work
    with errors_shown("The two cannot be compared on simulated tables."):
        scenarios = rival_scenarios(session, schema, n, keys)
        if work.rivals is not None and work.rivals[0] == scenarios:
            st.dataframe(rival_rows(work.rivals[1]), hide_index=True, alt="Forecast errors of both mechanisms")
            st.caption(f"{ERROR_UNIT} Both released the same simulated tables with your columns and number of rows.")
            return
        task = work.tasks.get(RIVALS)
        if task is not None and task.about == scenarios:
            show_task(task, key=RIVALS)
            if not task.ended_early:
                return
        seconds = sum(scenario.seconds for scenario in scenarios.values())
        if clicked(f"Forecast the error of both ({duration(seconds)})", icon=":material/query_stats:", key=RIVALS):
            start_rivals(session, scenarios)
            st.rerun()


def _side(session: Session, schema: Schema, n: int, key: str) -> None:
    kind = MECHANISMS[key]
    label, colour, icon = BADGE[_claimed(session, schema, n, key)]
    st.badge(label, color=colour, icon=icon)
    st.markdown(f"**What it does**  \n{kind.summary}")
    st.markdown(f"**Good for**  \n{kind.good_for}")
    with errors_shown("It does not fit this table."):
        plan = session.settings.plan(schema, n, key=key)
        st.markdown(f"**Cells at the start**  \n{big_number(plan.cells)}")
        st.markdown(f"**Error of one of its own counts** (cells differ)  \n{error_text(plan)}")
        st.markdown(f"**Expected time**  \n{duration(session.settings.seconds(schema, n, key=key))}")
        st.markdown(f"**Where epsilon goes**  \n{split_words(plan)}")


def choose_parameters(session: Session, schema: Schema, n: int) -> None:
    """A form made from the dataclass: help from its documentation, live checks, back to what is suggested."""
    settings = session.settings
    suggestion = settings.suggested(schema, n)
    st.markdown(f"**Suggested for this table.** {suggestion.reason}")
    chosen = {**vars(suggestion), **settings.changed.get(settings.key, {})}
    fields = [field for field in parameters(type(suggestion)) if field.applies(chosen)]
    _ask_all(session, suggestion, schema, n, [field for field in fields if not field.advanced])
    advanced = [field for field in fields if field.advanced]
    if advanced:
        with st.expander("Advanced settings"):
            _ask_all(session, suggestion, schema, n, advanced)
    with errors_shown("Please correct this:"):
        claim = settings.guarantee(schema, n)
        if claim.status not in ("proven", "none"):
            st.warning(f"**{BADGE[claim.status][0]}.** {' '.join(claim.caveats)}", icon=":material/warning:")
    with st.container(horizontal=True):
        for number, name in enumerate(type(suggestion).presets):
            if clicked(f"Use the settings of {name}", icon=":material/menu_book:", key=f"preset_{number}"):
                settings.use_preset(schema, n, name)
                st.rerun()
        if settings.changed.get(settings.key) and clicked("Reset to suggested", icon=":material/undo:", key="reset"):
            settings.reset()
            st.rerun()


def _ask_all(session: Session, suggestion: Mechanism, schema: Schema, n: int, fields: list[Parameter]) -> None:
    changed = session.settings.changed.get(session.settings.key, {})
    for start in range(0, len(fields), FIELDS_IN_A_ROW):
        for slot, parameter in zip(st.columns(FIELDS_IN_A_ROW), fields[start : start + FIELDS_IN_A_ROW], strict=False):
            suggested = getattr(suggestion, parameter.name)
            value = changed.get(parameter.name, suggested)
            with slot:
                given = _ask(session, parameter, value, suggested)
                if value != suggested:
                    st.caption(f"Suggested: {parameter.say(suggested)}")
            if given != value:
                session.settings.set(schema, n, parameter.name, given)
                st.rerun()


def _ask(session: Session, parameter: Parameter, value: Any, suggested: Any) -> Any:
    key = f"{session.settings.key}_{parameter.name}_{session.settings.version}"
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
        parameter.title,
        value=value,
        step=1 if whole else 0.05,
        help=note,
        key=key,
        format="%d" if whole else "%.2f",
        placeholder="chosen for you",
    )
    return suggested if given is None and not parameter.optional else given


def save_and_load(session: Session, schema: Schema, n: int) -> None:
    """The whole configuration as JSON."""
    with st.expander("Save or load this configuration"):
        with errors_shown("Please correct the parameters first."):
            config = session.settings.config(schema, n, teaching=session.mode == "teaching")
            content = config.to_json().encode()
            offer_download("Save configuration", lambda: content, "configuration.json", "application/json")
        file = st.file_uploader("Configuration (JSON)", type=["json"], key=f"configuration_{session.settings.version}")
        if file is not None and clicked("Use this configuration", key="use_configuration"):
            with errors_shown("This configuration cannot be used."):
                session.settings.load(RunConfig.from_json(file.getvalue()))
                st.rerun()
