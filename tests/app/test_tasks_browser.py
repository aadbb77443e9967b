"""What becomes of background work when its visitor leaves: for another table, for good, or for a reload."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.table.examples import EXAMPLES
from tests.waiting.browser import MINUTE, go, press, quiet, spent, step, step_for_release, to_synthesize
from tests.waiting.jobs import alive, wait

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]
LONG = 3 * MINUTE
"""For what a worker must do first; how long that takes is the machine's business."""


def process_on(page: Page) -> int:
    """The process of the run that the page shows."""
    stage = page.get_by_text(re.compile(r"Step \d+ of"))
    expect(stage).to_be_visible(timeout=LONG)
    found = re.search(r"in process (\d+)", stage.inner_text())
    assert found is not None
    return int(found[1])


@pytest.mark.slow
def test_another_table_ends_an_examination_of_the_old_one_and_frees_its_worker(visitors: Visit) -> None:
    first, second, third = (visitors() for _ in range(3))
    for page in (first, second, third):
        press(page, "Try an example")
    step(first)
    to_synthesize(second)
    press(second, "Synthesize")
    expect(second.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    step(third, start=False)
    press(second, "Next: see how good it is")
    expect(second.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    press(third, "Synthesize")
    queue = third.get_by_text("2 runs are ahead of yours.")
    expect(queue).to_be_visible()
    go(second, "Data")
    expect(second.get_by_role("heading", name="Which table?")).to_be_visible()
    expect(queue).to_be_visible()  # another page leaves it alone
    quiet(second).get_by_role("combobox", name="Example").click()
    second.get_by_role("option", name=EXAMPLES["two_groups_signal"].title).click()
    press(second, "Use this example")
    press(second, "Go on")
    expect(second.get_by_text("500 rows, 2 columns")).to_be_visible()
    expect(third.get_by_text(re.compile(r"Step \d+ of"))).to_be_visible(timeout=LONG)
    expect(queue).to_have_count(0)
    go(second, "Diagnostics")
    expect(second.get_by_text("This page needs a synthetic table")).to_be_visible()
    for page in (first, third):
        press(page, "Cancel")
        expect(page.get_by_text("The run was cancelled.")).to_be_visible()


@pytest.mark.slow
def test_a_closed_tab_frees_its_worker_and_a_reload_does_not(visitors: Visit) -> None:
    page, other = visitors(), visitors()
    for each in (page, other):
        press(each, "Try an example")
        step(each)
    closed, reloaded = process_on(page), process_on(other)
    page.close()
    other.reload()
    assert process_on(other) == reloaded
    wait(lambda: not alive(closed), seconds=180)
    assert process_on(other) == reloaded, "whoever came back still sees the same run"
    press(other, "Cancel")
    expect(other.get_by_text("The run was cancelled.")).to_be_visible()
    wait(lambda: not alive(reloaded))


@pytest.mark.slow
def test_a_run_that_was_paid_for_is_finished_although_its_tab_is_closed(visitors: Visit) -> None:
    page = step_for_release(visitors(), steps=900)  # at least 45 s: longer than unpaid work would be left alone
    worker, address, context = process_on(page), page.url, page.context
    page.close()
    wait(lambda: not alive(worker), seconds=600)
    again = context.new_page()
    again.goto(address)
    expect(quiet(again).get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    spent(again, "0.5 of 1")
