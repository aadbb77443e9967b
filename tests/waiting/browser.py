"""The app in a real browser: press, type and wait. Nothing waits for time to pass, only for things to appear."""

from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path

import numpy as np
from playwright.sync_api import Locator, Page, expect

PATIENCE = int(os.environ.get("PATIENCE", "30"))
"""Seconds after which something that should have happened counts as not happening; a busy machine needs more."""
MINUTE = 2_000 * PATIENCE
"""In milliseconds, and as much longer as the machine is busier."""
CALLS = count()


def csv_of(*names: str) -> bytes:
    """Sixty rows of another data set at each call, since all tests of a worker share one ledger of accounts."""
    rng = np.random.default_rng(next(CALLS))
    rows = rng.integers(10, 27, (60, len(names)))
    lines = [",".join(f'"{name}"' for name in names), *(",".join(map(str, row)) for row in rows)]
    return "\n".join(lines).encode()


def quiet(page: Page) -> Page:
    """The page once the server has nothing more to say and nothing moves any more."""
    # Until the font of the icons is there, their names stand in for them and push the buttons about.
    page.evaluate("document.fonts.ready.then(() => true)")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator("[data-stale=true]")).to_have_count(0)
    return page


def wait_until(page: Page, condition: str) -> Page:
    """Ask again and again from outside: Playwright's own way evaluates text within the page, which the app forbids."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)
    return page


def press(page: Page, name: str) -> Page:
    button = quiet(page).get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled()
    use(button)
    return page


def skip_ahead(page: Page) -> Page:
    """From Data to Synthesize, also where the forecast advises against it."""
    press(page, "Skip ahead with suggested settings")
    there, anyway = page.get_by_role("heading", name="What will be made"), page.get_by_text("Go on all the same")
    expect(there.or_(anyway).first).to_be_visible(timeout=MINUTE)
    if anyway.count():
        press(page, "Go on all the same")
    expect(there).to_be_visible()
    return page


def use(control: Locator, key: str = "Enter") -> None:
    """By keyboard: what opens or closes meanwhile may move a control away from the mouse, but not from the focus."""
    expect(control).to_have_count(1)
    control.press(key)


def downloaded(page: Page, name: str, *, which: int = 0) -> Path:
    """The file behind a link."""
    link = quiet(page).get_by_role("link", name=name, exact=True).nth(which)
    with page.expect_download() as download:
        use(link)
    return Path(download.value.path())


def fill_in(field: Locator, text: str) -> None:
    """Type into a field and leave it; what was typed sets out for the server only then."""
    field.fill(text)
    field.press("Tab")
    field.page.wait_for_timeout(500)
    quiet(field.page)


def go(page: Page, name: str) -> None:
    use(quiet(page).get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True))


def open_estimates(page: Page) -> None:
    use(quiet(page).locator("summary").filter(has_text="estimate them privately"))


def state_the_rest(page: Page) -> None:
    """State that the other facts of the column to be estimated are public knowledge."""
    use(quiet(page).get_by_role("checkbox", name="I state as public knowledge"), "Space")
    quiet(page)


def upload(page: Page, name: str, content: bytes) -> Page:
    """From the home page to a table of one's own, in the mode that the Data page is in."""
    chooser = page.get_by_test_id("stFileUploaderDropzoneInput").first
    expect(chooser).to_be_enabled()
    chooser.set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})
    return press(page, "Use this file")


def release_with(page: Page, content: bytes) -> Page:
    press(page, "Use my own table")
    use(page.get_by_role("radio", name="Release: private data"), "Space")
    expect(page.get_by_text("Release mode", exact=True)).to_be_visible()
    return upload(quiet(page), "private.csv", content)


def spent(page: Page, text: str) -> None:
    expect(page.get_by_test_id("stSidebar").get_by_text(f"ε spent: {text}", exact=True)).to_be_visible()


def write(page: Page, *, row: int, column: int, text: str) -> None:
    """Type into a cell of the editor."""
    select(page, row=row, column=column)
    page.keyboard.press("Enter")
    cell = page.locator("#portal").get_by_role("textbox")
    cell.fill(text)
    cell.press("Enter")


def select(page: Page, *, row: int, column: int) -> Locator:
    """A cell of the editor, reached as a screen reader does: the picture of the table has no cells."""
    editor = quiet(page).get_by_test_id("stDataFrame").last
    editor.get_by_test_id(f"glide-cell-0-{row}").focus()
    for place in range(column):
        expect(editor.get_by_test_id(f"glide-cell-{place}-{row}")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("ArrowRight")
    cell = editor.get_by_test_id(f"glide-cell-{column}-{row}")
    expect(cell).to_have_attribute("aria-selected", "true")
    return cell


def to_synthesize(page: Page) -> Page:
    press(page, "Next: choose a mechanism")
    expect(page.get_by_role("heading", name="What to expect")).to_be_visible()
    press(page, "Next: synthesize")
    expect(page.get_by_role("heading", name="What will be made")).to_be_visible()
    return quiet(page)


def finished(page: Page) -> Page:
    """Wait until every panel is there."""
    from dpsynth_core.diagnostics import DIAGNOSTICS  # slow to import, and few walks come here

    last = list(DIAGNOSTICS.values())[-1]
    expect(page.get_by_role("heading", name=last.title)).to_be_visible(timeout=2 * MINUTE)
    return quiet(page)


def gathered(page: Page) -> Page:
    """Gather the evidence on the release at hand, and wait until it is there."""
    press(page, "Gather the evidence")
    expect(page.get_by_role("link", name="Download the review report")).to_be_visible(timeout=3 * MINUTE)
    return quiet(page)


def step(page: Page, steps: int = 100_000, *, start: bool = True) -> Page:
    """Begin a run of the mechanism for tests, from whatever table there is."""
    press(page, "Next: choose a mechanism")
    press(page, "Choose Stepping stones")
    count = quiet(page).get_by_role("spinbutton", name="Steps")
    count.fill(str(steps))
    count.press("Enter")
    expect(page.get_by_text("Suggested: 20")).to_be_visible()
    press(page, "Next: synthesize")
    expect(page.get_by_role("heading", name="What will be made")).to_be_visible()
    if start:
        press(page, "Synthesize")
    return page


def step_for_release(page: Page, steps: int = 100_000) -> Page:
    """The same on a private table with an account of epsilon 1, half of which is spent."""
    release_with(page, csv_of("age", "weight"))
    press(page, "Open the account")
    expect(page.get_by_text("This data set has an account")).to_be_visible()
    step(page, steps)
    page.get_by_role("dialog").get_by_role("button", name="Spend it and run").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    return page
