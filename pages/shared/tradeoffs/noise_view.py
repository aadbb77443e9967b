"""Noise to be looked at: on one histogram, and on the boxes of a tree."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.tradeoffs import noisy_counts_chart, partition_chart
from dpsynth_core.teaching.noise_examples import grown_tree, noisy_histogram
from pages.shared.buttons import clicked
from pages.shared.formatting import measured
from pages.shared.layout import errors_shown
from pages.shared.session import Session
from pages.shared.tradeoffs.tables import PublicTable
from pages.shared.tradeoffs.view import ask_table
from pages.shared.widgets import ask_epsilon, ask_one, show_chart


def show_noise(session: Session) -> None:
    """One slider, two pictures, drawn again at will."""
    st.markdown("**Move epsilon and watch the noise.** Less epsilon, more noise, more privacy.")
    public = ask_table(session)
    epsilon = ask_epsilon(session, key="noise_epsilon", first="0.3")
    with st.container(horizontal=True, vertical_alignment="center"):
        if clicked("Draw again", icon=":material/casino:", key="noise_draw"):
            session.tradeoffs.noise_seed += 1
        as_table = st.toggle("Show as tables", key="table_noise")
    left, right = st.columns(2)
    with left, errors_shown("This cannot be drawn."):
        _histogram(session, public, epsilon, as_table)
    with right, errors_shown("The tree cannot be drawn."):
        _tree(session, public, epsilon, as_table)


def _histogram(session: Session, public: PublicTable, epsilon: str, as_table: bool) -> None:
    st.subheader("A histogram", anchor=False)
    name = ask_one(session, st.selectbox, "Column", public.schema.names, key="noise_column")
    drawn = noisy_histogram(public.table, public.schema, name, epsilon=epsilon, seed=session.tradeoffs.noise_seed)
    show_chart(
        noisy_counts_chart(drawn.true, drawn.noisy, drawn.column, float(epsilon)),
        key="noise_histogram",
        as_table=as_table,
    )
    scale = measured(2 * public.schema.rows_per_person / float(epsilon))
    st.markdown(
        f"Every bar gets its own noise of about **±\N{NO-BREAK SPACE}{scale}** rows, whether it holds many or none."
    )


def _tree(session: Session, public: PublicTable, epsilon: str, as_table: bool) -> None:
    st.subheader("A KD tree", anchor=False)
    numeric = [column.name for column in public.schema if column.is_numeric]
    if len(numeric) < 2:
        st.info("A tree needs two columns of numbers. Choose another table.", icon=":material/info:")
        return
    pair = st.multiselect("Two columns", numeric, default=numeric[:2], key="noise_pair", max_selections=2)
    if len(pair) < 2:
        st.info("Choose a second column.", icon=":material/info:")
        return
    tree = grown_tree(public.table, public.schema, pair, epsilon=epsilon, seed=session.tradeoffs.noise_seed)
    show_chart(partition_chart(tree, float(epsilon), public.table), key="noise_tree", as_table=as_table)
    st.markdown(
        f"It cuts a box in two only where enough rows show through the noise: **{len(tree.weights):,} boxes** here, "
        "stronger in colour where more rows lie. The points are rows of the original, which is public: no release "
        "shows them."
    )
