"""A ledger of its own for every test, and the real app in a real browser for those that walk through it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.waiting.browser import PATIENCE
from tests.waiting.server import CHROMIUM_OPTIONS, serving


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's ledger and key live; nobody's real ledger is ever opened."""
    place = tmp_path / "home"
    monkeypatch.setenv("DPSYNTH_HOME", str(place))
    for variable in ("DPSYNTH_LEDGER_URL", "DPSYNTH_KEY_FILE"):
        monkeypatch.delenv(variable, raising=False)
    return place


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """How pytest-playwright starts the browser: the system's, not a download."""
    fallback = Path("/usr/bin/chromium")
    found = shutil.which("chromium") or (str(fallback) if fallback.exists() else None)
    if found is None:
        reason = "Chromium is not installed, so nobody can walk through the app: install it to run the browser tests."
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return {"executable_path": found, "args": CHROMIUM_OPTIONS}


@pytest.fixture(scope="session")
def app_url(app_server: tuple[str, int]) -> str:
    """Where the running app answers."""
    return app_server[0]


@pytest.fixture(scope="session")
def app_pid(app_server: tuple[str, int]) -> int:
    """The process of the running app."""
    return app_server[1]


@pytest.fixture(scope="session")
def app_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The running app, one per worker, with a ledger of its own."""
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.port"]
    with serving(command, tmp_path_factory.mktemp("app")) as server:
        yield server


@pytest.fixture(scope="session")
def stepping_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The same with a mechanism that can be made to take as long as a test needs."""
    with serving(["tests.app.serve"], tmp_path_factory.mktemp("stepping")) as server:
        yield server


@pytest.fixture
def visitors(
    new_context: Callable[[], BrowserContext], stepping_server: tuple[str, int]
) -> Iterator[Callable[[], Page]]:
    """Each call is another visitor, with a browser of its own, to the app with the mechanism for tests."""
    expect.set_options(timeout=PATIENCE * 1000)
    pages: list[Page] = []

    def open_home() -> Page:
        page = new_context().new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(stepping_server[0])
        expect(page.get_by_role("heading", name="DPSynth", level=1)).to_be_visible()
        pages.append(page)
        return page

    yield open_home
    for page in pages:
        if not page.is_closed():
            expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.fixture
def requests_made(context: BrowserContext) -> list[str]:
    """The address of every request that the browser makes during the test, sockets included."""
    made: list[str] = []
    context.on("request", lambda request: made.append(request.url))
    context.on("page", lambda page: page.on("websocket", lambda socket: made.append(socket.url)))
    return made


def _is_violation(message: str) -> bool:
    return "Content Security Policy" in message


@pytest.fixture
def visit(requests_made: list[str], page: Page, app_url: str) -> Iterator[Callable[[], Page]]:
    """Opens the home page as a new visitor. Whatever is done then, nothing leaves this machine."""
    expect.set_options(timeout=PATIENCE * 1000)
    page.set_default_timeout(PATIENCE * 1000)

    violations: list[str] = []
    page.on("console", lambda message: violations.append(message.text) if _is_violation(message.text) else None)

    def open_home() -> Page:
        page.goto(app_url)
        expect(page.get_by_role("heading", name="DPSynth", level=1)).to_be_visible()
        return page

    yield open_home
    here = (f"{app_url}/", f"{app_url.replace('http', 'ws')}/", "data:", "blob:")
    foreign = [url for url in requests_made if not url.startswith(here)]
    assert requests_made
    assert not foreign
    assert not violations, "the page needs something that the server forbids"
    expect(page.get_by_text("Traceback")).to_have_count(0)
