"""The first thing on every page. Imports nothing but Streamlit, so that it is on screen before all else is loaded."""

from __future__ import annotations

import streamlit as st

# Streamlit writes these in the primary colour, which on a dark ground is too faint for letters (3.9:1).
LEGIBLE = """<style>
.stApp [data-testid=stSliderThumbValue], .stApp [data-testid=stButtonGroup] button { color: inherit !important; }
</style>"""


def heading(title: str) -> None:
    """The browser's title, and the page's."""
    st.set_page_config(page_title=f"{title} · DPSynth", page_icon="🔐", layout="wide")
    st.html(LEGIBLE)
    st.title(title)
