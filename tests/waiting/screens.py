"""What a screen must fulfil: accessible to everybody, and every chart readable by eye and as a table."""

from __future__ import annotations

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from dpsynth_core.charts.palette import ORIGINAL, SYNTHETIC
from pages.shared.layout import Stage
from tests.waiting.browser import quiet, use, wait_until

# What a screen shows of every chart on it: its spoken text, axis titles, the smallest letters, colours and patterns.
DRAWN = """() => [...document.querySelectorAll('[data-testid=stPlotlyChart]')].map(chart => ({
    alt: chart.getAttribute('aria-label') || '',
    x: [...chart.querySelectorAll('[class^=x][class$=title]')].map(title => title.textContent).join(''),
    y: [...chart.querySelectorAll('[class^=y][class$=title]')].map(title => title.textContent).join(''),
    listed: chart.querySelectorAll('.ytick').length,
    flow: chart.querySelectorAll('.sankey-node').length,
    small: [...chart.querySelectorAll('text')].filter(text => text.textContent.trim()
        && text.getBoundingClientRect().height && parseFloat(getComputedStyle(text).fontSize) < 12)
        .map(text => text.textContent),
    legend: Object.fromEntries([...chart.querySelectorAll('.legend .traces')].map(entry => {
        const mark = entry.querySelector('.legendundefined, .legendbar, path');
        const fill = mark ? getComputedStyle(mark).fill : '';
        const pattern = /url\\(["']?#(.*?)["']?\\)/.exec(fill);
        const ink = pattern ? [...document.getElementById(pattern[1]).querySelectorAll('*')].map(part =>
            [getComputedStyle(part).stroke, getComputedStyle(part).fill]).flat().join(' ') : fill;
        // Bars differ by their pattern, lines by their dashes, points by their shapes.
        const point = entry.querySelector('.legendpoints path'), line = entry.querySelector('.legendlines path');
        const dashed = Boolean(line) && getComputedStyle(line).strokeDasharray !== 'none';
        const drawn = [point, line].filter(Boolean).map(part =>
            getComputedStyle(part).stroke + ' ' + getComputedStyle(part).fill).join(' ');
        return [entry.textContent, {patterned: Boolean(pattern) || dashed, ink: ink + ' ' + drawn,
            shape: point ? point.getAttribute('d') : ''}];
    })),
}))"""


def unfold(page: Page) -> None:
    """Open everything that is folded away."""
    folded = quiet(page).locator("details:not([open]) > summary")
    for left in range(folded.count(), 0, -1):
        folded.first.press("Enter")
        expect(folded).to_have_count(left - 1)
    quiet(page)


def drawn(page: Page) -> Page:
    """The page once every chart has been drawn."""
    return wait_until(
        page,
        "() => [...document.querySelectorAll('[data-testid=stPlotlyChart]')]"
        ".every(chart => chart.querySelector('[class^=x][class$=title], .sankey'))",
    )


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


def check_accessible(page: Page, stage: Stage) -> None:
    found = Axe().run(quiet(page)).response["violations"]
    severe = [f"{f['id']}: {f['nodes'][0]['html'][:200]}" for f in found if f["impact"] in ("serious", "critical")]
    assert severe == [], stage.title


def check_charts(page: Page, stage: Stage) -> int:
    """Returns in how many charts original and synthetic stand beside each other."""
    compared = 0
    for chart in page.evaluate(DRAWN):
        assert len(chart["alt"]) > 20, (stage.title, chart)
        assert chart["x"] or chart["flow"], (stage.title, chart)
        assert chart["y"] or chart["flow"] or chart["listed"] or "divided" in chart["alt"], (stage.title, chart)
        assert chart["small"] == [], (stage.title, chart)
        legend = chart["legend"]
        if {"original", "synthetic"} <= set(legend):
            assert not legend["original"]["patterned"]
            shapes = [legend[table].get("shape") for table in ("original", "synthetic")]
            assert legend["synthetic"]["patterned"] or shapes[0] != shapes[1], (stage.title, chart["alt"])
            assert rgb(ORIGINAL) in legend["original"]["ink"]
            assert rgb(SYNTHETIC) in legend["synthetic"]["ink"]
            compared += 1
    return compared


def check_twins(page: Page, stage: Stage) -> None:
    """Every chart can be read as a table instead."""
    charts = page.get_by_test_id("stPlotlyChart")
    if not charts.count():
        return
    tables = page.get_by_test_id("stDataFrame").count()
    shown = charts.count()
    for twin in page.get_by_role("switch", name=re.compile("^Show as table")).all():
        use(twin, "Space")
        quiet(page)
    expect(charts, stage.title).to_have_count(0)
    expect(page.get_by_test_id("stDataFrame"), stage.title).to_have_count(tables + shown)
