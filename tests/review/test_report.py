from __future__ import annotations

import io
import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

import dpsynth_core as dp
from dpsynth_core.cli import main
from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee
from dpsynth_core.review import Decision, release_bundle, review_report
from dpsynth_core.review.report import MARK
from dpsynth_core.review.wording import cost_line
from dpsynth_core.runs.configuration import RunResult
from tests.tables.releases import HOSTILE, hostile_outcome, mixed_outcome
from tests.tables.schemas import mixed_schema, mixed_table

QUICK = ["marginals", "pairs"]
"""Diagnostics that take no time."""
HELD = Decision(
    choice="hold",
    reviewer="<b>Ada</b>",
    note="Not yet </p><script>x</script>",
    decided=datetime(2026, 1, 2, tzinfo=UTC),
)


class Page(HTMLParser):
    """Text by section, and every tag and address."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sections: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self._script = self._inside = False
        self.feed(text.replace(get_plotlyjs(), ""))  # five megabytes that hold no name

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self._script = tag == "script"
        if tag == "section":
            self.sections.append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._script = False
        if tag == "section":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside and not self._script:
            self.sections[-1] += data


@cache
def reviewed() -> tuple[RunResult, Evaluation]:
    made = mixed_outcome()
    return made, evaluate(dp.PrivateTable(mixed_table(), mixed_schema()), made.tables[0], QUICK)


@cache
def report(account: Account | None = None) -> str:
    made, found = reviewed()
    original = dp.PrivateTable(mixed_table(), mixed_schema())
    text = review_report(original, made.tables[0], found, outcome=made, account=account, decision=HELD)
    return text.decode()


def test_every_section_says_that_it_is_not_for_release() -> None:
    sections = Page(report()).sections
    assert len(sections) == 5 + len(QUICK)
    assert all(MARK in section for section in sections)


def test_it_needs_no_network_and_holds_the_drawing_library_once() -> None:
    page = Page(report())
    assert all(address.startswith("#section-") for address in page.addresses)
    assert "link" not in page.tags
    assert len(re.findall(r"plotly\.js v", report())) == 1
    assert report().count("Plotly.newPlot(") >= len(QUICK)


@pytest.mark.slow
def test_every_diagnostic_has_its_section_and_figures() -> None:
    made, original = reviewed()[0], dp.PrivateTable(mixed_table(), mixed_schema())
    text = review_report(original, made.tables[0], evaluate(original, made.tables[0])).decode()
    assert len(Page(text).sections) == 3 + len(DIAGNOSTICS)
    assert text.count("Plotly.newPlot(") >= len(DIAGNOSTICS)


def test_it_tells_decision_guarantee_facts_and_configuration() -> None:
    decision, guarantee, facts, quality, *_, configuration = Page(report()).sections
    assert "hold" in decision
    assert "<b>Ada</b>, 2026-01-02" in decision
    assert "epsilon 1, delta 0 (pure)" in guarantee
    assert "public knowledge" in facts
    assert "By whom: nobody is named as having declared them." in facts
    assert reviewed()[1].summary in quality
    assert '"mechanism": "kd_tree"' in configuration


def test_it_tells_what_each_part_of_the_statement_cost() -> None:
    made, found = reviewed()
    rows = Cost(label="Synthetic rows", budget=Budget.of(1))
    bounds = Cost(label="Range of column '<i>age</i>'", budget=Budget.of("0.1", "1e-7"))
    composed = replace(made, guarantee=Guarantee(status="proven", parts=(rows, bounds)))
    original = dp.PrivateTable(mixed_table(), mixed_schema())
    text = review_report(original, made.tables[0], found, outcome=composed, decision=HELD).decode()
    guarantee = Page(text).sections[1]
    assert "epsilon 1.1, delta 1e-7" in guarantee
    assert cost_line(rows) in guarantee
    assert cost_line(bounds) in guarantee


def test_it_tells_who_declared_the_facts_literally() -> None:
    made, found = reviewed()
    original = dp.PrivateTable(mixed_table(), replace(mixed_schema(), declared_by=HOSTILE))
    text = review_report(original, made.tables[0], replace(found, results=found.results[:1])).decode()
    page = Page(text)
    assert any(f"By whom: declared by {HOSTILE}." in section for section in page.sections)
    assert "<script>alert" not in text


def test_it_shows_the_account(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open_account("x", total=Budget.of(3))
    ledger.reserve("x", Budget.of(1), purpose="A <i>first</i> look").commit()
    made, found = reviewed()
    original = dp.PrivateTable(mixed_table(), mixed_schema())
    few = replace(found, results=found.results[:1])
    page = Page(review_report(original, made.tables[0], few, account=ledger.account("x")).decode())
    assert any("Left: epsilon 2" in section and "A <i>first</i> look" in section for section in page.sections)
    assert "i" not in page.tags


def test_names_from_a_file_are_never_markup() -> None:
    table, made = hostile_outcome()
    original = dp.PrivateTable(table, made.schema)
    found = evaluate(original, made.tables[0], QUICK)
    text = review_report(original, made.tables[0], found, outcome=made, decision=HELD).decode()
    page = Page(text)
    assert "b" not in page.tags
    assert "<script>alert" not in text
    assert any(HOSTILE in section for section in page.sections)
    # As many scripts as were written: none was ended early or begun by a name.
    assert page.tags.count("script") == text.replace(get_plotlyjs(), "").count("</script>")


@pytest.mark.parametrize("change", [{"choice": "maybe"}, {"reviewer": " "}, {"note": "x" * 20_000}])
def test_a_decision_has_a_name_and_is_one_of_two(change: dict[str, Any]) -> None:
    with pytest.raises(DPSynthError):
        replace(HELD, **change)


def test_a_decision_does_not_enter_the_bundle() -> None:
    with pytest.raises(DPSynthError, match="not made for publication"):
        release_bundle(reviewed()[0], HELD)  # type: ignore[arg-type]


def test_the_two_products_share_no_text_of_the_other() -> None:
    made, _ = reviewed()
    with zipfile.ZipFile(io.BytesIO(release_bundle(made).archive)) as archive:
        assert all(MARK.encode() not in archive.read(name) for name in archive.namelist())


def test_the_command_writes_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mixed_table().to_csv("data.csv", index=False)
    pd.DataFrame(reviewed()[0].tables[0]).to_csv("synthetic.csv", index=False)
    Path("schema.json").write_text(mixed_schema().to_json())
    asked = ["evaluate", "data.csv", "synthetic.csv", "--schema", "schema.json", "--out", "r.html", "--diagnostic"]
    assert main([*asked, "magic"]) == 2
    assert not Path("r.html").exists()
    assert main([*asked, "marginals"]) == 0
    assert MARK in Path("r.html").read_text()
