"""Putting results on a page."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.theme import Chart


def show_chart(chart: Chart, *, key: str, as_table: bool = False) -> None:
    """A figure with its alternative text, or the same numbers as a table."""
    if as_table:
        st.dataframe(chart.table, hide_index=True, key=f"{key}_table")
        return
    st.plotly_chart(chart.figure, key=key, alt=chart.alt, config={"displayModeBar": False})
