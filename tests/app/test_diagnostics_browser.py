"""From an example to a finished Diagnostics page in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.diagnostics import DIAGNOSTICS
from tests.waiting.browser import MINUTE, csv_of, downloaded, finished, go, press, quiet, release_with, skip_ahead, use

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]


@pytest.mark.slow
def test_four_clicks_lead_from_home_to_finished_diagnostics(visit: Visit) -> None:
    page = visit()
    press(page, "Try an example")
    skip_ahead(page)
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    for kind in DIAGNOSTICS.values():
        expect(page.get_by_role("heading", name=kind.title)).to_be_visible()
    expect(page.get_by_text("a fresh sample: about").first).to_be_visible()
    expect(page.get_by_text("Worst pairs")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.slow
def test_two_releases_side_by_side_and_a_marked_download(visit: Visit) -> None:
    page = visit()
    press(page, "Try an example")
    skip_ahead(page)
    press(page, "Synthesize")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible()
    press(page, "Synthesize")
    expect(page.get_by_text("Look at run")).to_be_visible()
    go(page, "Diagnostics")
    finished(page)
    chosen = page.get_by_role("combobox", name="Releases to compare")
    chosen.click()
    page.get_by_role("option", name="1: KD tree").click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("1: KD tree, ε 1", exact=True).first).to_be_visible(timeout=MINUTE)
    finished(page)
    path = downloaded(page, "Table")
    assert path.read_text(encoding="utf-8").startswith("# For internal review")
    assert {"release", "item", "value", "verdict"} <= set(pd.read_csv(path, comment="#").columns)


@pytest.mark.slow
def test_in_release_mode_one_asks_before_the_rows_are_looked_at(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    press(page, "Open the account")
    expect(page.get_by_text("This data set has an account")).to_be_visible()
    press(page, "All of these are public knowledge")
    skip_ahead(page)
    press(page, "Synthesize")
    press(page, "Spend it and run")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible()
    go(page, "Diagnostics")
    expect(page.get_by_text("For internal review, not for release").first).to_be_visible()
    expect(page.get_by_role("heading", name="Marginal distributions")).to_have_count(0)
    use(quiet(page).get_by_role("button", name="Compare 1: KD tree"))
    finished(page)


@pytest.mark.slow
def test_what_a_low_p_value_is_worth_on_a_perturbed_histogram(visit: Visit) -> None:
    page = visit()
    go(page, "Data")
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name="Two groups that do not differ").click()
    press(page, "Use this example")
    press(page, "Next: choose a mechanism")
    press(page, "Choose Perturbed histogram")
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    expect(page.get_by_role("region", name="The Mann-Whitney test on both tables")).to_be_visible()
    expect(page.get_by_role("figure", name="Distributions of value in the two groups of group")).to_be_visible()

    press(page, "Work it out")
    expect(page.get_by_text("Of 100 analysts who test a difference that does not exist")).to_be_visible(timeout=MINUTE)
    expect(page.get_by_text("the calibrated one is")).to_be_visible()
    expect(page.get_by_text("A finer figure follows")).to_have_count(0, timeout=MINUTE)
    chart = page.get_by_role("figure", name="Analysts who report a difference that does not exist")
    expect(chart).to_be_visible(timeout=3 * MINUTE)  # drawn once it is known what would help

    use(quiet(page).locator("summary").filter(has_text="All columns at once"))
    expect(page.get_by_role("region", name="P-values of every column")).to_be_visible()
    use(quiet(page).locator("summary").filter(has_text="See a false discovery come from nothing"))
    press(page, "Draw once")
    expect(page.get_by_text("There is no difference between the groups (original: p")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Of 100 analysts who test a difference that does not exist")).to_be_visible(timeout=MINUTE)
