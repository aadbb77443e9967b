"""Showing a page to a room: the whole window, large type, dark on light.

An address with ``present=1`` asks for it. Streamlit's own parameters in that address leave out its toolbar and choose
the light theme, whatever the visitor's browser prefers.
"""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

import plotly.graph_objects as go
import streamlit as st

PRESENT = "present"
CHART_SCALE = 1.5
"""How much larger figures and their letters are."""
LARGE = """<style>
html { font-size: 150% !important; }
[data-testid=stMainBlockContainer] { max-width: none !important; padding: 1rem 2rem !important; }
[data-testid=stSidebar], [data-testid=stSidebarCollapsedControl], [data-testid=stHeader] { display: none !important; }
</style>"""
INK = "#101318"
"""The text of the light theme: Streamlit would draw the letters of figures in grey."""
_ASKED = (("embed", "true"), ("embed_options", "light_theme"), ("embed_options", "show_padding"), (PRESENT, "1"))


def presenting() -> bool:
    """Whether the address asks for the presentation."""
    return st.query_params.get(PRESENT) == "1"


def begin_presentation() -> None:
    """Large letters and nothing around the page."""
    st.html(LARGE)


def enlarged(figure: go.Figure) -> go.Figure:
    """The same figure with letters that can be read from the last row."""
    large = go.Figure(figure)
    size = float(large.layout.font.size or 12) * CHART_SCALE
    large.update_layout(font_size=size, height=(large.layout.height or 300) * CHART_SCALE)
    large.update_annotations(font={"size": size, "color": INK})
    for update in (large.update_xaxes, large.update_yaxes):
        update(tickfont={"size": 0.8 * size, "color": INK}, title_font={"size": size, "color": INK})
    large.update_layout(font_color=INK, legend_font_color=INK)
    large.update_layout(margin_t=(large.layout.margin.t or 0) * CHART_SCALE)
    return large


def link_here(parameters: dict[str, str]) -> str:
    """An address of this page that anybody can open; it says nothing about the session that it comes from."""
    here = urlsplit(st.context.url or "")
    return f"{here.scheme}://{here.netloc}{here.path}?{urlencode(parameters)}"


def presentation_link(parameters: dict[str, str], token: str) -> str:
    """Where the same view opens as a presentation, with this visitor's own table where the browser is the same."""
    own = [("s", token)] if token else []
    return f"?{urlencode([*_ASKED, *parameters.items(), *own])}"
