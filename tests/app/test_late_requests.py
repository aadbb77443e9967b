"""What a page's timer asks for after a link was followed is not answered on the next page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.visitor import Visitor
from tests.waiting.server import ROOT, serving

FIRST = """
import streamlit as st
from pages.shared.heading import heading

heading("First")
st.page_link("pages/1_Second.py", label="Second")

@st.fragment(run_every=60)
def watch():
    st.text("at work")

watch()
"""
SECOND = """
import time
from pathlib import Path
import streamlit as st
from pages.shared.heading import heading

heading("Second")
while not Path({asked!r}).exists():
    time.sleep(0.01)
st.text("complete")
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Two pages; the second one is not complete before a file is there."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "First.py").write_text(FIRST)
    (tmp_path / "pages/1_Second.py").write_text(SECOND.format(asked=str(tmp_path / "asked")))
    command = ["streamlit", "run", str(tmp_path / "First.py"), "--server.headless", "true", "--server.port"]
    with serving(command, tmp_path, more={"PYTHONPATH": str(ROOT)}) as (address, _):
        yield address


async def follow_and_ask(url: str, asked: Path) -> list[str]:
    """Every page that the server begins after a link was followed, with a request of the first page on its heels."""
    async with Visitor(url=url, canaries=re.compile(b"canary")) as visitor:
        first, (timer,) = visitor.page, visitor.timers
        await visitor.follow("Second")
        await visitor.until(lambda: "Second" in visitor.headings)
        visitor.pages.clear()
        await visitor.ask(timer, page=first)
        await asyncio.sleep(0.5)  # the server takes it in, and says nothing
        asked.touch()
        await visitor.until(lambda: "complete" in visitor.text)
        await asyncio.sleep(0.5)  # what it would answer
        return [page for page in visitor.pages if page == first]


def test_a_request_of_the_page_that_was_left_is_not_answered(url: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as apart:  # tests in a browser keep an event loop in this thread
        answered = apart.submit(lambda: asyncio.run(follow_and_ask(url, tmp_path / "asked"))).result()
    assert answered == []
