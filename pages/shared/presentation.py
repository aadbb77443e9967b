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
INK = {"light": "#101318", "dark": "#E8EAED"}
"""The text of the two themes: Streamlit would draw the letters of figures in a grey that is hard to read on colours."""
_ASKED = (("embed", "true"), ("embed_options", "light_theme"), ("embed_options", "show_padding"), (PRESENT, "1"))
LETTERS = """<style>
.js-plotly-plot :is(.infolayer, [class*=axislayer], .sankey) text { fill: currentColor !important; }
</style>"""


def follow_theme() -> None:
    """Letters in figures change with the page when it turns dark or light: figures are drawn anew only later."""
    st.html(LETTERS)


def presenting() -> bool:
    """Whether the address asks for the presentation."""
    return st.query_params.get(PRESENT) == "1"


def begin_presentation() -> None:
    """Large letters and nothing around the page."""
    st.html(LARGE)


def as_shown(figure: go.Figure) -> go.Figure:
    """The figure as the page shows it: its letters in the page's ink, and large before a room."""
    if presenting():
        return _enlarged(_inked(figure, INK["light"]))
    ink = INK.get(st.context.theme.type or "")
    return figure if ink is None else _inked(figure, ink)


def _inked(figure: go.Figure, ink: str) -> go.Figure:
    # As plain values: the figure's own ways to update take four times as long, and a page has many.
    drawn = figure.to_dict()
    layout = drawn["layout"]
    axes = [axis for name, axis in layout.items() if name.startswith(("xaxis", "yaxis"))]
    titles = [axis["title"] for axis in axes if "title" in axis]
    for lettered in (layout, *layout.get("annotations", ()), *titles):
        lettered["font"] = {**lettered.get("font", {}), "color": ink}
    for axis in axes:
        axis["tickfont"] = {**axis.get("tickfont", {}), "color": ink}
    layout["legend"] = {**layout.get("legend", {}), "font": {"color": ink}}
    return go.Figure(drawn, _validate=False)  # it was valid before, and looking again takes most of the time


def _enlarged(figure: go.Figure) -> go.Figure:
    """With letters that can be read from the last row."""
    size = float(figure.layout.font.size or 12) * CHART_SCALE
    figure.update_layout(font_size=size, height=(figure.layout.height or 300) * CHART_SCALE)
    figure.update_annotations(font_size=size)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(tickfont_size=0.8 * size, title_font_size=size)
    return figure.update_layout(margin_t=(figure.layout.margin.t or 0) * CHART_SCALE)


def link_here(parameters: dict[str, str]) -> str:
    """An address of this page that anybody can open; it says nothing about the session that it comes from."""
    here = urlsplit(st.context.url or "")
    return f"{here.scheme}://{here.netloc}{here.path}?{urlencode(parameters)}"


def presentation_link(parameters: dict[str, str], token: str) -> str:
    """Where the same view opens as a presentation, with this visitor's own table where the browser is the same."""
    own = [("s", token)] if token else []
    return f"?{urlencode([*_ASKED, *parameters.items(), *own])}"
