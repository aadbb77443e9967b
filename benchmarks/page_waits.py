"""What a visitor waits for in a real browser, against what was promised. Needs Chromium, so it runs only by itself.

python -m benchmarks.page_waits [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

from pages.shared.layout import STAGES

PROMISED = {
    "fresh server": 3.0,
    "first heading": 3.0,
    "warm page change": 1.0,
    "page with charts": 3.0,
    "cancel confirmed": 2.0,
}
CHROMIUM = "/usr/bin/chromium"
DRAWN = """() => document.querySelectorAll('[data-testid=stPlotlyChart]').length
    && [...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(c => c.querySelector('.xtitle'))"""


@contextmanager
def serving() -> Iterator[str]:
    """The app on a free port, with a ledger of its own."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.port"]
    with tempfile.TemporaryDirectory() as home:
        server = subprocess.Popen(  # noqa: S603  our own command
            [*command, str(port)], env={**os.environ, "DPSYNTH_HOME": home}, stdout=subprocess.DEVNULL
        )
        try:
            while True:
                try:
                    urllib.request.urlopen(f"http://localhost:{port}/_stcore/health")
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://localhost:{port}"
        finally:
            server.terminate()
            server.wait()


def quiet(page: Page) -> Page:
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    return page


def wait_until(page: Page, condition: str) -> None:
    """Ask from outside: the app forbids text to be evaluated within the page, as Playwright's own way does."""
    while not page.evaluate(condition):
        page.wait_for_timeout(20)


def follow(page: Page, name: str) -> None:
    quiet(page).get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True).click()


def taken(action: Callable[[], object], arrived: Callable[[], object]) -> float:
    """Seconds from an action until it has arrived."""
    began = time.perf_counter()
    action()
    arrived()
    return time.perf_counter() - began


def arrive(browser: Browser, url: str) -> tuple[Page, float]:
    """A new visitor, and the seconds until the first heading."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    heading = page.get_by_role("heading", level=1)
    return page, taken(lambda: page.goto(url), lambda: expect(heading).to_have_text("DPSynth"))


def first_ever(browser: Browser) -> float:
    """What the first visitor of a server that has just been started waits."""
    with serving() as url:
        page, seconds = arrive(browser, url)
        page.context.close()
    return seconds


def visit(browser: Browser, url: str) -> dict[str, float]:
    """One visitor's waits."""
    page, seconds = arrive(browser, url)
    times = {"first heading": seconds}
    quiet(page).get_by_role("button", name="Try an example").click()
    wait_until(page, DRAWN)
    for stage in STAGES:
        changed(page, stage.title)
    # Of all six pages, the one that takes longest.
    times["warm page change"] = max(changed(page, stage.title) for stage in STAGES)
    times["page with charts"] = taken(lambda: follow(page, "Mechanism"), lambda: wait_until(page, DRAWN))
    times["cancel confirmed"] = cancelled(page)
    page.context.close()
    return times


def changed(page: Page, name: str) -> float:
    """Seconds until another page has its heading, once the one before is at rest."""
    heading = page.get_by_role("heading", level=1)
    quiet(page)
    return taken(lambda: follow(page, name), lambda: expect(heading).to_have_text(name))


def cancelled(page: Page) -> float:
    """A run that takes long: twenty tables from a million rows."""
    follow(page, "Data")
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name="Ten clusters in the plane").click()
    rows = quiet(page).get_by_role("spinbutton", name="Rows to simulate")
    rows.fill("1000000")
    rows.press("Enter")
    quiet(page).get_by_role("button", name="Use this example").click()
    expect(page.get_by_text("1,000,000 rows, 2 columns")).to_be_visible()
    follow(page, "Synthesize")
    tables = quiet(page).get_by_role("spinbutton", name="Synthetic tables")
    tables.fill("20")
    tables.press("Enter")
    expect(page.get_by_text("20 synthetic tables")).to_be_visible()
    quiet(page).get_by_role("button", name="Synthesize", exact=True).click()
    expect(page.get_by_text(re.compile(r"table \d+ of 20"))).to_be_visible()
    return taken(
        page.get_by_role("button", name="Cancel", exact=True).click,
        lambda: expect(page.get_by_text("The run was cancelled.")).to_be_visible(),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    expect.set_options(timeout=120_000)
    with serving() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox"])
        arrive(browser, url)  # the browser's own first page is slow
        visits = [visit(browser, url) | {"fresh server": first_ever(browser)} for _ in range(rounds)]
        browser.close()
    load = os.getloadavg()[0]
    print(f"Waits in a browser, best and worst of {rounds} ({os.cpu_count()} cores, load {load:.1f})")
    for name, promised in PROMISED.items():
        waits = [times[name] for times in visits]
        share = min(waits) / promised
        print(f"  {name:18} {min(waits):6.2f} s to {max(waits):6.2f} s, promised {promised:.0f} s: {share:.2f} x")


if __name__ == "__main__":
    main()
