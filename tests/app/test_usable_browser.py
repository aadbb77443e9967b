"""Walks in a real browser through what the other walks leave out: what is asked before epsilon is spent, advice with
figures on a table of one's own, and what teachers show to a room."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.table.examples import EXAMPLES
from tests.waiting.browser import (
    MINUTE,
    csv_of,
    finished,
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

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Visit = Callable[[], Page]
LONG = 3 * MINUTE
HIGHEST = 5
"""Place of the editor's column of largest possible values."""


def patients(rows: int = 3_000, seed: int = 4) -> pd.DataFrame:
    """Smoking, age and weight raise the charges; sex, region and the number of children do not."""
    rng = np.random.default_rng(seed)
    smokes = rng.random(rows) < 0.25
    age, bmi = rng.integers(18, 80, rows), np.clip(rng.normal(27, 5, rows), 15, 50)
    charges = 2 + 0.15 * age + 0.2 * bmi + 22 * smokes + rng.normal(0, 3, rows)
    return pd.DataFrame(
        {
            "sex": rng.choice(["female", "male"], rows),
            "age": age,
            "bmi": bmi.round(1),
            "children": rng.poisson(1.2, rows).clip(0, 5),
            "smoker": np.where(smokes, "yes", "no"),
            "region": rng.choice(["north", "east", "south", "west"], rows),
            "visits": rng.poisson(2 + 3 * smokes, rows).clip(0, 20),
            "charges": charges.clip(0, 60).round(1),
        }
    )


def csv_text(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()


def set_epsilon(page: Page, epsilon: str) -> Page:
    """By keyboard, from wherever the slider is."""
    slider = quiet(page).get_by_role("slider").first
    for _ in range(40):
        now = float(slider.get_attribute("aria-valuetext") or "nan")
        if now == float(epsilon):
            return page
        slider.press("ArrowRight" if now < float(epsilon) else "ArrowLeft")
        quiet(page).wait_for_timeout(300)
        quiet(page)
    raise AssertionError(f"the slider has no {epsilon}")


# Before epsilon is spent


def test_total_and_first_run_do_not_both_propose_all_of_it(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    expect(page.get_by_role("spinbutton", name="Total epsilon")).to_have_value("1.00")
    go(page, "Mechanism")
    proposed = quiet(page).get_by_role("slider").first
    expect(proposed).to_have_attribute("aria-valuetext", "0.5")
    expect(page.get_by_text("No account is open yet. The Data page proposes a total of ε 1")).to_be_visible()
    go(page, "Data")
    press(page, "Open the account")
    spent(page, "0 of 1")
    go(page, "Mechanism")
    expect(proposed).to_have_attribute("aria-valuetext", "0.5")
    expect(quiet(page).get_by_text("The account has ε 1 left.")).to_be_visible()
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Spend it and run")).to_be_visible()
    expect(dialog.get_by_text("Spend the whole budget?")).to_have_count(0)
    use(dialog.get_by_role("button", name="Spend it and run"))
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    spent(page, "0.5 of 1")
    expect(quiet(page).get_by_role("button", name="Synthesize", exact=True)).to_be_enabled()


def test_the_dialog_says_that_all_is_spent_and_that_the_guarantee_is_void_and_release_names_delta(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    press(page, "Open the account")
    spent(page, "0 of 1")
    press(page, "Next: choose a mechanism")
    set_epsilon(page, "1")  # half of it was proposed
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Spend the whole budget?")).to_be_visible()
    expect(dialog.get_by_text("The guarantee is void.")).to_be_visible()
    expect(dialog.get_by_text("were read from the data")).to_be_visible()
    expect(dialog.get_by_text("This uses up the data set's ε")).to_be_visible()
    use(dialog.get_by_role("button", name="Spend it and run"))
    expect(page.get_by_role("heading", name="The synthetic table")).to_be_visible(timeout=LONG)
    spent(page, "1 of 1")
    expect(quiet(page).get_by_text("The data set's ε is used up").first).to_be_visible()
    go(page, "Release")
    expect(quiet(page).get_by_text("ε = 1", exact=True)).to_be_visible()
    expect(page.get_by_text("δ = 0 (pure)", exact=True)).to_be_visible()


def test_skipping_ahead_stops_where_the_plan_is_red_with_figures(visit: Visit) -> None:
    page = press(visit(), "Try an example")
    quiet(page).get_by_role("combobox", name="Example").click()
    page.get_by_role("option", name=EXAMPLES["wine"].title).click()
    press(page, "Use this example")
    expect(page.get_by_text("178 rows, 14 columns")).to_be_visible()
    press(page, "Skip ahead with suggested settings")
    expect(page.get_by_text("expect a table that is far from the original")).to_be_visible(timeout=LONG)
    expect(page.get_by_text(re.compile(r"is forecast to put [\d.]+% of the rows in a wrong cell"))).to_be_visible()
    expect(
        page.get_by_text(re.compile(r"would help most: the forecast .* [\d.]+% on average, instead of"))
    ).to_be_visible()
    expect(page.get_by_role("heading", name="Data", level=1)).to_be_visible()
    press(page, "Go on all the same")
    expect(page.get_by_role("heading", name="What will be made")).to_be_visible()


def test_an_estimate_says_what_it_missed_in_terms_of_its_noise_and_offers_other(visit: Visit) -> None:
    page = release_with(visit(), csv_text(patients(seed=11)))
    press(page, "Open the account")
    spent(page, "0 of 1")
    open_estimates(page)
    expect(page.get_by_role("checkbox", name="Add a label for everything that is not named")).to_be_checked()
    expect(page.get_by_text(re.compile(r"a label is named only if about \d+ of the 3,000 rows"))).to_be_visible()
    state_the_rest(page)
    press(page, "Estimate")
    use(page.get_by_role("dialog").get_by_role("button", name="Spend it"))
    expect(page.get_by_text(re.compile(r"^• sex: 2 labels were found"))).to_be_visible()
    expect(
        page.get_by_text(re.compile(r"fewer than about \d+ rows \([\d.]+%\) share .* count as other"))
    ).to_be_visible()
    expect(
        page.get_by_text("The app ticked Public for this column, because the estimate was paid for.")
    ).to_be_visible()


def test_words_that_sound_like_money_are_explained_on_every_page(visit: Visit) -> None:
    page = release_with(visit(), csv_of("age", "weight"))
    for title in ("Data", "Mechanism"):
        go(page, title)
        quiet(page).get_by_test_id("stSidebar").get_by_test_id("stTooltipIcon").first.hover()
        expect(page.get_by_text("No money is involved.").first).to_be_visible()
        page.mouse.move(700, 10)


# A table of one's own


def test_a_better_release_of_ones_own_table_reads_better_and_says_so_on_every_page(visit: Visit) -> None:
    page = press(visit(), "Use my own table")
    page.set_default_timeout(LONG)
    expect.set_options(timeout=LONG)
    use(quiet(page).get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    upload(quiet(page), "patients.csv", csv_text(patients()))
    expect(page.get_by_text("patients.csv: 3,000 rows, 8 columns")).to_be_visible()
    press(page, "Next: choose a mechanism")
    set_epsilon(page, "0.1")
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    # The effect that is lost is named, not one that happens to come first; and there is a reason and a way out.
    groups = page.get_by_text(
        re.compile(f"^{DIAGNOSTICS['mann_whitney'].scale.name} .* by smoker", re.IGNORECASE)
    ).first
    expect(groups).to_be_visible()
    expect(page.get_by_text("Not for comparing groups")).to_be_visible()
    expect(page.get_by_text(re.compile(r"About [\d.]+% (is what noise does|comes from)")).first).to_be_visible()
    helps = page.get_by_text(re.compile(r"would help most: the forecast for pairs of columns is [\d.]+% on average"))
    expect(helps.first).to_be_visible()
    said = groups.inner_text()
    go(page, "Release")
    expect(quiet(page).get_by_text(said).first).to_be_visible()

    go(page, "Mechanism")
    set_epsilon(page, "4")
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    expect(page.get_by_role("combobox", name="Look at run")).to_have_value(re.compile("^2: "))
    press(page, "Next: see how good it is")
    finished(page)
    expect(page.get_by_text("What has changed from release 1 to release 2?")).to_be_visible()
    change = page.get_by_test_id("stDataFrame").first
    expect(change.get_by_text("better", exact=True).first).to_be_attached()
    expect(page.get_by_text("Good for teaching").first).to_be_visible()
    go(page, "Release")
    use(quiet(page).locator("summary").filter(has_text="Compare the releases, check by check (2)"))
    candidates = quiet(page).locator("details").filter(has_text="Compare the releases, check by check (2)").last
    for number in (1, 2):
        expect(candidates.get_by_text(re.compile(f"^{number}: ")).first).to_be_visible()


def test_every_verdict_of_visible_differences_says_why_and_what_would_help(visit: Visit) -> None:
    page = press(visit(), "Use my own table")
    page.set_default_timeout(LONG)
    expect.set_options(timeout=LONG)
    use(quiet(page).get_by_role("checkbox", name="This file holds only public or simulated data."), "Space")
    upload(quiet(page), "patients.csv", csv_text(patients(rows=400, seed=2)[["charges", "sex", "age", "smoker"]]))
    expect(page.get_by_text("patients.csv: 400 rows, 4 columns")).to_be_visible()
    write(page, row=0, column=HIGHEST, text="20")  # one in three charges is above
    press(page, "Next: choose a mechanism")
    set_epsilon(page, "0.1")
    press(page, "Next: synthesize")
    press(page, "Synthesize")
    press(page, "Next: see how good it is")
    finished(page)
    expect(page.get_by_text("What would help most?", exact=True)).to_be_visible()
    panels = panels_of(quiet(page))
    assert list(panels) == [kind.title for kind in DIAGNOSTICS.values()]
    bad = {title: text for title, text in panels.items() if re.search("(Visible differences|Far apart)$", text, re.M)}
    assert {DIAGNOSTICS["marginals"].title, DIAGNOSTICS["pairs"].title} <= set(bad)
    for title, text in panels.items():
        assert ("\nWhy?\n" in text) == (title in bad), title
    for title, text in bad.items():
        assert re.search(r"[\d.]+% of the rows would have to move to another cell", text), title
        assert re.search(r"About [\d.]+% (is what noise does|comes from)", text), title
        assert re.search(r"would help most: the forecast for .* is [\d.]+% on average, instead of [\d.]+%", text), title
    clipped = re.compile(r"([\d.]+)% of the original's values of charges lie outside the declared range")
    found = [float(share) for text in bad.values() for share in clipped.findall(text)]
    assert found
    assert all(20 < share < 60 for share in found)
    # The table of changes has a figure for each of them.
    for change in ("Epsilon 0.2 instead of 0.1", "2 columns like these instead of 4"):
        expect(page.get_by_test_id("stDataFrame").get_by_text(change, exact=True).first).to_be_attached()


def panels_of(page: Page) -> dict[str, str]:
    """What each diagnostic says, by its title."""
    titles = [kind.title for kind in DIAGNOSTICS.values()]
    parts = re.split(f"^({'|'.join(map(re.escape, titles))})$", page.get_by_test_id("stMain").inner_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# For teachers


def test_how_much_do_i_need_answers_for_the_recommended_mechanism_too(visit: Visit) -> None:
    page = visit()
    page.goto(f"{page.url.split('?')[0]}Tradeoffs?section=needs&table=wine")
    first = MECHANISMS[recommended(EXAMPLES["wine"].schema)].title
    start = page.get_by_role("button", name=re.compile("^Work it out"))
    expect(
        start.or_(page.get_by_text(re.compile("^• "))).or_(page.get_by_role("button", name="Cancel")).first
    ).to_be_visible()
    if start.count():
        use(start)
    for title in (first, MECHANISMS["kd_tree"].title, MECHANISMS["perturbed_histogram"].title):
        expect(page.get_by_text(re.compile(f"^• {re.escape(title)}: ", re.MULTILINE)).first).to_be_visible(timeout=LONG)
    assert "table=wine" in quiet(page).url


def test_each_draw_from_nothing_has_its_p_value_and_boxes_have_points_behind_them(visit: Visit) -> None:
    page = visit()
    home = page.url.split("?")[0]
    page.goto(f"{home}Tradeoffs?lesson=5&answer=2&epsilon=0.1")
    chart = page.get_by_test_id("stPlotlyChart").first
    for _ in range(2):
        expect(chart.locator(".annotation-text").filter(has_text=re.compile(r"p [=<] ?[\d.]+"))).to_have_count(3)
        press(page, "Draw again")
        quiet(page)
    assert "draw=" in page.url
    page.goto(f"{home}Tradeoffs?section=noise&table=mixture&epsilon=2")
    tree = page.get_by_role("figure", name=re.compile("At epsilon 2 the tree cut"))
    expect(tree.locator(".scatterlayer .points path, canvas").first).to_be_attached()


@pytest.mark.parametrize("section", ["sweep", "needs", "person", "noise", "groups"])
def test_links_keep_table_epsilon_and_section_on_every_tab(visit: Visit, section: str) -> None:
    page = visit()
    page.goto(f"{page.url.split('?')[0]}Tradeoffs?section={section}&table=mixture&epsilon=2")
    expect(page.get_by_role("link", name="Present")).to_be_visible()
    link = quiet(page).get_by_role("link", name="Present").get_attribute("href") or ""
    for part in (f"section={section}", "table=mixture", "present=1"):
        assert part in link
    if section in ("person", "noise"):
        assert "epsilon=2" in link
