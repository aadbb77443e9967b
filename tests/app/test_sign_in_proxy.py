"""Sign-in through the proxy that we ship: by the server's public name, over HTTPS, with cookies for nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Playwright, expect

from tests.waiting.browser import PATIENCE, csv_of, press, quiet, release_with
from tests.waiting.proxy import NAME, Proxy, browser_that_knows_it, proxy_before
from tests.waiting.server import free_port
from tests.waiting.sign_in import PEOPLE, provider, serving_with_sign_in, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder, home = tmp_path_factory.mktemp("proxy"), tmp_path_factory.mktemp("office")
    port = free_port()
    options = ("--server.allowedHosts", NAME)
    with (
        provider() as issuer,
        serving_with_sign_in(issuer, home, seen_as=f"https://{NAME}:{port}", options=options) as url,
        proxy_before(url, folder, port=port) as running,
    ):
        yield running


@pytest.fixture
def context(proxy: Proxy, playwright: Playwright, browser_type_launch_args: dict[str, str]) -> Iterator[BrowserContext]:
    expect.set_options(timeout=PATIENCE * 1000)
    with browser_that_knows_it(playwright, browser_type_launch_args["executable_path"]) as browser:
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(PATIENCE * 1000)
        yield context


def test_sign_in_work_and_sign_out_by_the_public_name(proxy: Proxy, context: BrowserContext) -> None:
    page, address = context.new_page(), f"https://{NAME}:{proxy.port}"
    sockets: list[str] = []
    asked: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, address, "sue")

    assert page.url.startswith(f"{address}/")
    assert sockets
    assert all(url.startswith(f"wss://{NAME}:{proxy.port}/") for url in sockets)
    sent_back = {
        value for url in asked for value in parse_qs(urlsplit(url).query).get("redirect_uri", []) if "localhost" in url
    }
    assert sent_back == {f"{address}/oauth2callback"}

    cookies = {each["name"]: each for each in context.cookies(address)}
    assert {"_streamlit_user", "_streamlit_xsrf"} <= set(cookies)
    for name, cookie in cookies.items():
        assert cookie["secure"], name
        assert cookie["domain"].lstrip(".") == NAME
        assert cookie["sameSite"] == ("Strict" if name == "_streamlit_xsrf" else "Lax"), name
    assert cookies["_streamlit_user"]["httpOnly"], "no script can read who is signed in"

    release_with(page, csv_of("age", "weight"))
    press(page, "All of these are public knowledge")
    press(page, "Open the account")
    expect(page.get_by_text("This data set has an account")).to_be_visible()
    page.reload()
    expect(page.get_by_text(f"Signed in: {PEOPLE['sue'][0]}")).to_be_visible()
    press(page, "Sign out")
    # The provider ends its session as well, and sends the browser back.
    page.get_by_role("button", name="End session").click()
    page.wait_for_url(f"{address}/**")
    expect(quiet(page).get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    assert "_streamlit_user" not in {each["name"] for each in context.cookies(address)}


def test_the_log_tells_nobody_how_to_sign_in(proxy: Proxy, context: BrowserContext) -> None:
    """The provider's answer comes in the address, which the log must not hold."""
    sign_in(context.new_page(), f"https://{NAME}:{proxy.port}", "rob")
    log = Path(proxy.folder / "access.log").read_text(encoding="utf-8")
    assert "GET 302" in log
    assert not any(word in log for word in ("oauth2callback", "code=", "state="))
