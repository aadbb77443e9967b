"""Every page as people see it: light and dark, on screens of several widths and at 150% zoom, to be looked at.

python -m docs.pictures.every_screen FOLDER [--example KEY] [--only Data,Release] [--screens 1400-light,390-dark]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.page_waits import CHROMIUM, follow, quiet, serving
from docs.pictures.make import PATIENCE, begin, complete, made, press
from dpsynth_core.table.examples import EXAMPLES, FIRST
from pages.shared.layout import STAGES
from pages.shared.tradeoffs.view import SECTIONS

WIDTHS = {"1400": 1400, "1024": 1024, "390": 390, "zoom150": 933}
"""A window of 1400 pixels at 150% zoom lays a page out as one of 933."""
SCREENS = [f"{width}-{scheme}" for width in WIDTHS for scheme in ("light", "dark")]
HEIGHT = 900
TALLEST = 12_000


def take(page: Page, folder: Path, name: str, screens: list[str]) -> None:
    """The page from top to bottom, on these screens."""
    for screen in screens:
        show_on(page, screen)
        shoot(page, WIDTHS[screen.split("-")[0]], folder / f"{name}-{screen}.png")
    show_on(page, SCREENS[0])


def show_on(page: Page, screen: str) -> None:
    """The page as somebody sees it who comes with this screen."""
    width, scheme = screen.split("-")
    page.set_viewport_size({"width": WIDTHS[width], "height": HEIGHT})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    quiet(page).reload()  # the address has the session once it is quiet
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def shoot(page: Page, pixels: int, path: Path) -> None:
    """One picture, as tall as the page."""
    settle(page)
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": pixels, "height": min(height, TALLEST)})
    settle(page)
    page.screenshot(path=path)
    page.set_viewport_size({"width": pixels, "height": HEIGHT})
    print(path.name, height, flush=True)


def settle(page: Page) -> None:
    """Until everything has taken the place that was kept for it, and charts have found their size."""
    expect(quiet(page).get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_timeout(1_000)


def choose(page: Page, example: str) -> None:
    """Another example than the first one."""
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name=EXAMPLES[example].title).click()
    press(page, "Use this example")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--example", choices=EXAMPLES, default=FIRST)
    parser.add_argument("--only", default="", help="titles of pages, separated by commas")
    parser.add_argument("--screens", default="", help=f"which of {', '.join(SCREENS)}, separated by commas")
    chosen = parser.parse_args()
    screens = [screen for screen in chosen.screens.split(",") if screen] or SCREENS
    chosen.folder.mkdir(parents=True, exist_ok=True)
    only = [title for title in chosen.only.split(",") if title]
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTHS["1400"], "height": HEIGHT})
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_have_text("DPSynth")
        if not only or "Home" in only:
            take(page, chosen.folder, "Home", screens)
        begin(page)
        if chosen.example != FIRST:
            choose(page, chosen.example)
        made(page)
        for stage in STAGES:
            if only and stage.title not in only:
                continue
            follow(page, stage.title)
            complete(page, stage)
            if stage.title != "Trade-offs":
                take(page, chosen.folder, stage.title, screens)
                continue
            for section, label in SECTIONS.items():
                choice = quiet(page).get_by_role("radio", name=label, exact=True)
                choice.press("Space")
                expect(choice).to_be_checked()
                # The address leads here once the page was drawn anew.
                page.wait_for_url(re.compile("lesson=" if section == "lessons" else f"section={section}"))
                # First: the chart of the section before is there for a moment.
                expect(quiet(page).get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
                if section != "lessons":
                    expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible()
                take(page, chosen.folder, f"{stage.title}-{section}", screens)
        browser.close()


if __name__ == "__main__":
    main()
