"""How much epsilon, and how many people, a target needs."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.sweeps import enough_chart
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.sizes import SizeSweepConfig, SizeSweepResult, sweep_sizes
from pages.shared.session import Session
from pages.shared.tradeoffs.actions import PATIENCE, last_config, sizes_seconds
from pages.shared.tradeoffs.tables import PublicTable
from pages.shared.tradeoffs.view import ask_table, show_simulation
from pages.shared.widgets import ask_one, plain_list, show_chart

FIRST = ("kd_tree", "perturbed_histogram")


def compared_mechanisms(schema: Schema) -> tuple[str, ...]:
    """The mechanism to begin with for this table, beside two simple ones."""
    return tuple(dict.fromkeys((recommended(schema), *FIRST)))


def show_needs(session: Session) -> None:
    """A target, the answer in a sentence, and a picture of what is enough."""
    st.markdown("**Say how good the table must be; read off the smallest epsilon that gets there, and how many rows.**")
    public = ask_table(session)
    found = _found(session, public)
    if found is None:
        return
    left, right = st.columns([2, 1])
    aspect = ask_one(
        session,
        left.selectbox,
        "What matters",
        found.aspects,
        key="needs_aspect",
        format_func=lambda key: ASPECTS[key].title,
    )
    kind, key = ASPECTS[aspect], f"needs_target_{aspect}"
    target = right.number_input(
        f"Target: at most{' (%)' if kind.percent else ''}",
        min_value=0.0,
        key=key,
        value=session.tradeoffs.choices.get(key, kind.target * (100 if kind.percent else 1)),
    )
    session.tradeoffs.choices[key] = target
    wanted = target / 100 if kind.percent else target
    st.caption(kind.question)
    keys = [key for key in found.config.sweep.mechanisms if any(s.line(key, aspect) for s in found.sweeps)]
    with st.container(border=True):
        plain_list(found.sentence(key, aspect, wanted) for key in keys)
    silent = [MECHANISMS[key].title for key in found.config.sweep.mechanisms if key not in keys]
    if silent:
        st.caption(
            f"Not simulated here: {', '.join(silent)}. Showing that so few analysts are wrong takes hundreds of them, "
            'and each needs a table of its own. "Compare epsilons" shows what a few tell.'
        )
    chosen = ask_one(
        session,
        st.radio,
        "Mechanism in the picture",
        keys,
        key=f"needs_mechanism_{aspect}",
        format_func=lambda key: MECHANISMS[key].title,
        horizontal=True,
    )
    as_table = st.toggle("Show as table", key="table_needs")
    show_chart(enough_chart(found, chosen, aspect, wanted), key="needs_chart", as_table=as_table)
    st.caption(
        f"✓ enough, ✗ not enough; the number is the worst of {found.config.sweep.repetitions} runs (for discoveries, "
        "the upper end of a 95% interval). Fewer rows are a part of this table; more rows are drawn from it again."
    )


def _found(session: Session, public: PublicTable) -> SizeSweepResult | None:
    config = SizeSweepConfig.around(len(public.table), compared_mechanisms(public.schema))
    seconds = sizes_seconds(config, public.schema)
    first = last_config(session, "needs", public) is None
    found = show_simulation(
        session,
        "needs",
        public,
        config,
        sweep_sizes,
        seconds=seconds,
        label="Work it out",
        auto=first and seconds < 2 * PATIENCE,
    )
    return found if isinstance(found, SizeSweepResult) and found.aspects else None
