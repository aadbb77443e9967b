"""The Cancel button, on 300,000 rows: whatever is running ends within two seconds, seen from the page."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.table.examples import EXAMPLES
from pages.shared.diagnostics.actions import EXAMINATION
from pages.shared.synthesize.actions import RUN
from tests.waiting.browser import MINUTE, fill_in, go, press, quiet, use

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Visit = Callable[[], Page]
ROWS = 300_000
PROMISED = 2.0
"""Seconds."""
PERCENT = re.compile(r" · (\d+)%")


def with_many_rows(page: Page) -> Page:
    """Two groups that differ, which every diagnostic has something to say about."""
    press(page, "Try an example")
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name=EXAMPLES["two_groups_signal"].title).click()
    page.wait_for_timeout(1_000)  # the number of rows of the example before would swallow what is typed
    fill_in(quiet(page).get_by_role("spinbutton", name="Rows to simulate"), str(ROWS))
    press(page, "Use this example")
    expect(page.get_by_text(f"{ROWS:,} rows, 2 columns")).to_be_visible()
    return page


def arrive(page: Page, name: str, heading: str) -> None:
    """Follow a link, and again if a timer of the page before took the click: Streamlit obeys the later request."""
    shown = page.get_by_role("heading", name=heading)
    for _ in range(3):
        go(page, name)
        with suppress(PlaywrightTimeout):
            shown.first.wait_for(timeout=10_000)
            return
    expect(shown).to_be_visible()


def done(page: Page) -> float:
    """The share that is done, as the page says."""
    text = page.get_by_text(PERCENT)
    found = PERCENT.search(text.first.inner_text()) if text.count() else None
    return int(found[1]) / 100 if found else 0.0


NOTE_CLICKS = """() => document.addEventListener("click", () => { window.clickedAt = Date.now() }, {capture: true})"""
"""The driver may wait for a button that keeps moving before it presses it: seconds count from the click itself."""


def cancel(page: Page, what: str, kind: str) -> float:
    """Press the button; returns the seconds from the click until the page says that it is over."""
    button = page.locator(f".st-key-cancel_{kind}").get_by_role("button")  # a forecast has one of its own
    page.evaluate(NOTE_CLICKS)
    began = time.monotonic()
    button.click()
    expect(page.get_by_text(f"{what} was cancelled.")).to_be_visible()
    taken: float = page.evaluate("() => (Date.now() - window.clickedAt) / 1000")
    print(
        f"{what} was cancelled {taken:.2f} s after the click, {time.monotonic() - began:.2f} s with finding the button"
    )
    return taken


def running(page: Page) -> bool:
    """Whether the run has come as far as its tables; False if it had ended before anybody could press the button."""
    stage = page.get_by_text(re.compile(r"table \d+ of 20"))
    expect(stage.or_(page.get_by_role("heading", name="The synthetic table")).first).to_be_visible(timeout=5 * MINUTE)
    return stage.count() > 0


@pytest.mark.parametrize("key", MECHANISMS)
def test_every_mechanism_is_cancelled_within_two_seconds(visit: Visit, key: str) -> None:
    page, kind = with_many_rows(visit()), MECHANISMS[key]
    arrive(page, "Mechanism", "What to expect")
    if kind.comparator:
        use(quiet(page).locator("summary").filter(has_text="Comparators from the papers"))
    if not quiet(page).get_by_role("button", name=f"{kind.title} is chosen", exact=True).count():
        press(page, f"Choose {kind.title}")
    arrive(page, "Synthesize", "What will be made")
    refusal = quiet(page).get_by_text("Please correct the parameters on the Mechanism page.")
    copies = page.get_by_role("spinbutton", name="Synthetic tables")
    expect(refusal.or_(copies).first).to_be_visible()
    if copies.count():
        fill_in(copies, "20")
    if refusal.count() or quiet(page).get_by_role("button", name="Synthesize", exact=True).is_disabled():
        pytest.skip(f"{kind.title} refuses this table, so there is nothing to cancel")
    press(page, "Synthesize")
    if not running(page):
        pytest.skip(f"{kind.title} had made 20 tables before anybody could press the button")
    assert cancel(page, "The run", RUN) < PROMISED


def test_every_diagnostic_is_cancelled_within_two_seconds(visit: Visit) -> None:
    page = with_many_rows(visit())
    arrive(page, "Mechanism", "What to expect")
    press(page, "Choose Perturbed histogram")
    arrive(page, "Synthesize", "What will be made")
    press(page, "Synthesize")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=2 * MINUTE)
    go(page, "Diagnostics")
    taken = {}
    for step, key in enumerate(DIAGNOSTICS):
        if step:
            quiet(page).get_by_role("button", name=re.compile("with the original$")).click()
        expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
        end = time.monotonic() + 600
        while done(page) <= step / len(DIAGNOSTICS) and not page.get_by_text("Verdict").count():
            assert time.monotonic() < end, key
            page.wait_for_timeout(50)
        taken[key] = cancel(page, "The comparison", EXAMINATION)
    print({key: round(seconds, 2) for key, seconds in taken.items()})
    assert max(taken.values()) < PROMISED, taken
