"""The Trade-offs page's parts: a sweep over epsilon, how much of it is needed, and noise to be looked at."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts import compare_chart
from dpsynth_core.charts.tradeoffs import multiples_chart, noisy_counts_chart, partition_chart, sweep_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.schema import Schema
from dpsynth_core.sweep import ASPECTS, Sweep, SweepOrder, needed
from dpsynth_core.teaching import grown_tree, noisy_histogram
from pages.shared.actions import load_example
from pages.shared.choices import EPSILONS
from pages.shared.frame import in_words, show_error
from pages.shared.job_view import watch
from pages.shared.session import Session
from pages.shared.show import plain_list, show_chart
from pages.shared.sweeps import (
    CLOSED,
    GRID,
    MOST_LINES,
    MOST_REPETITIONS,
    collect_sweep,
    expected_seconds,
    offered,
    start_sweep,
)
from pages.shared.words import duration, number

EXAMPLE = "bivariate_normal"
SHOWN_ROWS = 100


def show_closed() -> None:
    """Why private data has no place here."""
    st.warning(f"Closed for private data. {CLOSED}", icon=":material/lock:")
    st.markdown(
        "The lessons above use simulated people only. To sweep epsilon, switch to teaching mode on the Data page, with "
        "an example of about as many rows and columns: it gives an idea of what to expect."
    )


def offer_example(session: Session) -> None:
    """Without a table: one click to have one."""
    st.info("The rest of this page needs a table.", icon=":material/info:")
    if st.button("Use two correlated variables", icon=":material/play_arrow:", key="tradeoff_example"):
        with in_words("The example cannot be used."):
            load_example(session, EXAMPLE)
            st.rerun()
    st.page_link("pages/1_Data.py", label="Choose another on the Data page", icon=":material/table:")


def show_sweep(session: Session, schema: Schema, n: int) -> None:
    """Choose, run, look."""
    collect_sweep(session)
    st.markdown(
        "Each mechanism makes synthetic tables of **this** table at several values of epsilon, a few times each, and "
        "every table is compared with the original. Simulated noise, nothing is charged."
    )
    with in_words("This cannot be swept."):
        order = _ask_order(session)
        expected = expected_seconds(order, schema, n)
        job = session.sweep_job
        if job is not None and job.state in ("cancelled", "failed"):
            heading = "The sweep was cancelled." if job.state == "cancelled" else "The sweep failed."
            show_error(heading, DPSynthError(f"{job.problem} Nothing is charged for a sweep."))
        if job is None or not job.active:
            label = f"Run {order.runs} times ({duration(expected)})"
            if st.button(label, type="primary", icon=":material/play_arrow:", key="sweep"):
                start_sweep(session, order)
                st.rerun()
        else:
            watch(job, expected=expected, release=False, key="sweep")
    if session.sweep is not None:
        _show_found(session, session.sweep, schema)


def _ask_order(session: Session) -> SweepOrder:
    kept = session.sweep_order
    keys = st.multiselect(
        "Mechanisms", offered(), default=[key for key in kept.mechanisms if key in offered()], key="sweep_mechanisms",
        format_func=lambda key: MECHANISMS[key].title, max_selections=MOST_LINES,
    )  # fmt: skip
    left, right = st.columns([3, 1])
    grid = left.multiselect(
        "Values of epsilon", GRID, default=list(kept.epsilons), key="sweep_epsilons", format_func=lambda e: f"{e:g}"
    )
    times = right.number_input("Repetitions", 1, MOST_REPETITIONS, kept.repetitions, key="sweep_repetitions")
    if not keys or not grid:
        raise DPSynthError("Choose at least one mechanism and one value of epsilon.")
    order = SweepOrder(mechanisms=tuple(keys), epsilons=tuple(sorted(grid)), repetitions=int(times))
    session.sweep_order = order
    return order


def _show_found(session: Session, found: Sweep, schema: Schema) -> None:
    for title, problem in found.problems.items():
        st.text(f"{title} does not fit this table: {problem}")
    if not found.aspects:
        return
    st.subheader("How much epsilon do I need?", anchor=False)
    left, right = st.columns([2, 1])
    aspect = left.selectbox(
        "What matters", found.aspects, key="sweep_aspect", format_func=lambda key: ASPECTS[key].title
    )
    kind = ASPECTS[aspect]
    target = right.number_input(
        f"Target: at most{' (%)' if kind.percent else ''}", min_value=0.0,
        value=kind.target * (100 if kind.percent else 1), key=f"sweep_target_{aspect}",
    )  # fmt: skip
    wanted = target / 100 if kind.percent else target
    st.markdown(f"*{kind.question}*")
    plain_list(answer.sentence for answer in needed(found, aspect, wanted))
    st.caption(_notes(found, aspect))
    as_table = st.toggle("Show as tables", key="table_sweep")
    show_chart(sweep_chart(found, aspect, target=wanted), key="sweep_chart", as_table=as_table)
    _show_tables(session, found, schema, as_table)


def _notes(found: Sweep, aspect: str) -> str:
    if ASPECTS[aspect].simulated:
        return (
            f"Simulated groups of {found.rows // 2:,} rows each, released alone; bands are 95% intervals. Only for "
            "mechanisms that can be simulated quickly."
        )
    noise = (
        "Noise on a count does not depend on the number of rows, so its share of the rows does: with twice the rows, "
        "about half the epsilon gives the same error from noise."
    )
    return (
        f"Bands run from the best to the worst of {found.order.repetitions} runs; “at worst” is the worst run. {noise}"
    )


def _show_tables(session: Session, found: Sweep, schema: Schema, as_table: bool) -> None:
    """The tables behind the points: one column at every epsilon, and one table in full."""
    if session.data is None:
        return
    st.subheader("What the tables look like", anchor=False)
    made = [
        key for key in found.order.mechanisms if any(s.mechanism == key and s.table is not None for s in found.spots)
    ]
    left, right = st.columns(2)
    key = left.selectbox("Mechanism", made, key="sweep_shown", format_func=lambda name: MECHANISMS[name].title)
    name = right.selectbox("Column", schema.names, key="sweep_column")
    tables = {s.epsilon: s.table for s in found.spots if s.mechanism == key and s.table is not None}
    original = session.data.table
    chart = multiples_chart(original, list(tables.items()), schema, name)
    show_chart(chart, key="sweep_multiples", as_table=as_table)
    options = list(tables)
    if len(options) > 1:
        epsilon = st.select_slider(
            "Epsilon of the table below", options, value=options[len(options) // 2], key=f"sweep_at_{key}",
            format_func=lambda e: f"{e:g}",
        )  # fmt: skip
    else:
        epsilon = options[0]
    show_chart(compare_chart(original, tables[epsilon], schema, name), key="sweep_compare", as_table=as_table)
    with st.expander(f"Rows of this synthetic table (ε {epsilon:g})", icon=":material/table_rows:"):
        st.dataframe(tables[epsilon].head(SHOWN_ROWS), hide_index=True, alt="Rows of the synthetic table")


def show_noise(session: Session, schema: Schema) -> None:
    """One histogram and one tree with noise that can be drawn again."""
    if session.data is None:
        return
    table = session.data.table
    left, right = st.columns([2, 1])
    epsilon = left.select_slider("Epsilon (ε)", EPSILONS, value="0.3", key="noise_epsilon")
    name = right.selectbox("Column", schema.names, key="noise_column")
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Draw again", icon=":material/casino:", key="noise_draw"):
            session.noise_seed += 1
        as_table = st.toggle("Show as tables", key="table_noise")
    with in_words("This cannot be drawn."):
        drawn = noisy_histogram(table, schema, name, epsilon=epsilon, seed=session.noise_seed)
        chart = noisy_counts_chart(drawn.true, drawn.noisy, drawn.column, float(epsilon))
        scale = number(2 * schema.rows_per_person / float(epsilon))
        st.markdown(f"Every bar gets its own noise of about **± {scale}** rows, whether it holds many or none.")
        show_chart(chart, key="noise_histogram", as_table=as_table)
    numeric = [column.name for column in schema if column.is_numeric]
    if len(numeric) < 2:
        return
    with in_words("The tree cannot be drawn."):
        pair = st.multiselect(
            "Two columns for a tree", numeric, default=numeric[:2], key="noise_pair", max_selections=2
        )
        if len(pair) == 2:
            tree = grown_tree(table, schema, pair, epsilon=epsilon, seed=session.noise_seed)
            st.markdown("A **KD tree** spends the same epsilon on deciding where to look: darker boxes hold more rows.")
            show_chart(partition_chart(tree, float(epsilon)), key="noise_tree", as_table=as_table)
