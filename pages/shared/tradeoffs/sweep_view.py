"""Comparing epsilons: curves with bands, the tables behind them, and one column at every epsilon."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dpsynth_core.charts.sweeps import moving_chart, multiples_chart, sweep_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import MAX_ANALYSTS, SweepConfig
from dpsynth_core.teaching.sweep.results import SweepResult
from dpsynth_core.teaching.sweep.run import sweep
from pages.shared.layout import errors_shown
from pages.shared.presentation import as_shown
from pages.shared.session import Session
from pages.shared.tradeoffs.actions import PATIENCE, finding_on, first_sweep, last_config, sweep_seconds, sweepable
from pages.shared.tradeoffs.tables import PublicTable
from pages.shared.tradeoffs.view import ask_table, show_simulation
from pages.shared.widgets import ask_one, plain_list, show_chart

GRID = (0.01, 0.03, 0.1, 0.25, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
MAX_REPETITIONS = 20
MAX_LINES = 5
"""Mechanisms in one picture."""
SHOWN_ROWS = 100
STEP_SECONDS = 1.0
"""Between two pictures while they play."""
KIND = "sweep"
BEGINNING = tuple(aspect for aspect in ASPECTS if aspect != "pairs")
_AT, _PLAYING = "sweep_at", "sweep_playing"


def show_sweep(session: Session) -> None:
    """Choose, run, look."""
    st.markdown(
        "**More epsilon: less privacy, better data.** Each mechanism makes synthetic tables at several values of "
        "epsilon, and every table is compared with the original. Lower is better; the dashed line is what a fresh "
        "sample of real people would show."
    )
    public = ask_table(session)
    found = sweep_found(session, public, "Run")
    if found is None:
        return
    for title, problem in found.problems.items():
        st.text(f"{title} does not fit this table: {problem}")
    if found.aspects:
        _curves(found)
        _tables(session, public, found)


def sweep_found(session: Session, public: PublicTable, label: str) -> SweepResult | None:
    """A sweep of the table; the first one begins by itself."""
    n = len(public.table)
    before = last_config(session, KIND, public)
    own = session.settings.key
    first = first_sweep(SweepConfig(repetitions=2), public.schema, n, own) if before is None else before
    found = None
    with errors_shown("This simulation cannot be run."):
        config = _ask_config(first)
        seconds = sweep_seconds(config, public.schema, n)
        found = show_simulation(
            session,
            KIND,
            public,
            config,
            sweep,
            seconds=seconds,
            auto=before is None and seconds < PATIENCE,
            label=f"{label}: {config.runs} synthetic tables",
        )
    if found is None:
        # The earlier result stays in view until another one replaces it.
        earlier = finding_on(session, KIND, public)
        found = None if earlier is None else earlier.result
    return found if isinstance(found, SweepResult) else None


def _ask_config(before: SweepConfig) -> SweepConfig:
    with st.expander("Change mechanisms, values of epsilon or repetitions", icon=":material/tune:"):
        keys = st.multiselect(
            "Mechanisms",
            sweepable(),
            default=list(before.mechanisms),
            key="sweep_mechanisms",
            format_func=lambda key: MECHANISMS[key].title,
            max_selections=MAX_LINES,
        )
        grid = st.multiselect(
            "Values of epsilon",
            GRID,
            default=list(before.epsilons),
            key="sweep_epsilons",
            format_func=lambda e: f"{e:g}",
        )
        left, right = st.columns(2)
        times = left.number_input("Repetitions", 1, MAX_REPETITIONS, before.repetitions, key="sweep_repetitions")
        analysts = right.number_input(
            "Simulated analysts, at most",
            0,
            MAX_ANALYSTS,
            before.analysts,
            step=10,
            key="sweep_analysts",
            help="Behind false and missed discoveries, for mechanisms that make a table for each analyst. More of "
            "them: narrower bands, a longer wait. Histograms have hundreds at no cost.",
        )
    if not keys or not grid:
        raise DPSynthError("Choose at least one mechanism and one value of epsilon.")
    return SweepConfig(
        mechanisms=tuple(keys), epsilons=tuple(sorted(grid)), repetitions=int(times), analysts=int(analysts)
    )


def _curves(found: SweepResult) -> None:
    shown = st.multiselect(
        "Measures",
        found.aspects,
        key="sweep_aspects",
        default=[aspect for aspect in BEGINNING if aspect in found.aspects],
        format_func=lambda aspect: ASPECTS[aspect].title,
    )
    as_table = st.toggle("Show as table", key="table_sweep")
    aspects = [aspect for aspect in found.aspects if aspect in shown]
    if not aspects:
        st.info("Choose a measure.", icon=":material/info:")
        return
    chart = sweep_chart(found, aspects)
    if as_table:
        show_chart(chart, key="sweep_chart", as_table=True)
    else:
        st.plotly_chart(
            as_shown(chart.figure),
            key="sweep_chart",
            alt=chart.alt,
            config={"displayModeBar": False},
            on_select=_follow_click,
            selection_mode="points",
        )
    st.caption(
        f"Bands run from the best to the worst of {found.config.repetitions} runs. {_analysts(found)}Point at a mark "
        "to see its first synthetic rows; click it, or choose below, to see its table."
    )
    if found.without_analysts:
        st.caption("Discoveries are not simulated here where it takes too long:")
        plain_list(found.without_analysts)
    with st.expander("What the measures mean", icon=":material/help:"):
        for aspect in aspects:
            st.markdown(f"**{ASPECTS[aspect].title}**: {ASPECTS[aspect].question}")


def _analysts(found: SweepResult) -> str:
    """How many analysts stand behind the rates of wrong conclusions."""
    if not found.analysts:
        return ""
    many = " to ".join(f"{number:,}" for number in dict.fromkeys((found.analysts[0], found.analysts[-1])))
    return (
        f"For discoveries they are 95% intervals over simulated studies of {found.rows:,} people with your columns and "
        f"groups as large as yours, {many} without a difference and as many with one: the fewer, the wider. "
    )


def _follow_click() -> None:
    """Show the table behind the mark that was clicked."""
    points = st.session_state["sweep_chart"]["selection"]["points"]
    marks = [point["customdata"] for point in points if point.get("customdata")]
    if marks:
        st.session_state["sweep_shown"], st.session_state[_AT] = marks[0][0], float(marks[0][1])


def _tables(session: Session, public: PublicTable, found: SweepResult) -> None:
    """The tables behind the marks: one column at every epsilon, then one table."""
    st.subheader("The tables behind the marks", anchor=False)
    made = list(dict.fromkeys(spot.mechanism for spot in found.points if spot.table is not None))
    left, right = st.columns(2)
    key = left.selectbox("Mechanism", made, key="sweep_shown", format_func=lambda name: MECHANISMS[name].title)
    name = ask_one(session, right.selectbox, "Column", public.schema.names, key="sweep_column")
    tables = {s.epsilon: s.table for s in found.points if s.mechanism == key and s.table is not None}
    as_table = st.toggle("Show as tables", key="table_multiples")
    show_chart(
        multiples_chart(public.table, list(tables.items()), public.schema, name),
        key="sweep_multiples",
        as_table=as_table,
    )
    _moving(public, tables, name, as_table)


def _moving(public: PublicTable, tables: Mapping[float, pd.DataFrame], name: str, as_table: bool) -> None:
    """One epsilon at a time; playing moves from the smallest to the largest."""
    options = list(tables)
    playing = bool(st.session_state.get(_PLAYING)) and len(options) > 1
    if len(options) > 1:
        # Outside the fragment: whether it runs by itself is decided where it begins.
        st.button(
            "Stop" if playing else "Play, from little to much epsilon",
            key="sweep_play",
            on_click=_toggle_play,
            icon=":material/stop:" if playing else ":material/play_arrow:",
            args=(options,),
        )

    def show() -> None:
        _advance(options)
        epsilon = options[0]
        if len(options) > 1:
            epsilon = st.select_slider("Epsilon (ε) of this table", options, key=_AT, format_func=lambda e: f"{e:g}")
        chart = moving_chart(public.table, tables, public.schema, name, epsilon)
        show_chart(chart, key="sweep_moving", as_table=as_table)
        st.dataframe(
            tables[epsilon].head(SHOWN_ROWS),
            hide_index=True,
            height=240,
            alt="Rows of the synthetic table",
            key="sweep_rows",
        )

    st.fragment(show, run_every=STEP_SECONDS if playing else None)()


def _advance(options: list[float]) -> None:
    """Keep the slider on the grid; while playing, move it on, and stop at the end."""
    at = st.session_state.get(_AT)
    if at not in options:
        st.session_state[_AT] = options[len(options) // 2]
    elif st.session_state.get(_PLAYING) and at == options[-1]:
        st.session_state[_PLAYING] = False
        st.rerun()
    elif st.session_state.get(_PLAYING) == "moving":
        st.session_state[_AT] = options[options.index(at) + 1]
    elif st.session_state.get(_PLAYING):
        st.session_state[_PLAYING] = "moving"


def _toggle_play(options: list[float]) -> None:
    playing = not st.session_state.get(_PLAYING)
    st.session_state[_PLAYING] = "starting" if playing else False
    if playing:
        st.session_state[_AT] = options[0]
