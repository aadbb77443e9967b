"""A walk through the app in a real browser. Nothing here waits for time to pass, only for things to appear."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from dpsynth_core.table.examples import EXAMPLES, FIRST
from dpsynth_core.table.schema import Schema
from tests.waiting.browser import (
    csv_of,
    downloaded,
    fill_in,
    go,
    open_estimates,
    press,
    quiet,
    release_with,
    spent,
    state_the_rest,
    upload,
    use,
    write,
)

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]
FROM = 4
"""Place of the editor's column of lower bounds."""
HOSTILE = ["<img src=x onerror=alert(1)>", "**bold**", "$x$", ":red[x]", "[link](http://example.org)"]


def teach_with(page: Page, content: bytes, name: str = "mine.csv") -> Page:
    press(page, "Use my own table")
    use(page.get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    expect(page.get_by_test_id("stFileUploaderDropzoneInput")).to_be_enabled()
    return upload(page, name, content)


def guarantee(page: Page, status: str) -> None:
    """Both badges, in the heading and beside the reasons."""
    expect(page.get_by_text(f"Guarantee: {status}")).to_have_count(2)


def caveat(page: Page, column: str) -> Locator:
    """The one sentence about every column whose facts were read from the data, if it names this one."""
    return page.get_by_text(re.compile(f"were read from the data, not declared public:.*{re.escape(repr(column))}"))


def test_the_first_page_appears_and_asks_no_other_machine_for_anything(
    visit: Visit, app_url: str, requests_made: list[str]
) -> None:
    page = quiet(visit())
    expect(page.get_by_role("heading").first).to_be_visible()
    assert f"{app_url}/" in requests_made
    assert any(url.startswith("ws://localhost:") for url in requests_made)


def test_an_example_leads_from_home_to_a_possible_guarantee(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    expect(page.get_by_role("heading", name="Data", level=1)).to_be_visible()
    guarantee(page, "possible")
    press(page, "None is public")
    guarantee(page, "void")
    for column in EXAMPLES[FIRST].schema.names:
        expect(caveat(page, column)).to_be_visible()
    press(page, "All of these are public knowledge")
    guarantee(page, "possible")
    expect(caveat(page, "sex")).to_have_count(0)
    assert saved_schema(page).names == EXAMPLES[FIRST].schema.names
    assert saved_schema(page).is_public
    expect(page.get_by_role("heading", name="Pictures")).to_be_visible()


def test_a_picture_renamed_to_a_table_is_refused_in_words(visit: Visit) -> None:
    page = teach_with(visit(), b"\x89PNG\r\n\x1a\n" + bytes(200), name="data.csv")
    expect(page.get_by_text("This file cannot be used.")).to_be_visible()
    expect(page.get_by_text("This file is a PNG image, not a table")).to_be_visible()
    expect(page.get_by_role("heading", name="The table")).to_have_count(0)


@pytest.mark.slow
def test_typing_into_the_editor_changes_the_verdict_and_survives_leaving(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    guarantee(page, "void")
    expect(caveat(page, "age")).to_be_visible()
    write(page, row=0, column=FROM, text="1,5")
    expect(page.get_by_text("Column 'age': From is '1,5'; allowed: a number such as 1234.5.")).to_be_visible()
    expect(page.get_by_text("Guarantee: nothing declared yet")).to_be_visible()
    write(page, row=0, column=FROM, text="5")
    guarantee(page, "void")
    expect(page.get_by_text("Please correct this:")).to_have_count(0)

    cells = page.get_by_test_id("stMetricValue").nth(1)
    before = cells.inner_text()
    go(page, "Home")
    expect(page.get_by_role("heading", name="Where you are")).to_be_visible()
    expect(page.get_by_text("private.csv: 60 rows, 2 columns")).to_be_visible()
    go(page, "Data")
    expect(cells).to_have_text(before)
    assert saved_schema(page)["age"].lower == 5


def saved_schema(page: Page) -> Schema:
    return Schema.from_json(downloaded(page, "Save schema").read_bytes())


@pytest.mark.slow
def test_every_estimate_is_announced_and_paid_for_once(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    expect(page.get_by_text("Total budget of this data set")).to_be_visible()
    fill_in(page.get_by_role("spinbutton", name="Total epsilon"), "10")
    press(page, "Open the account")
    spent(page, "0 of 10")
    expect(page.get_by_role("heading", name="Pictures")).to_have_count(0)
    open_estimates(page)
    epsilon = page.get_by_label("Epsilon", exact=True)
    epsilon.fill("7.5")
    epsilon.press("Enter")
    state_the_rest(page)

    press(page, "Estimate")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Estimating column 'age' costs ε 7.5, δ 0.")).to_be_visible()
    expect(dialog.get_by_text("Left now: ε 10, δ 1e-6.")).to_be_visible()
    expect(dialog.get_by_text("Left afterwards: ε 2.5, δ 1e-6.")).to_be_visible()
    use(dialog.get_by_role("button", name="Cancel"))
    expect(dialog).to_have_count(0)
    spent(quiet(page), "0 of 10")

    press(page, "Estimate")
    use(dialog.get_by_role("button", name="Spend it"))
    page.keyboard.press("Enter")
    spent(page, "7.5 of 10")
    go(page, "Home")
    expect(page.get_by_role("heading", name="Where you are")).to_be_visible()
    spent(page, "7.5 of 10")
    go(page, "Data")
    expect(page.get_by_text("ε 7.5 of 10 spent, δ 0 of 1e-6.")).to_be_visible()
    age = saved_schema(page)["age"]
    assert (age.public, age.origin) == (True, "estimated privately")

    open_estimates(page)
    expect(page.get_by_label("Epsilon", exact=True)).to_have_value("7.50")
    state_the_rest(page)
    press(page, "Estimate")
    expect(page.get_by_role("dialog", name="Not enough of the budget is left")).to_be_visible()
    expect(dialog.get_by_text("That is more than is left: there is not enough")).to_be_visible()
    expect(dialog.get_by_role("button", name="Spend it")).to_be_disabled()


@pytest.mark.slow
def test_names_from_a_file_stay_names(visit: Visit) -> None:
    page = visit()
    page.on("dialog", lambda dialog: pytest.fail(f"A name ran as code: {dialog.message}"))
    teach_with(page, csv_of(*HOSTILE), name="[click](http://example.org) **me**.csv")
    guarantee(page, "void")
    expect(page.get_by_text("[click](http://example.org) **me**.csv: 60 rows, 5 columns")).to_be_visible()
    for name in HOSTILE:
        expect(caveat(page, name)).to_be_visible()
        expect(page.get_by_test_id("stMultiSelect").get_by_text(name, exact=True)).to_be_visible()
    expect(page.locator("img[src=x]")).to_have_count(0)
    expect(page.locator("a[href*='example.org']")).to_have_count(0)
    expect(page.locator("strong").filter(has_text=re.compile("^(bold|me)$"))).to_have_count(0)
    expect(page.locator(".katex")).to_have_count(0)
