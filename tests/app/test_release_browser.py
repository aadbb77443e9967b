"""A full review in a real browser: upload, release, evidence, approval, download, unzip, validate."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.review.report import MARK
from tests.waiting.browser import (
    MINUTE,
    downloaded,
    fill_in,
    gathered,
    go,
    press,
    quiet,
    release_with,
    skip_ahead,
    spent,
)

pytestmark = pytest.mark.browser

Visit = Callable[[], Page]


def survey(seed: int, rows: int = 400) -> bytes:
    """A table with two groups and two ordered columns; another one for each seed.

    With ages in whole years, half of the rows of two such tables would be the same by chance.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    age = np.clip(rng.normal(40 + 5 * group, 12, rows), 0, 99).round(2)
    table = pd.DataFrame({"smokes": np.where(group, "yes", "no"), "age": age, "visits": rng.poisson(3, rows)})
    return table.to_csv(index=False).encode()


def decide(page: Page, choice: str, note: str) -> Page:
    quiet(page).get_by_role("radio", name=choice, exact=True).press("Space")
    fill_in(page.get_by_role("textbox", name="Reviewer's name"), "Ada Reviewer")
    fill_in(page.get_by_role("textbox", name="Note: why?"), note)
    press(page, "Record the decision")
    # The form begins afresh once the decision is on record.
    expect(page.get_by_role("radio", name=choice, exact=True)).not_to_be_checked()
    return quiet(page)


@pytest.mark.slow
def test_a_full_review(visit: Visit, tmp_path: Path) -> None:
    page = release_with(visit(), survey(1))
    press(page, "Open the account")
    spent(page, "0 of 1")
    press(page, "All of these are public knowledge")
    expect(quiet(page).get_by_text("Guarantee: possible").first).to_be_visible()
    fill_in(quiet(page).get_by_role("textbox", name="Who states that these facts are public?"), "Bo Steward")
    press(page, "Next: choose a mechanism")
    press(page, "Choose Thresholded grid")  # whose risk of false discoveries takes the least time to simulate
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    press(page, "Spend it and run")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=3 * MINUTE)
    go(page, "Release")
    expect(page.get_by_text("Not yet. Evidence is missing.")).to_be_visible()
    expect(page.get_by_role("button", name="Record the decision")).to_be_disabled()
    expect(page.get_by_role("link", name="Download the approved bundle")).to_have_count(0)
    gathered(page)
    expect(page.get_by_text("The guarantee holds for this run").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"charge \d+; epsilon 0\.5 of 1 left")).first).to_be_visible()
    report = downloaded(page, "Download the review report").read_text(encoding="utf-8")
    assert MARK in report
    assert "declared by Bo Steward" in report
    assert "private.csv" in report
    assert re.search("fingerprint of the data set.{0,80}[0-9a-f]{32}", report, re.DOTALL)

    decide(page, "Hold", "One more look.")
    expect(page.get_by_text("On hold.", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Download the approved bundle")).to_have_count(0)
    decide(page, "Approve", "Good enough for a course, with its warnings.")
    expect(page.get_by_text("Approved.", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_text("Approved.", exact=True)).to_be_visible()
    archive = downloaded(page, "Download the approved bundle")
    report = downloaded(page, "Download the review report").read_text(encoding="utf-8")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() in report
    check_bundle(archive, tmp_path)


def check_bundle(archive: Path, place: Path) -> None:
    import mlcroissant as mlc  # slow to import

    with zipfile.ZipFile(archive) as bundle:
        bundle.extractall(place)
    sums = dict(line.split("  ")[::-1] for line in (place / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in place.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        content = (place / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        # Neither what was found nor who declared or decided leaves with the rows.
        assert MARK.encode() not in content
        assert b"Ada Reviewer" not in content
        assert b"Bo Steward" not in content
    dataset = mlc.Dataset(jsonld=place / "croissant.json")
    assert not dataset.metadata.issues.errors
    assert len(list(dataset.records("synthetic_rows"))) == 400


@pytest.mark.slow
def test_a_fact_read_from_the_data_follows_into_the_review(visit: Visit) -> None:
    page = release_with(visit(), survey(2))
    press(page, "Open the account")
    spent(page, "0 of 1")
    skip_ahead(page)
    press(page, "Synthesize")
    press(page, "Spend it and run")
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=3 * MINUTE)
    go(page, "Release")
    expect(page.get_by_text("No. This cannot be released as private.")).to_be_visible()
    expect(page.get_by_text("Read from the data: smokes, age, visits.").first).to_be_visible()
    expect(page.get_by_text("There is no release bundle.")).to_be_visible()
    quiet(page).get_by_role("radio", name="Approve", exact=True).press("Space")
    expect(page.get_by_text("this cannot be overruled").first).to_be_visible()
    expect(page.get_by_role("button", name="Record the decision")).to_be_disabled()
