"""The first thing on every page, before the page's other imports.

A server that was just started takes a second or two to load the rest; its first visitor sees the heading meanwhile.
Hence nothing is loaded here but Streamlit.
"""

from __future__ import annotations

import streamlit as st

from pages.shared.late_requests import begin_page

# Streamlit writes these in the primary colour, which on a dark ground is too faint for letters (3.9:1).
LEGIBLE = """<style>
.stApp [data-testid=stSliderThumbValue], .stApp [data-testid=stButtonGroup] button { color: inherit !important; }
</style>"""


def heading(title: str) -> None:
    """The browser's title, and the page's."""
    begin_page()
    st.set_page_config(page_title=f"{title} · DPSynth", page_icon="🔐", layout="wide")
    st.html(LEGIBLE)
    st.title(title)
