"""The proxy configuration that we ship, in a real nginx before the real app."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator

import pytest
from playwright.sync_api import Playwright, expect

from tests.waiting.browser import PATIENCE, downloaded, press
from tests.waiting.proxy import NAME, Proxy, browser_that_knows_it, proxy_before
from tests.waiting.server import serving


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.allowedHosts", NAME]
    with serving([*command, "--server.port"], folder, host=NAME) as (url, _), proxy_before(url, folder) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/download/x/y", "/_stcore/metrics"])
def test_every_answer_has_every_header_once(proxy: Proxy, path: str) -> None:
    answer = proxy.ask(path)
    for name, value in {
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "strict-transport-security": "max-age=31536000",
    }.items():
        assert answer.all(name) == [value]
    (policy,) = answer.all("content-security-policy")
    assert "frame-ancestors 'none'" in policy
    assert not any("/" in value for value in answer.all("server")), "its version is nobody's business"


def test_the_cookie_is_for_this_site_and_for_encrypted_connections_only(proxy: Proxy) -> None:
    (cookie,) = proxy.ask("/_stcore/health").all("set-cookie")
    assert cookie.startswith("_streamlit_xsrf=")
    assert "secure" in cookie.lower()
    assert "samesite=strict" in cookie.lower()


@pytest.mark.parametrize(
    "path", ["/_stcore/metrics", "/_stcore/metrics?families=x", "/_stcore/agent/mcp", "/media/a.csv"]
)
def test_what_nobody_needs_is_closed(proxy: Proxy, path: str) -> None:
    assert proxy.ask(path).status == http.HTTPStatus.NOT_FOUND


def test_other_names_are_refused_in_the_handshake_and_in_the_request(proxy: Proxy) -> None:
    with pytest.raises(ssl.SSLError):
        proxy.ask("/", name="evil.example")
    with pytest.raises(http.client.RemoteDisconnected):
        proxy.ask("/", host="evil.example")


def test_the_log_holds_no_address(proxy: Proxy) -> None:
    proxy.ask("/download/token-of-a-session/offer?s=token-of-a-session")
    log = (proxy.folder / "access.log").read_text(encoding="utf-8")
    assert "GET 404" in log
    assert "token-of-a-session" not in log


@pytest.mark.browser
def test_the_app_works_behind_it_and_nothing_touches_the_disk(
    proxy: Proxy, playwright: Playwright, browser_type_launch_args: dict[str, str]
) -> None:
    with browser_that_knows_it(playwright, browser_type_launch_args["executable_path"]) as browser:
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        refused: list[str] = []
        page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
        page.goto(f"https://{NAME}:{proxy.port}/")
        press(page, "Try an example")
        expect(page.get_by_role("heading", name="Pictures")).to_be_visible(timeout=2 * PATIENCE * 1000)
        assert b"blood pressure" in downloaded(page, "Save schema").read_bytes()
        assert not refused
    buffered = [
        path for kind in ("client_body", "proxy") for path in (proxy.folder / kind).rglob("*") if path.is_file()
    ]
    assert not buffered
