"""A table on this server in a real browser: chosen by name, declared, paid for, made, compared and taken away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.waiting.browser import MINUTE, downloaded, go, open_estimates, press, quiet, spent, state_the_rest, use
from tests.waiting.server import serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]

N = 400_000


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The app with a list of one table."""
    rng = np.random.default_rng(0)
    smokes = rng.random(N) < 0.3
    age = np.clip(rng.normal(45 + 8 * smokes, 12, N), 0, 99).astype(int)
    pd.DataFrame({"age": age, "smokes": smokes}).to_parquet(tmp_path / "visits.parquet")
    listing = f"[[source]]\nname = '<b>Visits</b>'\nengine = 'duckdb'\nlocation = '{tmp_path}/visits.parquet'\n"
    (tmp_path / "list.toml").write_text(listing)
    command = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.port"]
    with serving(command, tmp_path, more={"DPSYNTH_SOURCES": str(tmp_path / "list.toml")}) as (address, _):
        page = browser.new_page()
        page.goto(address)
        yield page
        page.close()


def test_from_the_list_to_the_synthetic_rows(page: Page) -> None:
    press(page, "Use my own table")
    expect(quiet(page).get_by_role("radio", name="A table on this server")).to_have_count(0)
    use(page.get_by_role("radio", name="Release: private data"), "Space")
    expect(page.get_by_text("Release mode", exact=True)).to_be_visible()
    use(quiet(page).get_by_role("radio", name="A table on this server"), "Space")
    press(page, "Use this table")
    expect(page.get_by_text(f"<b>Visits</b>: {N:,} rows, 2 columns")).to_be_visible(timeout=2 * MINUTE)
    expect(page.get_by_text(f"computed on 200,000 of {N:,} rows")).to_be_visible()
    press(page, "Open the account")
    spent(page, "0 of 1")
    press(page, "All of these are public knowledge")
    expect(quiet(page).get_by_text("Guarantee: possible").first).to_be_visible()
    open_estimates(page)
    state_the_rest(page)
    press(page, "Estimate")
    press(page, "Spend it")
    expect(page.get_by_text(re.compile(r"age: the range is estimated as \d+ to 100\."))).to_be_visible(timeout=MINUTE)
    spent(page, "0.1 of 1")
    press(page, "Next: choose a mechanism")
    press(page, "Choose Thresholded grid")
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    press(page, "Spend it and run")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=3 * MINUTE)
    spent(page, "0.6 of 1")
    table = pd.read_csv(downloaded(page, "Download CSV"))
    assert list(table.columns) == ["age", "smokes"]
    assert len(table) == N
    go(page, "Diagnostics")
    expect(page.get_by_text(f"computed on 200,000 of {N:,} rows").first).to_be_visible()
    use(quiet(page).get_by_role("button", name="with the original"))
    expect(page.get_by_role("heading", name="Pairs of columns")).to_be_visible(timeout=3 * MINUTE)
    use(quiet(page).locator("summary").filter(has_text="How is this computed?").first)
    expect(page.get_by_text(f"Shares of values are computed on all {N:,} rows")).to_be_visible()
