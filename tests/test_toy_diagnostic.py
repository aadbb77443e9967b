"""One file and one line: all that a new diagnostic needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsynth_core as dp
from dpsynth_core.charts.diagnostics import PICTURES
from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic
from dpsynth_core.review.report import review_report
from dpsynth_core.runs.configuration import RunConfig, RunResult
from pages.shared.data.actions import load_example
from pages.shared.diagnostics.actions import examine
from pages.shared.session import Session
from tests.tables.toy_diagnostic import ToyDiagnostic, registered
from tests.waiting.jobs import finish
from tests.waiting.pages import page, texts

ROOT = Path(__file__).parents[1]


@pytest.fixture
def toy() -> Iterator[type[Diagnostic]]:
    with registered():
        yield ToyDiagnostic


def private() -> dp.PrivateTable:
    example = dp.EXAMPLES["two_groups_signal"]
    return dp.PrivateTable(example.load(), example.schema)


def release(table: dp.PrivateTable) -> RunResult:
    mechanism = dp.MECHANISMS["perturbed_histogram"]()
    made = dp.synthesize(table, mechanism, epsilon=1, seed=1)
    config = RunConfig(mechanism=mechanism, epsilon="1", seed=1)
    return RunResult(
        config=config,
        schema=table.schema,
        tables=(made.sample(),),
        guarantee=made.guarantee,
        charges=made.charges,
        leaves=None,
        seconds=0.1,
    )


def test_keys_files_and_classes_share_one_stem() -> None:
    for key, kind in DIAGNOSTICS.items():
        stem = kind.__name__.removesuffix("Diagnostic")
        assert stem.lower() == key.replace("_", "")
        assert key in kind.__module__.split(".")
        assert key == kind.key
        words = re.sub(r"[^a-z]", "", kind.title.lower())
        assert stem.lower().rstrip("s") in words


def test_the_toy_passes_the_contract_tests_unseen() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.tables.toy_diagnostic"]
    ran = subprocess.run(
        [*command, "tests/diagnostics/test_contract.py", "-k", "toy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert re.search(r"\d\d passed", ran.stdout)


def test_the_toy_gets_its_panel_and_its_picture_on_the_page(toy: type[Diagnostic]) -> None:
    assert toy.key not in PICTURES
    session = Session(mode="teaching")
    load_example(session, "two_groups_signal")
    made = release(private())
    run = session.work.add_run(made)
    finish(examine(session.work, run, made.schema.names).job)
    app = page("pages/4_Diagnostics.py", session)
    assert not app.exception
    assert toy.title in [element.value for element in app.header]
    assert toy.question in " ".join(element.value for element in app.markdown)
    assert "Toy distance" in texts(app)
    charts = [json.loads(element.proto.spec) for element in app.main if element.type == "plotly_chart"]
    # Pictures side by side have their title at the middle one.
    titles = [chart["layout"]["xaxis"].get("title", {}).get("text") for chart in charts]
    assert "toy distance" in titles


def test_the_toy_gets_its_section_and_its_picture_in_the_report(toy: type[Diagnostic]) -> None:
    original = private()
    synthetic = release(original).tables[0]
    text = review_report(original, synthetic, dp.evaluate(original, synthetic, [toy.key])).decode()
    assert toy.title in text
    assert toy.question in text
    assert text.count("Plotly.newPlot(") == 1


def test_the_guide_names_what_a_diagnostic_must_have() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.split("## Adding a diagnostic")[1].split("\n## ")[0]
    for name in (*Diagnostic.__abstractmethods__, *Diagnostic.__annotations__):
        assert f"`{name}" in section, name
