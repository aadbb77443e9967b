"""Tables and pictures as files."""

from __future__ import annotations

import io

import pandas as pd
import plotly.graph_objects as go

from dpsynth_core.charts.theme import Chart

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters that make a spreadsheet treat a text as a formula."""


def safe_csv(table: pd.DataFrame) -> bytes:
    """CSV (UTF-8) that no spreadsheet executes: texts that look like formulas get a leading apostrophe.

    Example:
        >>> safe_csv(pd.DataFrame({"a": ["=1+1", "fine"]}))
        b"a\\n'=1+1\\nfine\\n"
    """
    shown = table.rename(columns=_defused)
    for index, dtype in enumerate(shown.dtypes):
        if dtype in ("str", "object"):
            shown.isetitem(index, shown.iloc[:, index].map(_defused, na_action="ignore").to_numpy())
    buffer = io.BytesIO()  # straight into bytes: as text, a large table would be held twice
    shown.to_csv(buffer, index=False, date_format="%Y-%m-%d")
    return buffer.getvalue()


def _defused(text: object) -> object:
    if not isinstance(text, str):
        return text
    line = text.replace("\r", " ")  # some readers treat a bare carriage return as the end of a row
    return f"'{line}" if text.startswith(_FORMULA) else line


def parquet(table: pd.DataFrame) -> bytes:
    """Parquet, which keeps the types."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def marked_csv(table: pd.DataFrame, mark: str) -> bytes:
    """CSV whose first line, a comment, says what the table is not for."""
    return f"# {mark}\n".encode() + safe_csv(table)


def marked_html(chart: Chart, mark: str) -> bytes:
    """A page of its own with the figure, which needs no network, under a line that says what it is not for."""
    figure = go.Figure(chart.figure)
    title = {"text": f"<b>{mark}</b>", "font": {"size": 14, "color": "#B00020"}}
    figure.update_layout(title=title, paper_bgcolor="white", margin={"t": 90})
    text: str = figure.to_html(include_plotlyjs=True, full_html=True)
    return text.encode()
