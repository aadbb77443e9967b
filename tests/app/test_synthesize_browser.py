"""From an example to a synthetic table in a real browser: runs, cancel, reload, refusal, a killed worker."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.table.encoding import moved_cells
from dpsynth_core.table.examples import EXAMPLES, FIRST
from tests.waiting.browser import (
    MINUTE,
    PATIENCE,
    csv_of,
    downloaded,
    go,
    press,
    quiet,
    release_with,
    spent,
    step,
    step_for_release,
    to_synthesize,
    use,
)
from tests.waiting.jobs import alive, wait, workers_of

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]


def slow_run(page: Page) -> Page:
    """Twenty tables from a large example: long enough to be interrupted."""
    go(page, "Data")
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name="Ten clusters in the plane").click()
    rows = quiet(page).get_by_role("spinbutton", name="Rows to simulate")
    expect(rows).to_have_value("10000")  # this example's own number, so what is typed next stays
    rows.fill("1000000")
    rows.press("Enter")
    press(page, "Use this example")
    expect(page.get_by_text("1,000,000 rows, 2 columns")).to_be_visible()
    to_synthesize(page)
    tables = page.get_by_role("spinbutton", name="Synthetic tables")
    tables.fill("20")
    tables.press("Enter")
    expect(quiet(page).get_by_text("20 synthetic tables")).to_be_visible()
    press(page, "Synthesize")
    expect(page.get_by_text(re.compile(r"table \d+ of 20"))).to_be_visible()
    return page


def cancel(page: Page) -> None:
    use(page.get_by_role("button", name="Cancel", exact=True))
    expect(page.get_by_text("The run was cancelled.")).to_be_visible()


@pytest.mark.slow
def test_an_example_becomes_a_synthetic_table_that_matches_the_schema(visit: Visit) -> None:
    page = visit()
    press(page, "Try an example")
    to_synthesize(page)
    press(page, "Synthesize")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible()
    expect(page.get_by_text("Guarantee: proven")).to_be_visible()
    example = EXAMPLES[FIRST]
    for label, read in (("Download CSV", pd.read_csv), ("Download Parquet", pd.read_parquet)):
        table = read(downloaded(page, label))
        assert list(table.columns) == list(example.schema.names)
        assert len(table) == example.default_rows
        assert all(moved.total == 0 for moved in moved_cells(table, example.schema).values())


def test_cancel_ends_a_run_and_its_process_and_says_what_was_charged(
    visit: Visit, app_pid: int, record_property: Callable[[str, object], None]
) -> None:
    page = slow_run(visit())
    workers = workers_of(app_pid)  # one of them runs; another may be busy with a forecast
    began = time.monotonic()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("The run was cancelled.")).to_be_visible()
    told = time.monotonic() - began
    wait(lambda: not all(map(alive, workers)), seconds=PATIENCE)
    ended = time.monotonic() - began
    expect(page.get_by_text("Nothing was charged.")).to_be_visible()
    record_property("seconds", (told, ended))
    print(f"Cancel: told after {told:.2f} s, the process was gone after {ended:.2f} s")


@pytest.mark.slow
def test_a_reload_in_the_middle_of_a_run_finds_it_again_and_a_copied_address_does_not(visit: Visit) -> None:
    page = slow_run(visit())
    page.reload()
    expect(page.get_by_text("of 20)")).to_be_visible()
    stranger = page.context.browser.new_context().new_page()  # type: ignore[union-attr]
    stranger.goto(page.url)
    expect(stranger.get_by_text("This page needs a table")).to_be_visible()
    stranger.close()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("The run was cancelled.")).to_be_visible()


@pytest.mark.slow
def test_a_killed_worker_leaves_the_page_alive(visit: Visit, app_pid: int) -> None:
    page = slow_run(visit())
    for worker in workers_of(app_pid):  # one of them runs; the busiest may be at a forecast
        os.kill(worker, signal.SIGKILL)
    expect(page.get_by_text("The run failed.")).to_be_visible()
    expect(page.get_by_text("ended unexpectedly")).to_be_visible()
    expect(page.get_by_role("button", name="Synthesize", exact=True)).to_be_enabled()


@pytest.mark.slow
def test_a_killed_worker_that_had_drawn_noise_leaves_the_charge_in_the_ledger(
    visitors: Visit,
) -> None:
    page = visitors()
    step_for_release(page)
    stage = page.get_by_text(re.compile(r"Step \d+ of"))
    expect(stage).to_be_visible()
    worker = re.search(r"in process (\d+)", stage.inner_text())
    assert worker is not None
    os.kill(int(worker[1]), signal.SIGKILL)
    expect(page.get_by_text("The run failed.")).to_be_visible()
    expect(page.get_by_text("ended unexpectedly")).to_be_visible()
    expect(page.get_by_text("Noise had been drawn, so the budget was charged: ε 0.5, δ 0.")).to_be_visible()
    spent(page, "0.5 of 1")
    page.reload()
    spent(page, "0.5 of 1")
    expect(page.get_by_text("The run failed.")).to_be_visible()


@pytest.mark.slow
def test_a_cancelled_release_says_what_was_spent(visitors: Visit) -> None:
    page = step_for_release(visitors())
    expect(page.get_by_text(re.compile(r"Step \d+ of 100000 in process \d+ · \d+%"))).to_be_visible()
    cancel(page)
    expect(page.get_by_text("Noise had been drawn, so the budget was charged: ε 0.5, δ 0.")).to_be_visible()
    spent(page, "0.5 of 1")


@pytest.mark.slow
def test_those_who_come_third_wait_know_their_place_and_can_leave(visitors: Visit) -> None:
    first, second, third, fourth = (visitors() for _ in range(4))
    for page in (first, second):
        press(page, "Try an example")
        expect(step(page).get_by_text(re.compile(r"Step \d+ of"))).to_be_visible(timeout=3 * MINUTE)
    step_for_release(third)
    expect(third.get_by_text("2 runs are ahead of yours.")).to_be_visible()
    spent(third, "0.5 of 1")
    press(fourth, "Try an example")
    expect(step(fourth).get_by_text("3 runs are ahead of yours.")).to_be_visible()
    cancel(third)
    expect(third.get_by_text("No noise had been drawn, so nothing was charged.")).to_be_visible()
    spent(third, "0 of 1")
    expect(fourth.get_by_text("2 runs are ahead of yours.")).to_be_visible()
    cancel(first)
    expect(fourth.get_by_text(re.compile(r"Step \d+ of"))).to_be_visible(timeout=3 * MINUTE)
    for page in (second, fourth):
        cancel(page)


@pytest.mark.slow
def test_what_a_mechanism_tells_is_drawn_while_it_runs_and_kept(visitors: Visit) -> None:
    page = visitors()
    press(page, "Try an example")
    step(page, steps=150)
    line = page.get_by_role("figure", name=re.compile("Line of distance by step"))
    expect(line.locator(".ytitle")).to_have_text("distance")
    expect(page.get_by_text(re.compile(r"Step \d+ of 150"))).to_be_visible()
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible()
    use(quiet(page).locator("summary").filter(has_text="Progress of the run"))
    expect(page.get_by_role("figure", name=re.compile("Line of distance by step. At 150 it is"))).to_be_visible()


@pytest.mark.slow
def test_a_release_states_its_price_charges_once_and_stops_at_the_budget(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    press(page, "Open the account")
    expect(page.get_by_text("This data set has an account")).to_be_visible()
    press(page, "All of these are public knowledge")
    to_synthesize(page)
    press(page, "Synthesize")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("This run costs ε 0.5")).to_be_visible()
    expect(dialog.get_by_text("Left afterwards: ε 0.5")).to_be_visible()
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    expect(dialog).to_have_count(0)
    spent(quiet(page), "0 of 1")
    press(page, "Synthesize")
    expect(dialog.get_by_text("Left afterwards: ε 0.5")).to_be_visible()
    dialog.get_by_role("button", name="Spend it and run").dblclick()
    spent(page, "0.5 of 1")
    expect(page.get_by_text("Guarantee: proven")).to_be_visible()
    press(page, "Synthesize")
    dialog.get_by_role("button", name="Spend it and run").dblclick()
    expect(page.get_by_text("Guarantee: proven")).to_be_visible()
    expect(page.get_by_text("ε spent: 1 of 1")).to_be_visible()
    expect(page.get_by_text("only ε = 0 is left").first).to_be_visible()
    expect(quiet(page).get_by_role("button", name="Synthesize", exact=True)).to_be_disabled()
