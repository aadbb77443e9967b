"""Putting results on a page."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from dpsynth_core.charts.theme import Chart


def show_chart(chart: Chart, *, key: str, as_table: bool = False) -> None:
    """A figure with its alternative text, or the same numbers as a table."""
    if as_table:
        st.dataframe(chart.table, hide_index=True, key=f"{key}_table")
        return
    st.plotly_chart(chart.figure, key=key, alt=chart.alt, config={"displayModeBar": False})


def plain_list(lines: Iterable[str]) -> None:
    """One line each, shown literally: what comes from a file is never read as markup."""
    text = "\n".join(f"• {line}" for line in lines)
    if text:
        st.text(text)
