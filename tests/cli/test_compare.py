"""``compare``: one p-value, charged before it is visible, and never paid for twice by accident."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth_core.cli import compare, main
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.primitives import Charge
from tests.tables.accounts import account

TEST = ["compare", "data.csv", "--schema", "schema.json", "--value", "income", "--group", "sex", "--epsilon", "0.5"]


def test_the_result_is_paid_for_stated_and_kept(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TEST, "--budget", "2"]) == 0
    said = capsys.readouterr().out
    assert "proven for this run: epsilon 0.5, delta 1e-6" in said
    assert "Left in the account: epsilon 1.5 of 2, delta 0 of 1e-6." in said
    opened = account(desk)
    assert opened is not None
    assert [(entry.state, entry.budget) for entry in opened.entries] == [("committed", Budget.of("0.5", "1e-6"))]
    (kept,) = opened.comparisons
    assert f"p-value: {kept.pvalue:.4g}" in said
    assert (kept.value, kept.group, kept.levels) == ("income", "sex", ("f", "m"))


def test_a_result_that_is_paid_for_is_told_again_for_nothing(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = [*TEST, "--budget", "2", "--budget-delta", "1e-5"]
    assert main(order) == 0
    opened = account(desk)
    assert opened is not None
    assert main(order) == 2
    error = capsys.readouterr().err
    assert "Nothing was charged" in error
    assert f"{opened.comparisons[0].pvalue:.2g}" in error
    assert len(account(desk).entries) == 1  # type: ignore[union-attr]
    assert main([*order, "--again"]) == 0
    assert account(desk).spent.epsilon == 1  # type: ignore[union-attr]
    assert main([*TEST, "--value", "age"]) == 0, "another question is another test"


def test_the_charge_is_on_record_before_anything_is_drawn(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    real = compare.compare_privately

    def watched(*args: Any, watch: Callable[[Charge], None], **more: Any) -> Any:
        def before_drawing(charge: Charge) -> None:
            watch(charge)
            opened = account(desk)
            assert opened is not None
            seen.append((opened.entries[0].state, len(opened.comparisons)))

        return real(*args, watch=before_drawing, **more)

    monkeypatch.setattr(compare, "compare_privately", watched)
    assert main([*TEST, "--budget", "1"]) == 0
    assert seen == [("reserved", 0), ("reserved", 0)]


@pytest.mark.parametrize("drawn", [False, True])
def test_an_interrupt_says_whether_the_budget_was_charged(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], drawn: bool
) -> None:
    def interrupted(*_: object, watch: Callable[[object], None], **__: object) -> None:
        if drawn:
            watch(None)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "compare_privately", interrupted)
    assert main([*TEST, "--budget", "1"]) == 130
    printed = capsys.readouterr()
    assert "p-value" not in printed.out
    assert ("was charged" if drawn else "Nothing was charged") in printed.err
    opened = account(desk)
    assert opened is not None
    assert opened.spent.epsilon == (Budget.of("0.5").epsilon if drawn else 0)
    assert opened.comparisons == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--epsilon", "3", "--budget", "1"], "left: epsilon 1"),
        (["--budget", "1", "--budget-delta", "1e-9"], "delta 1e-6; left"),
        (["--value", "nobody"], "nobody"),
        (["--group", "pain"], "two levels"),
        (["--group", "pain", "--levels", "no", "lots"], "no, some, much"),
        (["--delta", "0"], "delta is '0'"),
    ],
)
def test_what_cannot_be_done_costs_nothing(
    desk: Path, capsys: pytest.CaptureFixture[str], change: list[str], words: str
) -> None:
    assert main([*TEST, *change]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert "p-value" not in printed.out
    opened = account(desk)
    assert opened is None or not opened.spent.epsilon


def test_facts_read_from_the_data_are_refused_before_the_charge(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(Path("schema.json").read_text(encoding="utf-8"))
    for column in facts["columns"]:
        if column["name"] == "income":
            column |= {"public": False, "origin": "read from the data"}
    Path("schema.json").write_text(json.dumps(facts), encoding="utf-8")
    assert main(TEST) == 2
    assert "read from the data" in capsys.readouterr().err
    assert account(desk) is None
    assert main([*TEST, "--value", "age"]) == 0, "the other columns' facts do not matter"


def test_teaching_charges_nothing(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TEST, "--teaching", "--value", "height", "--group", "pain", "--levels", "no", "much"]) == 0
    said = capsys.readouterr().out
    assert "p-value: " in said
    assert "public or simulated data only" in said
    assert not (desk / "home").exists()
