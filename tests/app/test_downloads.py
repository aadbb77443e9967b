"""Files on offer: by session, by tab, and for no other browser."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.table.examples import EXAMPLES, FIRST
from dpsynth_core.table.schema import Schema
from pages.shared.downloads import KEPT_SECONDS, Download, Downloads
from tests.waiting.browser import MINUTE, downloaded, go, press, quiet, step, to_synthesize

Visit = Callable[[], Page]


def holding(text: str) -> Download:
    return Download(name="a.txt", media_type="text/plain", content=text.encode)


def content_of(downloads: Downloads, offer: str) -> bytes | None:
    found = downloads.find(offer)
    return None if found is None else found.content()


def everybody(_tab: str) -> bool:
    return True


def test_two_tabs_offer_different_files_under_the_same_name() -> None:
    downloads = Downloads()
    one, two = (downloads.offer(tab, "a.txt", holding(tab)) for tab in ("one", "two"))
    assert one != two
    assert [content_of(downloads, offer) for offer in (one, two)] == [b"one", b"two"]


class Clock:
    """A time that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_link_works_while_its_page_is_drawn_anew_however_often_that_begins() -> None:
    downloads = Downloads(clock=(clock := Clock()))
    downloads.begin("tab", everybody)
    offer = downloads.offer("tab", "a.txt", holding("first"))
    clock.now = 1_000.0
    for _ in range(3):  # broken off before they come to the link
        downloads.begin("tab", everybody)
        assert content_of(downloads, offer) == b"first", "the page is being drawn, and somebody presses the old link"
    assert downloads.offer("tab", "a.txt", holding("second")) == offer, "the same file has the same address"
    assert content_of(downloads, offer) == b"second"


def test_what_a_page_does_not_offer_any_more_is_forgotten_after_a_while() -> None:
    downloads = Downloads(clock=(clock := Clock()))
    offer = downloads.offer("tab", "a.txt", holding("first"))
    downloads.begin("tab", everybody)
    clock.now = KEPT_SECONDS
    downloads.begin("tab", everybody)
    assert downloads.find(offer) is not None
    clock.now = KEPT_SECONDS + 1
    downloads.begin("tab", everybody)
    assert downloads.find(offer) is None


def test_closed_tabs_offer_nothing_and_another_table_withdraws_everything() -> None:
    downloads = Downloads()
    left = downloads.offer("closed", "a.txt", holding("left"))
    kept = downloads.offer("open", "a.txt", holding("kept"))
    downloads.begin("mine", {"open", "mine"}.__contains__)
    assert downloads.find(left) is None
    assert downloads.find(kept) is not None
    downloads.clear()
    assert downloads.find(kept) is None


def fetched(address: str, cookie: str) -> tuple[int, bytes, dict[str, str]]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", parts.path, headers={"Cookie": cookie} if cookie else {})
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def cookie_of(page: Page) -> str:
    """The cookie by which the server knows this browser."""
    (value,) = (each["value"] for each in page.context.cookies() if each["name"] == "_streamlit_xsrf")
    return f"_streamlit_xsrf={value}"


@pytest.mark.slow
@pytest.mark.browser
def test_a_download_is_for_the_browser_of_its_session_only(visitors: Visit) -> None:
    mine, other = visitors(), visitors()
    for page in (mine, other):
        press(page, "Try an example")
        expect(page.get_by_role("heading", name="Pictures")).to_be_visible()
    link = quiet(mine).get_by_role("link", name="Save schema").get_attribute("href")
    address = f"{urlsplit(mine.url).scheme}://{urlsplit(mine.url).netloc}/{link}"
    status, content, headers = fetched(address, cookie_of(mine))
    assert status == http.HTTPStatus.OK
    assert Schema.from_json(content).names == EXAMPLES[FIRST].schema.names
    assert headers["content-disposition"] == "attachment; filename*=utf-8''schema.json"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    for cookie in ("", "_streamlit_xsrf=2|00|00|0", cookie_of(other)):
        status, content, _ = fetched(address, cookie)
        assert status == http.HTTPStatus.NOT_FOUND
        assert not any(f'"{name}"'.encode() in content for name in EXAMPLES[FIRST].schema.names)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("others", [1, 3])
def test_every_download_works_while_others_watch_runs(visitors: Visit, others: int) -> None:
    """Streamlit's own downloads disappear when anybody's script has ended twice, which watchers do all the time."""
    mine, *watchers = (visitors() for _ in range(1 + others))
    press(mine, "Try an example")
    to_synthesize(mine)
    press(mine, "Synthesize")
    expect(mine.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=2 * MINUTE)
    for page in watchers:
        press(page, "Try an example")
        step(page)
        expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    first = downloaded(mine, "Download CSV").read_bytes()
    assert first.count(b"\n") == EXAMPLES[FIRST].default_rows + 1
    for _ in range(3):
        assert downloaded(mine, "Download CSV").read_bytes() == first
        assert downloaded(mine, "Download Parquet").read_bytes().endswith(b"PAR1")
    go(mine, "Data")
    assert downloaded(mine, "Save schema").read_bytes()
    for page in watchers:
        press(page, "Cancel")
        expect(page.get_by_text("The run was cancelled.")).to_be_visible()
