"""Pictures of every page for the README: ``python -m docs.pictures.make``. Needs Chromium and some minutes."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.page_waits import CHROMIUM, follow, quiet, serving
from dpsynth_core.diagnostics import DIAGNOSTICS
from pages.shared.layout import STAGES, Stage

HERE = Path(__file__).parent
SIZE = {"width": 1200, "height": 800}
SCALE = 0.75
PATIENCE = 5 * 60_000


def press(page: Page, name: str) -> None:
    """Press a button by its name, once the page has settled."""
    quiet(page).get_by_role("button", name=name, exact=True).click()


def begin(page: Page) -> None:
    """From Home to the first example."""
    press(page, "Try an example")
    expect(page.get_by_role("heading", name="The table", exact=True)).to_be_visible()


def made(page: Page) -> None:
    """Make a synthetic table of the table at hand."""
    follow(page, "Synthesize")
    press(page, "Synthesize")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible()


def complete(page: Page, stage: Stage) -> None:
    """Wait until a page shows everything that it can show of the release at hand."""
    expect(page.get_by_role("heading", level=1)).to_have_text(stage.title)
    if stage.title == "Diagnostics":
        *_, last = DIAGNOSTICS.values()
        expect(page.get_by_role("heading", name=last.title)).to_be_visible()
    if stage.title == "Release":
        press(page, "Gather the evidence")
        expect(page.get_by_role("link", name="Download the review report")).to_be_visible()


def main() -> None:
    """Walk through the app with an example and keep what every page shows first."""
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE)  # type: ignore[arg-type]
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.goto(address)
        begin(page)
        made(page)
        for stage in STAGES:
            follow(page, stage.title)
            complete(page, stage)
            quiet(page).wait_for_timeout(2_000)  # charts move into place
            page.screenshot(path=HERE / f"{Path(stage.path).stem}.png")
        browser.close()


if __name__ == "__main__":
    main()
