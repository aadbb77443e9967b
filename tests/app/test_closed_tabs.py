"""Of a tab that was closed, the server keeps nothing but the session that the app can find again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.visitor import Visitor
from tests.waiting.server import ROOT, serving

PAGE = """
import time
from pathlib import Path
import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from pages.shared.closed_tabs import forget_tab

me, first = get_script_run_ctx().session_id, Path({first!r})

def known(tab):
    return Runtime.instance()._session_mgr.get_session_info(tab) is not None

if not first.exists():
    first.write_text(me)
    forget_tab(me)
    time.sleep(0.5)
    st.text(f"connected, known: {{known(me)}}")
else:
    before = known(first.read_text())
    forget_tab(first.read_text())
    time.sleep(0.5)
    st.text(f"closed, known before: {{before}}, known now: {{known(first.read_text())}}")
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A page that lets go of its first visitor's tab: while it is open, and when the second visitor comes."""
    (tmp_path / "Page.py").write_text(PAGE.format(first=str(tmp_path / "first")))
    command = ["streamlit", "run", str(tmp_path / "Page.py"), "--server.headless", "true", "--server.port"]
    with serving(command, tmp_path, more={"PYTHONPATH": str(ROOT)}) as (address, _):
        yield address


async def shown(url: str) -> str:
    async with Visitor(url=url, canaries=re.compile(b"canary")) as visitor:
        await visitor.until(lambda: "known" in visitor.text)
        return visitor.text


def test_streamlit_forgets_a_closed_tab_and_no_open_one(url: str) -> None:
    with ThreadPoolExecutor() as apart:  # tests in a browser keep an event loop in this thread
        first, second = (apart.submit(lambda: asyncio.run(shown(url))).result() for _ in range(2))
    assert first == "connected, known: True"
    assert second == "closed, known before: True, known now: False"
