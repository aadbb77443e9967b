"""What people stumbled over when they tried the app, each walked again in a real browser.

Others are in ``test_verdicts_browser.py`` (one set of numbers, what a table is good for, the slider's focus) and in
``test_release_browser.py`` (the review).
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dpsynth_core.table.examples import EXAMPLES, FIRST
from dpsynth_core.table.schema import Schema
from tests.waiting.browser import (
    MINUTE,
    PATIENCE,
    csv_of,
    downloaded,
    fill_in,
    finished,
    go,
    open_estimates,
    press,
    quiet,
    release_with,
    select,
    skip_ahead,
    spent,
    state_the_rest,
    step,
    to_synthesize,
    upload,
    use,
)
from tests.waiting.server import serving

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]
LONG = 3 * MINUTE
CATEGORIES = 7
"""Place of the editor's column of labels."""


def whole(page: Page) -> None:
    """The page is there: it has a heading and a way on, and the browser has not given up on it."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("Bad delta path")).to_have_count(0)


def pay(page: Page) -> Page:
    """Make a release from a private table whose account is open."""
    to_synthesize(page)
    press(page, "Synthesize")
    use(page.get_by_role("dialog").get_by_role("button", name="Spend it and run"))
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    return quiet(page)


# Plan before paying


@pytest.mark.slow
def test_a_plan_is_compared_applied_and_its_total_opened_with_enter(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    use(quiet(page).get_by_role("button", name="Compare plans"))
    cell = page.get_by_role("button", name=re.compile(r"ε 2: [\d.]+% . [\d.]+%, [01] of 1$"))
    expect(cell.first).to_be_visible(timeout=MINUTE)
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    if cancel.count():
        use(cancel)
    expect(page.get_by_text("close (columns at most 5%, pairs at most 10%)")).to_be_visible()
    use(quiet(page).get_by_role("button", name=re.compile(r"ε 2: ")).first)
    total = page.get_by_role("spinbutton", name="Total epsilon")
    expect(total).to_have_value("4.00")
    spends_nothing = page.get_by_test_id("stSidebar").get_by_text("This data set has no account yet")
    expect(spends_nothing).to_be_visible()
    total = quiet(page).get_by_role("spinbutton", name="Total epsilon")
    total.fill("3")
    total.press("Enter")
    spent(page, "0 of 3")
    go(page, "Mechanism")
    expect(page.get_by_text("Plan first: what would each ε give")).to_be_visible()
    expect(page.get_by_role("slider").first).to_have_attribute("aria-valuetext", "2")


@pytest.mark.slow
def test_the_first_example_has_a_button_for_the_same_with_few_rows(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    example = EXAMPLES[FIRST]
    expect(page.get_by_text(f"{example.title}: {example.default_rows:,} rows")).to_be_visible()
    press(page, f"The same with {example.few_rows} rows")
    expect(page.get_by_text(f"{example.title}: {example.few_rows} rows")).to_be_visible()


@pytest.mark.slow
def test_the_first_example_succeeds_and_with_few_rows_it_does_not(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    skip_ahead(page)
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    expect(page.get_by_text("Far apart", exact=True)).to_have_count(0)
    press(page, f"The same with {EXAMPLES[FIRST].few_rows} rows")
    press(page, "Go on")
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    expect(page.get_by_text("Far apart").first).to_be_visible()
    press(page, "Next: what would another epsilon give?")
    expect(page.get_by_text("More epsilon: less privacy, better data.")).to_be_visible()


@pytest.mark.slow
def test_a_hopeless_estimate_is_not_offered_and_says_what_it_would_take(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    press(page, "Open the account")
    spent(page, "0 of 1")
    open_estimates(page)
    state_the_rest(page)
    fill_in(page.get_by_label("Epsilon", exact=True), "0.1")
    expect(page.get_by_text("This would ruin the column")).to_be_visible()
    expect(page.get_by_text("Spend at least ε = 5")).to_be_visible()
    expect(page.get_by_role("button", name="Estimate", exact=True)).to_be_disabled()
    spent(page, "0 of 1")


# Nothing that was paid for is lost


@pytest.mark.slow
def test_a_paid_release_comes_back_in_another_browser_and_after_the_server_was_killed(
    new_context: Callable[[], BrowserContext], tmp_path: Path
) -> None:
    expect.set_options(timeout=PATIENCE * 1000)
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.port"]
    content = csv_of("age", "weight")

    def visitor(url: str) -> Page:
        page = new_context().new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(url)
        return page

    with serving(command, tmp_path) as (url, pid):
        page = release_with(visitor(url), content)
        press(page, "All of these are public knowledge")
        press(page, "Open the account")
        spent(page, "0 of 1")
        pay(page)
        go(page, "Data")
        use(quiet(page).get_by_role("radio", name="Teaching: public or simulated data"), "Space")
        expect(page.get_by_role("dialog").get_by_text("stored beside the ledger")).to_be_visible()
        press(page, "Stay here")
        other = release_with(visitor(url), content)
        spent(other, "0.5 of 1")
        go(other, "Synthesize")
        expect(other.get_by_role("heading", name="The synthetic table")).to_be_visible()
        os.kill(pid, signal.SIGKILL)
    with serving(command, tmp_path) as (url, _):
        again = release_with(visitor(url), content)
        spent(again, "0.5 of 1")
        go(again, "Synthesize")
        expect(again.get_by_role("heading", name="The synthetic table")).to_be_visible()
        expect(again.get_by_role("link", name="Download CSV")).to_be_visible()


@pytest.mark.slow
def test_next_pressed_while_work_is_shown_leads_on_and_not_to_a_blank_page(visitors: Visit) -> None:
    page = visitors()
    press(page, "Try an example")
    step(page, steps=2)
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    for _ in range(3):
        go(page, "Mechanism")
        count = quiet(page).get_by_role("spinbutton", name="Steps")
        count.fill("100000")
        count.press("Enter")
        press(page, "Next: synthesize")
        press(page, "Synthesize")
        expect(page.get_by_text(re.compile(r"Step \d+ of"))).to_be_visible(timeout=LONG)
        page.get_by_role("button", name="Next: see how good it is").click()
        expect(page.get_by_role("heading", name="Diagnostics", level=1)).to_be_visible()
        whole(page)
        go(page, "Synthesize")
        expect(page.get_by_role("heading", name="Synthesize", level=1)).to_be_visible()
        quiet(page).get_by_role("button", name="Cancel", exact=True).click()
        expect(page.get_by_text("The run was cancelled.")).to_be_visible()


@pytest.mark.slow
def test_a_run_that_ends_while_another_page_is_open_is_what_that_page_shows(visitors: Visit) -> None:
    page = visitors()
    press(page, "Try an example")
    step(page, steps=2)
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    go(page, "Mechanism")
    fill_in(quiet(page).get_by_role("spinbutton", name="Steps"), "200")  # at least ten seconds
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    expect(page.get_by_text(re.compile(r"Step \d+ of"))).to_be_visible(timeout=LONG)
    expect(page.get_by_text("This is from an earlier run.")).to_be_visible()
    page.get_by_role("button", name="Next: see how good it is").click()
    expect(page.get_by_text("This page shows an earlier run; a newer one is being made.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Remove 2: "))).to_be_visible(timeout=LONG)
    expect(page.get_by_text("a newer one is being made")).to_have_count(0)


@pytest.mark.slow
def test_next_pressed_while_plans_are_compared_leads_on(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    for _ in range(3):
        use(quiet(page).locator("summary").filter(has_text="Plan first"))
        more = page.get_by_role("button", name=re.compile("Compare plans|Go on with the rest"))
        if more.count():
            use(more.first)
            expect(page.get_by_role("button", name="Cancel", exact=True).first).to_be_visible()
        page.get_by_role("button", name="Next: choose a mechanism").click()
        expect(page.get_by_role("heading", name="Mechanism", level=1)).to_be_visible()
        whole(page)
        go(page, "Data")
        expect(page.get_by_role("heading", name="Data", level=1)).to_be_visible()


@pytest.mark.slow
def test_a_reload_and_a_second_tab_show_the_persons_own_file(visit: Visit) -> None:
    page = press(visit(), "Use my own table")
    use(page.get_by_role("radio", name="Release: private data"), "Space")
    expect(page.get_by_text("Release mode", exact=True)).to_be_visible()
    upload(quiet(page), "mine.csv", csv_of("age", "weight"))
    expect(page.get_by_text("mine.csv: 60 rows, 2 columns")).to_be_visible()
    second = page.context.new_page()
    second.goto(page.url)
    page.reload()
    for each in (page, second):
        expect(each.get_by_text("mine.csv: 60 rows, 2 columns")).to_be_visible()
        expect(each.get_by_role("radio", name="My own file")).to_be_checked()
        expect(each.get_by_role("combobox", name="Example")).to_have_count(0)


@pytest.mark.slow
def test_a_reload_before_the_address_has_its_session_loses_nothing(visit: Visit) -> None:
    page = press(visit(), "Use my own table")
    use(page.get_by_role("radio", name="Release: private data"), "Space")
    expect(page.get_by_text("Release mode", exact=True)).to_be_visible()
    upload(quiet(page), "mine.csv", csv_of("age", "weight"))
    expect(page.get_by_text("mine.csv: 60 rows, 2 columns")).to_be_visible()
    page.goto(quiet(page).url.split("?")[0])  # the address as it is right after the page was changed
    expect(page.get_by_text("mine.csv: 60 rows, 2 columns")).to_be_visible()
    other = page.context.new_page()  # another tab beside it is another visit
    other.goto(page.url.split("?")[0])
    expect(other.get_by_role("combobox", name="Example")).to_be_visible()


@pytest.mark.slow
def test_a_delta_that_is_used_up_is_called_delta(visit: Visit) -> None:
    page = release_with(visit(), csv_of("a", "b", "c", "d"))
    fill_in(page.get_by_role("spinbutton", name="Total epsilon"), "5")
    press(page, "Open the account")
    spent(page, "0 of 5")
    press(page, "All of these are public knowledge")
    press(page, "Next: choose a mechanism")
    use(quiet(page).get_by_role("switch", name=re.compile("Allow Private-PGM a tiny chance")), "Space")
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    use(page.get_by_role("dialog").get_by_role("button", name="Spend it and run"))
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    expect(quiet(page).get_by_text("The data set's δ is used up").first).to_be_visible()
    expect(page.get_by_text(re.compile("ε is used up"))).to_have_count(0)


@pytest.mark.slow
def test_numbers_among_words_are_offered_as_numbers(visit: Visit) -> None:
    rng = np.random.default_rng(5)
    results = [f"{value:.1f}" for value in rng.normal(12, 3, 190)] + ["?"] * 6 + ["<5"] * 4
    lines = ["age,result", *(f"{rng.integers(20, 80)},{result}" for result in results)]
    page = press(visit(), "Use my own table")
    use(page.get_by_role("radio", name="Release: private data"), "Space")
    expect(page.get_by_text("Release mode", exact=True)).to_be_visible()
    upload(quiet(page), "mine.csv", "\n".join(lines).encode())
    expect(page.get_by_text(re.compile("^• result: "))).to_be_visible()
    editor = quiet(page).get_by_test_id("stDataFrame").last
    expect(editor.get_by_test_id("glide-cell-3-1")).to_have_text(re.compile("continuous|integer"))
    # What voids the guarantee is one sentence with a list, however many columns it is about.
    void = page.get_by_text("The bounds or categories of 2 columns were read from the data")
    expect(void).to_have_count(1)
    expect(void).to_contain_text("'age', 'result'")


@pytest.mark.slow
def test_pasted_labels_are_several_and_one_label_in_two_spellings_is_one(visit: Visit) -> None:
    rng = np.random.default_rng(3)
    grades = rng.choice(["3", "3.0", "4", "none"], 200)
    lines = ["grade,age", *(f"{grade},{age}" for grade, age in zip(grades, rng.integers(20, 80, 200), strict=True))]
    page = press(visit(), "Use my own table")
    use(quiet(page).get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    upload(quiet(page), "grades.csv", "\n".join(lines).encode())
    expect(page.get_by_text("grades.csv: 200 rows, 2 columns")).to_be_visible()

    def labels() -> tuple[object, ...]:
        return Schema.from_json(downloaded(page, "Save schema").read_bytes())["grade"].labels

    assert labels() == ("3", "4", "none")
    select(page, row=0, column=CATEGORIES)
    page.keyboard.press("Enter")
    cell = page.get_by_test_id("multi-select-cell")
    expect(cell.get_by_text("none", exact=True)).to_be_visible()
    page.keyboard.type("0,1,2")
    page.keyboard.press("Enter")  # a label
    expect(cell.get_by_text("0,1,2", exact=True)).to_be_visible()
    page.keyboard.press("Enter")  # the cell
    expect(cell).to_have_count(0)
    page.wait_for_timeout(1000)  # what was typed sets out for the server now
    assert labels() == ("3", "4", "none", "0", "1", "2")


@pytest.mark.slow
def test_two_mechanisms_are_compared_on_the_same_tables(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    press(page, "Next: choose a mechanism")
    use(quiet(page).locator("summary").filter(has_text="Compare two side by side"))
    use(quiet(page).get_by_role("button", name=re.compile("Forecast the error of both")))
    expect(page.get_by_text("Both released the same simulated tables")).to_be_visible(timeout=LONG)


@pytest.mark.slow
def test_a_table_far_from_its_original_says_why_and_what_would_help(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name=EXAMPLES["wine"].title).click()
    press(page, "Use this example")
    expect(page.get_by_text("178 rows, 14 columns")).to_be_visible()
    skip_ahead(page)
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    expect(page.get_by_text(re.compile("would help most|None of these changes would help")).first).to_be_visible(
        timeout=LONG
    )


# For teachers


@pytest.mark.slow
def test_a_presentation_is_large_dark_on_light_and_keeps_what_was_shown(visit: Visit, context: BrowserContext) -> None:
    page = visit()
    page.emulate_media(color_scheme="dark")
    page.goto(f"{page.url.split('?')[0]}Tradeoffs?section=noise&table=mixture&epsilon=2")
    expect(page.get_by_text("A KD tree", exact=True)).to_be_visible()
    with context.expect_page() as opened:
        use(quiet(page).get_by_role("link", name="Present"))
    large = opened.value
    expect(large.get_by_role("link", name="Leave the presentation")).to_be_visible()
    expect(large.get_by_text("A KD tree", exact=True)).to_be_visible()
    expect(large.get_by_test_id("stSidebar").get_by_role("link")).to_have_count(0)
    expect(quiet(large).get_by_role("slider")).to_have_attribute("aria-valuetext", "2")
    expect(large.get_by_role("figure", name=re.compile("At epsilon 2 the tree cut"))).to_be_visible()
    assert "table=mixture" in large.url
    size = "parseFloat(getComputedStyle(document.documentElement).fontSize)"
    assert large.evaluate(size) == 1.5 * page.evaluate(size)
    ground, ink = (
        large.evaluate(f"getComputedStyle(document.querySelector('.stApp')).{what}.match(/\\d+/g).map(Number)")
        for what in ("backgroundColor", "color")
    )
    assert min(ground[:3]) > 200, "light, although the browser prefers dark"
    assert max(ink[:3]) < 60


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_in_figures_are_as_legible_as_the_page(visit: Visit, scheme: Literal["light", "dark"]) -> None:
    page = visit()
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{page.url.split('?')[0]}Tradeoffs?section=noise&table=mixture")
    title = page.locator(".xtitle").first
    expect(title).to_be_visible(timeout=LONG)
    for now in (scheme, "dark" if scheme == "light" else "light"):  # at sunset, say, with nothing drawn anew
        page.emulate_media(color_scheme=now)
        expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", now)
        ink = page.evaluate("getComputedStyle(document.querySelector('.stApp')).color")
        expect(title).to_have_css("fill", ink)


@pytest.mark.slow
@pytest.mark.parametrize("section", ["lesson=5&answer=3&epsilon=0.1", "section=sweep&table=two_groups_signal"])
def test_titles_in_figures_do_not_overlap_at_150_percent(visit: Visit, section: str) -> None:
    page = visit()
    page.set_viewport_size({"width": 933, "height": 700})
    page.goto(f"{page.url.split('?')[0]}Tradeoffs?{section}")
    expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible(timeout=LONG)
    quiet(page).wait_for_timeout(1000)
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
            const boxes = [...plot.querySelectorAll('.annotation-text, .gtitle, .xtitle, .ytitle')]
                .map(text => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
            const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
                && a.top < b.bottom - 1 && b.top < a.bottom - 1;
            return boxes.flatMap(([name, a], i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b))
                .map(([other]) => `${name} / ${other}`));
        })"""
    )
    assert not overlaps
