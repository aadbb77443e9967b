"""In a real browser: the newest run is what every page shows, and its numbers agree on all of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.table.examples import EXAMPLES
from tests.waiting.browser import (
    MINUTE,
    downloaded,
    fill_in,
    finished,
    go,
    press,
    quiet,
    skip_ahead,
    upload,
    use,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Visit = Callable[[], Page]
LONG = 3 * MINUTE
EXAMPLE = EXAMPLES["two_groups_signal"]


def patient(page: Page) -> Page:
    """These walks are long; on a busy machine any of their steps may be."""
    page.set_default_timeout(LONG)
    expect.set_options(timeout=LONG)
    return page


def choose(page: Page, label: str, option: str) -> Page:
    quiet(page).get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()
    return quiet(page)


def make(page: Page, rows: int) -> Page:
    """Another run, told by its number of rows."""
    fill_in(quiet(page).get_by_role("spinbutton", name="Rows in each"), str(rows))
    expect(page.get_by_text(f"makes one synthetic table of {rows} rows")).to_be_visible()
    press(page, "Synthesize")
    return page


def shown_rows(page: Page) -> int:
    return len(downloaded(page, "Download CSV").read_text().splitlines()) - 1


def test_after_the_third_run_every_page_shows_the_third(visit: Visit) -> None:
    page = choose(press(patient(visit()), "Try an example"), "Example", EXAMPLE.title)
    press(page, "Use this example")
    expect(page.get_by_text(re.compile(f"^{re.escape(EXAMPLE.title)}: "))).to_be_visible()
    skip_ahead(page)
    make(page, 51)
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible()
    assert shown_rows(page) == 51
    for number, rows in ((2, 52), (3, 53)):
        make(page, rows)
        expect(page.get_by_role("combobox", name="Look at run")).to_have_value(re.compile(f"^{number}: "))
        assert shown_rows(page) == rows
        press(page, "Next: see how good it is")
        finished(page)
        expect(page.get_by_role("button", name=re.compile(f"^Remove {number}: "))).to_be_visible()
        go(page, "Synthesize")
    go(page, "Release")
    expect(page.get_by_role("combobox", name="Release under review")).to_have_value(re.compile("^3: "))

    # What Diagnostics has found is here. Candidates stand side by side, and the check is of the largest value that its
    # own evidence lists.
    quiet(page).locator("summary").filter(has_text="Compare the releases, check by check (3)").press("Enter")
    expect(page.get_by_text("Every check of every release")).to_have_count(0)  # spoken, not printed
    candidates = quiet(page).locator("details").filter(has_text="Compare the releases, check by check (3)").last
    for number in (1, 2, 3):
        expect(candidates.get_by_text(re.compile(f"^{number}: ")).first).to_be_attached()
    quiet(page).locator("summary").filter(has_text="Evidence: quality").press("Enter")
    details = quiet(page).locator("details").filter(has_text="Evidence: quality").last.inner_text()
    # With two columns there is one pair, and nothing to list for it.
    found = re.search(r"Asked: Worst column.*?Measured: ([\d.]+).*?(?=Asked: |\Z)", details, re.DOTALL)
    assert found, details
    listed = [float(value) for value in re.findall(r"^• .*: ([\d.]+) \(", found[0], re.MULTILINE)]
    assert len(listed) == 2
    assert float(found[1]) == max(listed)
    expect(page.get_by_text(re.compile(r"\de[+-]\d\d%"))).to_have_count(0)


def smokers() -> bytes:
    """Sex makes no difference to charges, smoking a large one; sex comes first."""
    rng = np.random.default_rng(8)
    smokes = rng.random(600) < 0.3
    charges = np.clip(rng.normal(10 + 25 * smokes, 4), 0, 60)
    sex = rng.choice(["female", "male"], 600)
    lines = [f"{s},{'yes' if k else 'no'},{c:.1f}" for s, k, c in zip(sex, smokes, charges, strict=True)]
    return "\n".join(["sex,smoker,charges", *lines]).encode()


def test_differences_between_groups_name_the_worst_pair_and_the_regression_follows_the_target(visit: Visit) -> None:
    page = press(patient(visit()), "Use my own table")
    use(quiet(page).get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    upload(quiet(page), "smokers.csv", smokers())
    expect(page.get_by_text("smokers.csv: 600 rows, 3 columns")).to_be_visible()
    press(page, "Next: choose a mechanism")
    press(page, "Choose Smoothed histogram")
    slider = quiet(page).get_by_role("slider").first
    for _ in range(12):
        slider.press("ArrowLeft")
        quiet(page)
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    kind = DIAGNOSTICS["mann_whitney"]
    said = page.get_by_text(re.compile(f"^{kind.scale.name} .*charges by smoker", re.IGNORECASE)).first
    expect(said).to_be_visible()
    expect(page.get_by_role("combobox", name="Group")).to_have_value("smoker")
    expect(page.get_by_role("combobox", name="Value")).to_have_value("charges")
    expect(page.get_by_text("Not for comparing groups")).to_be_visible()
    choose(page, "Target of a model", "charges")
    expect(page.get_by_text(re.compile("^• .*charges"))).not_to_have_count(0)
    expect(quiet(page).get_by_role("combobox", name="Outcome")).to_have_value("charges")
