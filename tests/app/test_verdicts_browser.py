"""Numbers and verdicts in a real browser: the same on Diagnostics and on Release, and a slider that keeps its focus."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.waiting.browser import MINUTE, finished, gathered, go, press, quiet, skip_ahead, upload, use

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Visit = Callable[[], Page]


def diagnosed(page: Page) -> Page:
    press(page, "Try an example")
    press(page, "Skip ahead with suggested settings")
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    return quiet(page)


def test_release_says_what_diagnostics_says_and_at_once(visit: Visit) -> None:
    page = diagnosed(visit())
    named = ("Total variation", "pMSE beyond chance", "MMD as a share of pure noise")
    said = {name: page.get_by_text(f"{name} ").filter(has_text="95% interval").first.inner_text() for name in named}
    go(page, "Release")
    use(quiet(page).locator("summary").filter(has_text="Evidence: quality"))
    for sentence in said.values():
        expect(quiet(page).get_by_text(sentence).first).to_be_visible()
    expect(page.get_by_text("pMSE ratio")).to_have_count(0)
    # A check is of the largest value that its own evidence lists, not of the one furthest beyond chance.
    evidence = quiet(page).locator("details").filter(has_text="Evidence: quality").last.inner_text()
    for asked in ("Worst column", "Worst pair of columns"):
        part = re.search(rf"Asked: {asked}: total.*?Measured: ([\d.]+).*?(?=Asked: |\Z)", evidence, re.DOTALL)
        assert part, evidence
        listed = [float(value) for value in re.findall(r"^• .*: ([\d.]+) \(", part[0], re.MULTILINE)]
        assert len(listed) == 3
        assert float(part[1]) == max(listed)


def test_a_share_of_all_rows_is_written_as_100_percent(visit: Visit) -> None:
    """With four possible rows, every fresh one repeats an original one."""
    rng = np.random.default_rng(3)
    lines = ["smokes,drinks", *(f"{a},{b}" for a, b in rng.choice(["yes", "no"], (400, 2)))]
    page = press(visit(), "Use my own table")
    use(quiet(page).get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    upload(quiet(page), "habits.csv", "\n".join(lines).encode())
    expect(page.get_by_text("habits.csv: 400 rows, 2 columns")).to_be_visible()
    skip_ahead(page)
    press(page, "Synthesize")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=3 * MINUTE)
    go(page, "Release")
    gathered(page)
    expect(page.get_by_text("100% equal an original row; fresh rows: 100%").first).to_be_visible()


def test_the_page_says_what_the_table_is_good_for(visit: Visit) -> None:
    page = diagnosed(visit())
    for lead in ("teaching", "software tests", "totals and shares", "comparing groups", "a model for a target"):
        expect(page.get_by_text(lead).first).to_be_visible()
    page.get_by_role("combobox", name="What is the table for?").click()
    page.get_by_role("option", name="Comparing groups").click()
    page.keyboard.press("Escape")
    expect(quiet(page).get_by_text("change of effect").first).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Remove Comparing groups")).to_be_visible(timeout=MINUTE)


def test_the_slider_of_epsilon_keeps_the_focus(visit: Visit) -> None:
    page = visit()
    press(page, "Try an example")
    press(page, "Next: choose a mechanism")
    slider = quiet(page).get_by_role("slider").first
    slider.focus()
    seen = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(700)
        quiet(page)
        seen.append(slider.get_attribute("aria-valuetext"))
        assert page.evaluate("document.activeElement.type") == "range"
    assert len(set(seen)) == 3
