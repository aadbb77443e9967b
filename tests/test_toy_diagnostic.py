"""One file and one line: all that a new diagnostic needs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import dpsynth_core as dp
from dpsynth_core.charts.diagnostics import PICTURES
from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic
from dpsynth_core.review.review import review_report
from pages.shared.actions import load_example
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


def test_the_toy_runs_in_a_worker_and_gets_its_panel(toy: type[Diagnostic]) -> None:
    assert toy.key not in PICTURES
    session = Session(mode="teaching")
    load_example(session, "two_groups_signal")
