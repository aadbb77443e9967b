"""The experiment on false and missed discoveries, from the command line."""

from __future__ import annotations

import importlib
import json

import pytest

from benchmarks.papers.__main__ import main
from benchmarks.papers.base import RunOptions
from benchmarks.papers.false_discoveries import EPSILONS, ORIGINAL_SIZES, SIZES, Curve, _run, _table


def test_a_tiny_run_prints_every_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    quick = tuple(curve for curve in ORIGINAL_SIZES if curve.one_in == 1)
    monkeypatch.setattr(importlib.import_module("benchmarks.papers.false_discoveries"), "ORIGINAL_SIZES", quick)
    assert main(["false_discoveries", "--reps", "4", "--shrink", "200", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert [table["title"].split(":")[-1] for table in tables[:4]] == [
        " Figure 4(a)",
        " Figure 4(b)",
        " Figure 5(a)",
        " Figure 5(b)",
    ]
    line = tables[0]["rows"][0]
    assert line["test"] == "DP-MW on the original"
    for epsilon in EPSILONS:
        assert 0 <= line[f"eps {epsilon:g}"]["mean"] <= 1
        assert line[f"eps {epsilon:g}"]["standard_error"] > 0


def test_a_mechanism_that_runs_table_by_table_is_a_curve_too() -> None:
    from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree

    curve = Curve(title="a tree", mechanism=KDTree(), one_in=2)
    grid = _run([curve], [(SIZES[0], None)], RunOptions(reps=4))
    assert [rates.type_one.reps for rates in grid["a tree", 50]] == [2] * len(EPSILONS)
    assert "Share of 2 simulated tables" in _table(grid, "type_one", "T", "n").notes[0]


def test_shares_are_taken_over_many_repetitions_by_default() -> None:
    from benchmarks.papers import DEFAULT_REPS

    assert DEFAULT_REPS["false_discoveries"] == 1000
