"""Pictures that were drawn from private rows, and their files."""

from __future__ import annotations

import streamlit as st

from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics.base import INTERNAL
from dpsynth_core.review.export import marked_csv, marked_html
from pages.shared.show import show_chart


def picture(chart: Chart, *, key: str, as_table: bool) -> None:
    """A picture, and its files, which carry the mark."""
    show_chart(chart, key=key, as_table=as_table)
    with st.container(horizontal=True):
        for label, kind, content in (
            ("Figure", "html", lambda: marked_html(chart, INTERNAL)),
            ("Table", "csv", lambda: marked_csv(chart.table, INTERNAL)),
        ):
            st.download_button(
                label, content, f"internal_review_{key}.{kind}", f"text/{kind}", key=f"{kind}_{key}", type="tertiary",
                icon=":material/download:", on_click="ignore",
            )  # fmt: skip
