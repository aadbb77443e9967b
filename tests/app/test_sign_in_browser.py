"""Four people in four browsers: an analyst submits, may not approve it, a reviewer approves, a reader downloads."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.review.submission import approved_bundles
from tests.waiting.browser import (
    MINUTE,
    PATIENCE,
    csv_of,
    fill_in,
    go,
    press,
    quiet,
    release_with,
    use,
)
from tests.waiting.server import ROOT
from tests.waiting.sign_in import provider, serving_with_sign_in, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Enter = Callable[[str], Page]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "office"
    folder.mkdir()
    return folder


@pytest.fixture
def enter(place: Path, new_context: Callable[[], BrowserContext]) -> Iterator[Enter]:
    """Signs somebody in, each in a browser of their own."""
    expect.set_options(timeout=PATIENCE * 1000)
    pages: list[Page] = []
    with provider() as issuer, serving_with_sign_in(issuer, place) as url:

        def enter(subject: str) -> Page:
            page = new_context().new_page()
            page.set_default_timeout(PATIENCE * 1000)
            pages.append(page)
            return sign_in(page, url, subject)

        yield enter
        for page in pages:
            expect(page.get_by_text("Traceback")).to_have_count(0)


def choose(page: Page, name: str) -> None:
    quiet(page).get_by_role("radio", name=name, exact=True).press("Space")
    quiet(page)


def test_two_people_for_every_release(enter: Enter, place: Path) -> None:
    table = csv_of("age", "weight")

    steward = release_with(enter("sue"), table)
    press(steward, "All of these are public knowledge")
    press(steward, "Open the account")
    press(steward, "Put these facts on record")
    expect(steward.get_by_text("declared by Sue Steward")).to_be_visible()

    analyst = release_with(enter("ana"), table)
    expect(analyst.get_by_text("These are the facts above.")).to_be_visible()
    press(analyst, "Next: choose a mechanism")
    press(analyst, "Choose Thresholded grid")
    press(analyst, "Next: synthesize")
    press(analyst, "Synthesize")
    press(analyst, "Spend it and run")
    expect(analyst.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=3 * MINUTE)
    go(analyst, "Release")
    quiet(analyst).get_by_role("switch", name="Review on public facts and synthetic rows only").or_(
        analyst.get_by_role("checkbox", name="Review on public facts and synthetic rows only")
    ).first.press("Space")
    fill_in(analyst.get_by_role("textbox", name="Message to the reviewers"), "Wanted by Friday")
    press(analyst, "Submit for review")
    expect(analyst.get_by_text("Submission 1 by Ana Analyst: open")).to_be_visible()

    choose(analyst, "Submissions")
    expect(analyst.get_by_text("somebody else must approve it")).to_be_visible()
    expect(analyst.get_by_role("radio", name="Approve", exact=True)).to_have_count(0)

    reader = enter("rea")
    expect(reader.get_by_test_id("stSidebar").get_by_role("link", name="Data")).to_have_count(0)
    go(reader, "Release")
    expect(reader.get_by_text("Nothing is approved at the moment.")).to_be_visible()
    expect(reader.get_by_text("Submissions")).to_have_count(0)

    reviewer = enter("rob")
    go(reviewer, "Release")
    expect(reviewer.get_by_text("Wanted by Friday")).to_be_visible()
    choose(reviewer, "Approve")
    press(reviewer, "Record the decision")
    expect(reviewer.get_by_text("Decisions so far")).to_be_visible()

    reader.reload()
    expect(reader.get_by_text("The two-person rule was in force")).to_be_visible()
    with reader.expect_download() as download:
        use(quiet(reader).get_by_role("link", name="Download approved_"))
    file = Path(download.value.path())
    assert "synthetic.csv" in zipfile.ZipFile(file).namelist()

    settings = Settings.from_environment({"DPSYNTH_HOME": str(place)})
    (approved,) = approved_bundles(installed_ledger(settings))
    assert file.read_bytes() == settings.release_store.get(approved.decision.bundle)
    assert approved.decision.two_people
    assert (approved.decision.reviewer, approved.decision.by.subject.split()[-1]) == ("Rob Reviewer", "rob")


def test_strangers_and_expired_tokens_see_nothing(place: Path, new_context: Callable[[], BrowserContext]) -> None:
    expect.set_options(timeout=PATIENCE * 1000)
    with provider(seconds=25) as issuer, serving_with_sign_in(issuer, place) as url:
        stranger = sign_in(new_context().new_page(), url, "eve")
        expect(stranger.get_by_text("Your roles: none.")).to_be_visible()
        expect(stranger.get_by_role("link", name="Release")).to_have_count(0)

        page = sign_in(new_context().new_page(), url, "sue")
        expect(page.get_by_role("button", name="Try an example")).to_be_visible()
        page.wait_for_timeout(26_000)
        page.get_by_test_id("stSidebar").get_by_role("link", name="Data", exact=True).press("Enter")
        expect(page.get_by_text("Your sign-in has expired.")).to_be_visible()
        expect(page.get_by_text("Which table?")).to_have_count(0)
        for path in ("", *(file.stem.split("_", 1)[1] for file in sorted((ROOT / "pages").glob("[0-9]*.py")))):
            page.goto(f"{url}/{path}")
            expect(page.get_by_text("Your sign-in has expired.")).to_be_visible()
            expect(page.get_by_test_id("stSidebar").get_by_role("link")).to_have_count(0)


def test_another_person_in_the_same_browser_finds_nothing_of_the_first(enter: Enter) -> None:
    page = enter("sue")
    press(page, "Try an example")
    expect(page.get_by_role("heading", name="The table")).to_be_visible()
    address = page.url
    press(page, "Sign out")
    page.get_by_role("button", name="End session").click()  # at the provider, which sends the browser back
    expect(quiet(page).get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    again = sign_in(page, address.split("/Data")[0], "ana")
    again.goto(address)
    expect(again.get_by_role("heading", name="Which table?")).to_be_visible()
    expect(again.get_by_role("heading", name="The table")).to_have_count(0)
