"""Every page as people see it: light and dark, on screens of several widths and at 150% zoom, to be looked at.

python -m docs.pictures.every_screen FOLDER [--example KEY] [--only Data,Release]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.page_waits import CHROMIUM, follow, quiet, serving
from docs.pictures.make import PATIENCE, begin, complete, made, press
from dpsynth_core.table.examples import EXAMPLES, FIRST
from pages.shared.layout import STAGES
from pages.shared.tradeoffs.view import SECTIONS

WIDTHS = {"1400": 1400, "1024": 1024, "390": 390, "zoom150": 933}
"""A window of 1400 pixels at 150% zoom lays a page out as one of 933."""
SCHEMES = ("light", "dark")
HEIGHT = 900
TALLEST = 12_000


def take(page: Page, folder: Path, name: str) -> None:
    """The page from top to bottom, in every width and scheme."""
    for width, pixels in {**WIDTHS, "": WIDTHS["1400"]}.items():
        page.set_viewport_size({"width": pixels, "height": HEIGHT})
        for scheme in SCHEMES if width else ("light",):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            quiet(page).reload()  # as somebody comes who has this screen; the address has the session once it is quiet
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            if width:
                shoot(page, pixels, folder / f"{name}-{width}-{scheme}.png")


def shoot(page: Page, pixels: int, path: Path) -> None:
    """One picture, as tall as the page."""
    quiet(page).wait_for_timeout(1_000)  # charts find their size
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": pixels, "height": min(height, TALLEST)})
    quiet(page).wait_for_timeout(1_000)
    page.screenshot(path=path)
    page.set_viewport_size({"width": pixels, "height": HEIGHT})
    print(path.name, height, flush=True)


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
    chosen = parser.parse_args()
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
            take(page, chosen.folder, "Home")
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
                take(page, chosen.folder, stage.title)
                continue
            for section, label in SECTIONS.items():
                quiet(page).get_by_role("radio", name=label, exact=True).press("Space")
                if section != "lessons":
                    expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible()
                expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
                take(page, chosen.folder, f"{stage.title}-{section}")
        browser.close()


if __name__ == "__main__":
    main()
