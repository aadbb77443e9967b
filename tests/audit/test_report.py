"""The page, the summary and the panel say what was found, good or bad."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.audit import last_summary as last
from dpsynth_core.audit.__main__ import main
from dpsynth_core.audit.checks import LAYERS, QUICK, REDUCED, SUITE_LEVEL, AuditCheck
from dpsynth_core.audit.report import markdown, summary
from dpsynth_core.audit.suite import Audit, FalseAlarms, MutantResult, count_false_alarms
from tests.audit.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
GOOD = AuditCheck(
    layer="enumeration", subject="kd_tree", case="as suggested", verdict="passed", measured=0.9, claimed=1.0
)
BAD = AuditCheck(layer="replay", subject="kd_tree", case="NaN | blank", verdict="failed", detail="sensitivity: 2 times")


def audit(*checks: AuditCheck, layers: tuple[Any, ...] = ("replay",)) -> Audit:
    return Audit(
        when=datetime(2026, 11, 16, 5, 4, tzinfo=UTC),
        version="0.1.0",
        digest="abc",
        deep=True,
        seed=7,
        seconds=12.3,
        checks=checks,
        mutants=(MutantResult(name="half noise", mistake="Half of it.", layers=layers),),
        false_alarms=FalseAlarms(repetitions=200, alarms=0, checks=1000, loose_alarms=31),
    )


def test_a_sound_audit() -> None:
    found = audit(GOOD)
    assert found.passed
    page = markdown(found)
    assert "Nothing failed and no mutant survived" in page
    assert "| half noise | Half of it. | replay |" in page
    assert "| kd_tree | - | 0.900 | - | - |" in page
    assert "31 of 1,000 checks (3.1%)" in page
    assert "It cannot prove one" in page
    stored = json.loads(json.dumps(summary(found)))
    assert stored["layers"]["enumeration"] == {"passed": 1, "failed": 0, "skipped": 0}
    assert last.headline(stored).startswith("On 16 November 2026, 1 checks")
    assert "none succeeded" in last.headline(stored)
    assert "has changed since" in last.standing(stored)
    assert [row["check"] for row in last.layer_rows(stored)] == list(LAYERS)
    assert last.mutant_rows(stored)[0]["caught by"] == "replay"


def test_a_failure_and_a_survivor_cannot_be_missed() -> None:
    for found in (audit(GOOD, BAD), audit(GOOD, layers=())):
        assert not found.passed
        assert "Something failed" in markdown(found)
    assert "NaN \\| blank" in markdown(audit(BAD))
    assert "nothing: it survives" in markdown(audit(layers=()))
    assert "1 succeeded" in last.headline(summary(audit(GOOD, BAD)))


def test_the_stored_summary_is_of_a_sound_audit() -> None:
    stored = last.last_summary()
    assert stored is not None
    assert stored["passed"]
    assert stored["false_alarms"]["alarms"] == 0
    assert stored["false_alarms"]["repetitions"] > 0
    assert all(mutant["layers"] for mutant in stored["mutants"])
    assert len(stored["digest"]) == len(last.source_digest())


def test_the_home_page_says_what_was_checked() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not page.exception
    assert "What was checked" in [header.value for header in page.header]
    assert any("tried to break the guarantees" in text.value for text in page.markdown)


@pytest.mark.parametrize("passed", [True, False])
def test_the_command_ends_as_the_audit_did(
    passed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def instead(**options: Any) -> Audit:
        assert options["seed"] == 5
        return audit(GOOD if passed else BAD)

    monkeypatch.setattr("dpsynth_core.audit.__main__.run_audit", instead)
    assert main(["--json", "--seed", "5"]) == (0 if passed else 1)
    told = capsys.readouterr()
    assert json.loads(told.out)["passed"] is passed
    assert "--seed 5" in told.err


def test_fresh_seeds_are_logged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = []

    def instead(**options: Any) -> Audit:
        seeds.append(options["seed"])
        return audit(GOOD)

    monkeypatch.setattr("dpsynth_core.audit.__main__.run_audit", instead)
    main([])
    main(["--deep"])
    assert seeds[0] != seeds[1]
    told = capsys.readouterr().err
    assert all(f"Seed {seed}" in told for seed in seeds)


def test_every_statistical_check_has_its_share_of_the_level() -> None:
    assert QUICK.level < SUITE_LEVEL
    assert REDUCED.level == QUICK.level
    assert len(MUTANTS) >= 25


@pytest.mark.slow
def test_two_hundred_repetitions_of_the_statistical_part_raise_no_alarm() -> None:
    alarms = count_false_alarms(200, seed=1_000)
    assert alarms.alarms == 0
    assert alarms.loose_alarms <= alarms.checks * 0.07
