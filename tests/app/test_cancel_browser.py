"""The Cancel button, on 300,000 rows: whatever is running ends within two seconds, seen from the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.table.examples import EXAMPLES
from pages.shared.diagnostics.actions import CLASSIFYING, EXAMINATION
from pages.shared.synthesize.actions import RUN
from tests.waiting.browser import MINUTE, fill_in, finished, go, press, quiet, upload, use

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Visit = Callable[[], Page]
ROWS = 300_000
PROMISED = 2.0
"""Seconds."""


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


PRESS = """([kind, stage, above, end]) => new Promise((settle) => {
    const look = () => {
        const button = document.querySelector(`.st-key-cancel_${kind} button`), text = document.body.innerText
        const found = text.match(new RegExp(stage))
        if (button && !button.disabled && found && (found[1] === undefined || Number(found[1]) > above)) {
            window.clickedAt = Date.now()
            button.click()
            settle(true)
        } else if (!button && [...document.querySelectorAll("h1, h2, h3")].some((h) => h.innerText.includes(end))) {
            settle(false)
        } else {
            setTimeout(look, 20)
        }
    }
    look()
})"""
"""Presses the button in the page itself, as soon as the work is so far: a driver would come too late for quick work."""


def cancel(page: Page, what: str, kind: str, *, stage: str, above: int = 0, end: str) -> float | None:
    """Press the button; returns the seconds from the click until the page says that it is over.

    None if the work had ended before.

    Args:
        page: The page.
        what: The work, as messages call it.
        kind: Its kind.
        stage: The words, as a pattern, that are shown once it is far enough.
        above: What the number in them must exceed, if there is one.
        end: The heading that is shown when it has ended.
    """
    if not page.evaluate(PRESS, [kind, stage, above, end]):
        return None
    over = page.get_by_text(f"{what} was cancelled.")
    expect(over.or_(page.get_by_role("heading", name=end)).first).to_be_visible()
    if not over.count():
        return None  # it ended at this very moment
    taken: float = page.evaluate("() => (Date.now() - window.clickedAt) / 1000")
    print(f"{what} was cancelled {taken:.2f} s after the click")
    return taken


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
    taken = cancel(page, "The run", RUN, stage=r"table \d+ of 20", end="The synthetic table")
    if taken is None:
        pytest.skip(f"{kind.title} had made 20 tables before anybody could press the button")
    assert taken < PROMISED


def wide_table() -> bytes:
    """Six numbers and six labels, of which quick diagnostics have more to compute than of two columns."""
    rng = np.random.default_rng(12)
    common = rng.normal(size=ROWS)
    numbers = {f"x{i}": (common + rng.normal(size=ROWS)).round(2) for i in range(6)}
    levels = {f"g{i}": np.digitize(common + rng.normal(size=ROWS), (-1, 1)) for i in range(6)}
    labels = {name: np.array(["a", "b", "c"])[level] for name, level in levels.items()}
    return pd.DataFrame({**numbers, **labels}).to_csv(index=False).encode()


def again(page: Page) -> None:
    quiet(page).get_by_role("button", name=re.compile("with the original$")).click()


def test_every_diagnostic_is_cancelled_within_two_seconds(visit: Visit) -> None:
    """One after the other while all are compared; the last, which is quick, when it is asked for all it can do."""
    page = visit()
    press(page, "Use my own table")
    use(quiet(page).get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    upload(quiet(page), "wide.csv", wide_table())
    expect(page.get_by_text(f"{ROWS:,} rows, 12 columns")).to_be_visible(timeout=MINUTE)
    arrive(page, "Mechanism", "What to expect")
    press(page, "Choose KD tree")
    arrive(page, "Synthesize", "What will be made")
    press(page, "Synthesize")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=2 * MINUTE)
    go(page, "Diagnostics")
    taken, (*first, last) = {}, DIAGNOSTICS
    for step, key in enumerate(first):
        if step:
            again(page)
        above = 100 * step // len(DIAGNOSTICS)
        ended = DIAGNOSTICS[last].title
        taken[key] = cancel(page, "The comparison", EXAMINATION, stage=r" · (\d+)%", above=above, end=ended)
    again(page)
    finished(page)
    quiet(page).get_by_role("button", name=re.compile("^Train all twelve")).click()
    taken[last] = cancel(page, "The training of classifiers", CLASSIFYING, stage=r" · \d+%", end="no such heading")
    print(taken)
    missed = [key for key, seconds in taken.items() if seconds is None]
    assert not missed, "the comparison had ended before anybody could press the button"
    assert all(seconds is not None and seconds < PROMISED for seconds in taken.values()), taken
