"""The Trade-offs page in a real browser: a lesson from question to link, every section by the rules for all pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from pages.shared.layout import STAGES
from pages.shared.tradeoffs.lessons import UNITS
from pages.shared.tradeoffs.view import SECTIONS
from tests.waiting.browser import MINUTE, csv_of, go, press, quiet, release_with, spent, use
from tests.waiting.screens import check_accessible, check_charts, check_twins, drawn, unfold

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]
STAGE = next(stage for stage in STAGES if stage.title == "Trade-offs")


def section(page: Page, key: str) -> Page:
    """Go to a section and wait for its pictures, which may be the work of a while."""
    choice = quiet(page).get_by_role("radio", name=SECTIONS[key])
    use(choice, "Space")
    expect(choice).to_be_checked()
    if key != "lessons":
        expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible(timeout=2 * MINUTE)
    return drawn(quiet(page))


def picture(page: Page) -> Locator:
    return page.get_by_test_id("stPlotlyChart").first


@pytest.mark.slow
def test_a_lesson_is_asked_revealed_and_restored_by_its_link(visit: Visit, new_context: Any) -> None:
    page = visit()
    go(page, "Trade-offs")
    unit = UNITS[0]
    reveal = page.get_by_role("button", name="Reveal the answer")
    expect(reveal).to_be_disabled()
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(0)
    use(quiet(page).get_by_role("radio", name=unit.options[unit.right]), "Space")
    expect(reveal).to_be_enabled()
    use(reveal)
    expect(page.get_by_text("That is right.")).to_be_visible()
    slider = quiet(page).get_by_role("slider")
    slider.press("ArrowRight")
    expect(page.get_by_text("At ε = 1.5, whoever accepts")).to_be_visible()
    shown = picture(drawn(quiet(page))).get_attribute("aria-label")
    press(page, "Share this lesson")
    link = page.get_by_test_id("stCode").inner_text().strip()

    context: BrowserContext = new_context()
    other = context.new_page()
    other.goto(link)
    expect(other.get_by_role("radio", name=unit.options[unit.right])).to_be_checked()
    expect(other.get_by_text("At ε = 1.5, whoever accepts")).to_be_visible()
    assert picture(drawn(quiet(other))).get_attribute("aria-label") == shown
    use(other.get_by_role("button", name="Next lesson"))
    expect(other.get_by_text(UNITS[1].question)).to_be_visible()
    other.reload()
    expect(other.get_by_text(UNITS[1].question)).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_section_is_accessible_and_every_picture_readable(visit: Visit, scheme: Any) -> None:
    page = visit()
    page.emulate_media(color_scheme=scheme)
    go(page, "Trade-offs")
    compared = 0
    for key in SECTIONS:
        section(page, key)
        unfold(page)
        check_accessible(drawn(page), STAGE)
        compared += check_charts(page, STAGE)
        check_twins(page, STAGE)
    assert compared >= 2


@pytest.mark.slow
def test_the_table_behind_a_mark_is_under_the_mouse_and_one_click_away(visit: Visit) -> None:
    page = visit()
    go(page, "Trade-offs")
    section(page, "sweep")
    # The last mechanism's first mark: neither is what is shown to begin with.
    mark = picture(page).locator(".scatterlayer .trace .points path.point").nth(14)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    expect(picture(page).locator(".hoverlayer")).to_contain_text("First synthetic rows:")
    expect(picture(page).locator(".hoverlayer")).to_contain_text("Smoothed histogram, ε 0.01")
    page.mouse.click(x, y)
    expect(page.get_by_role("combobox", name="Mechanism", exact=True)).to_have_value("Smoothed histogram")
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", "0.01")
    # By keyboard: the next table; and all of them in turn.
    quiet(page)
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "0.03")
    press(page, "Play, from little to much epsilon")
    expect(slider).to_have_attribute("aria-valuetext", "10")
    expect(page.get_by_role("button", name="Play, from little to much epsilon")).to_be_visible()


@pytest.mark.slow
def test_a_sweep_names_its_stage_is_cancelled_and_its_section_survives_a_reload(visit: Visit) -> None:
    page = visit()
    go(page, "Trade-offs")
    section(page, "sweep")
    unfold(page)
    page.get_by_role("spinbutton", name="Repetitions").fill("20")
    page.get_by_role("spinbutton", name="Repetitions").press("Enter")
    use(quiet(page).get_by_role("button", name="Run: 420 synthetic tables"))
    expect(page.get_by_text("of 420: ")).to_be_visible(timeout=MINUTE)
    use(page.get_by_role("button", name="Cancel"))
    expect(page.get_by_text("The simulation was cancelled.")).to_be_visible()
    expect(page.get_by_text("Nothing was charged.")).to_be_visible()
    section(page, "noise")
    page.reload()
    expect(page.get_by_role("radio", name=SECTIONS["noise"])).to_be_checked()
    expect(picture(page)).to_be_visible()


@pytest.mark.slow
def test_a_private_table_is_not_offered_and_nothing_is_spent(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    press(page, "Open the account")
    spent(page, "0 of 1")
    go(page, "Trade-offs")
    section(page, "noise")
    page.get_by_role("combobox", name="Table").click()
    expect(page.get_by_role("option", name="Two correlated variables, 1,000 rows")).to_be_visible()
    expect(page.get_by_role("option", name="The table on the Data page")).to_have_count(0)
    spent(page, "0 of 1")
