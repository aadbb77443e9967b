from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import dpsynth_core as dp
from dpsynth_core.cli import main, synthesize
from dpsynth_core.cli.terminal import Bar
from dpsynth_core.ledger.accounts import ESTIMATE, Entry
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.progress import RunProgress
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.table.column import Column
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.schema import Schema
from tests.tables.accounts import account
from tests.tables.schemas import mixed_schema, mixed_table

ROOT = Path(__file__).parents[2]
MAKE = ["synthesize", "data.csv", "--schema", "schema.json", "--mechanism", "kd_tree", "--epsilon", "1"]


def command(desk: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dpsynth_core", *arguments],
        cwd=desk,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


# ------------------------------------------------------------------ as a process of its own


def test_a_table_is_made_paid_for_and_examined(desk: Path) -> None:
    made = command(desk, *MAKE, "--out", "bundle.zip", "--budget", "3")
    assert made.returncode == 0, made.stderr
    assert "proven" in made.stdout
    assert "epsilon 1, delta 0" in made.stdout
    assert "Left in the account: epsilon 2 of 3, delta 0 of 0." in made.stdout
    assert "%" in made.stderr
    opened = account(desk)
    assert opened is not None
    assert [(entry.state, entry.budget.epsilon) for entry in opened.entries] == [("committed", 1)]
    with zipfile.ZipFile(desk / "bundle.zip") as archive:
        archive.extractall(desk / "bundle")
    assert len(dp.read_table(desk / "bundle" / "synthetic.csv")) == 300

    examined = command(
        desk, "evaluate", "data.csv", "bundle/synthetic.csv", "--schema", "schema.json", "--diagnostic", "marginals"
    )
    assert examined.returncode == 0, examined.stderr
    assert examined.stdout.startswith("For internal review")
    assert "Verdict:" in examined.stdout


def test_a_mistake_is_told_in_words_without_a_traceback(desk: Path) -> None:
    failed = command(desk, *MAKE, "--out", "bundle.zip", "--budget", "0.5")
    assert failed.returncode == 2
    assert "left: epsilon 0.5" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not failed.stdout
    assert not (desk / "bundle.zip").exists()


# ------------------------------------------------------------------ in this process, which is quicker


def test_teaching_needs_no_ledger(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main([*MAKE, "--out", "b.zip", "--teaching", "--set", "rows=50", "--set", "placement=centre", "--copies", "2"])
        == 0
    )
    assert not (desk / "home").exists()
    said = capsys.readouterr().out
    assert "public or simulated data only" in said
    assert "Estimated error, from the synthetic rows and public facts alone:" in said
    with zipfile.ZipFile("b.zip") as archive:
        assert len(dp.read_table(archive.read("synthetic_2.csv"))) == 50
        order = RunConfig.from_json(archive.read("configuration.json"))
    assert order.mechanism.rows == 50
    assert order.total.epsilon == 2


def test_without_a_mechanism_the_recommended_one_is_used_and_named(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ["synthesize", "data.csv", "--schema", "schema.json", "--epsilon", "1", "--out", "c.zip", "--teaching"]
    assert main(order) == 0
    key = recommended(dp.Schema.from_json(Path("schema.json").read_text(encoding="utf-8")))
    assert f"No --mechanism was given, so {key} is used." in capsys.readouterr().out
    with zipfile.ZipFile("c.zip") as archive:
        assert RunConfig.from_json(archive.read("configuration.json")).mechanism.key == key


def test_without_a_stated_total_the_account_covers_one_run(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MAKE, "--out", "a.zip"]) == 0
    assert "opened for this run alone" in capsys.readouterr().out
    opened = account(desk)
    assert opened is not None
    assert (opened.total.epsilon, opened.left.epsilon) == (1, 0)
    assert main([*MAKE, "--out", "b.zip"]) == 2
    assert not Path("b.zip").exists()
    assert main([*MAKE, "--out", "b.zip", "--budget", "3"]) == 2
    assert "Neither can be changed" in capsys.readouterr().err


# ------------------------------------------------------------------ how the file is laid out


def european(desk: Path) -> None:
    """The table with semicolons and decimal commas, and a schema that does not say so."""
    mixed_table().to_csv(desk / "data.csv", index=False, sep=";", decimal=",")
    (desk / "schema.json").write_text(mixed_schema().to_json())


def pasted(printed: str) -> dict[str, object]:
    """The layout that was printed to be pasted into a schema."""
    line = next(line for line in printed.splitlines() if line.startswith('"file": '))
    facts: dict[str, object] = json.loads(line.removeprefix('"file": ').removesuffix(","))
    return facts


def test_a_layout_that_nobody_declared_is_refused_before_anything_is_charged(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    european(desk)
    assert main([*MAKE, "--out", "a.zip", "--budget", "3"]) == 2
    error = capsys.readouterr().err
    assert "does not declare how the file is laid out" in error
    assert (Path("a.zip").exists(), (desk / "home").exists()) == (False, False)
    facts = {**mixed_schema().to_dict(), "file": pasted(error)}
    (desk / "schema.json").write_text(json.dumps(facts))
    assert main([*MAKE, "--out", "a.zip", "--budget", "3"]) == 0
    assert "proven" in capsys.readouterr().out


def test_a_file_that_breaks_its_guessed_layout_is_refused_with_a_layout_to_correct(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("data.csv").write_text("a title\nof two lines\n" + Path("data.csv").read_text(encoding="utf-8"))
    (desk / "schema.json").write_text(mixed_schema().to_json())
    assert main([*MAKE, "--out", "a.zip"]) == 2
    error = capsys.readouterr().err
    assert "has more than" in error
    facts = {**mixed_schema().to_dict(), "file": {**pasted(error), "skip_rows": 2, "header": True, "fields": None}}
    (desk / "schema.json").write_text(json.dumps(facts))
    assert main([*MAKE, "--out", "a.zip"]) == 0


def test_teaching_goes_on_with_the_layout_of_a_public_file(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    european(desk)
    assert main([*MAKE, "--out", "a.zip", "--teaching"]) == 0
    assert "guessed: semicolon-separated, UTF-8, decimal comma, header in row 1." in capsys.readouterr().err


def test_one_file_has_one_account_however_its_layout_is_declared(desk: Path) -> None:
    for name, layout in (("a", FileLayout()), ("b", FileLayout(quoting=False, missing=("", "?")))):
        (desk / "schema.json").write_text(replace(mixed_schema(), file=layout).to_json())
        assert main([*MAKE, "--out", f"{name}.zip", "--budget", "2"]) == 0
    opened = account(desk)
    assert opened is not None
    assert [entry.budget.epsilon for entry in opened.entries] == [1, 1]


def test_a_suggested_schema_is_used_once_its_facts_are_called_public(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    european(desk)
    assert main(["suggest", "data.csv"]) == 0
    printed = capsys.readouterr()
    assert "read from the data" in printed.err
    facts = json.loads(printed.out)
    assert not any(column.get("public") for column in facts["columns"])
    Path("schema.json").write_text(printed.out, encoding="utf-8")
    assert main([*MAKE, "--out", "a.zip"]) == 2
    for column in facts["columns"]:
        column |= {"public": True, "origin": "codebook"}
    Path("schema.json").write_text(json.dumps(facts), encoding="utf-8")
    assert main([*MAKE, "--out", "a.zip"]) == 0
    assert "proven" in capsys.readouterr().out


def test_an_original_with_decimal_commas_is_compared_with_an_export_that_has_points(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    european(desk)
    schema = replace(mixed_schema(), file=FileLayout(delimiter=";", decimal=","))
    (desk / "schema.json").write_text(schema.to_json())
    mixed_table().to_csv(desk / "synthetic.csv", index=False)
    order = ["evaluate", "data.csv", "synthetic.csv", "--schema", "schema.json", "--diagnostic", "marginals"]
    assert main(order) == 0
    assert " 0 " in capsys.readouterr().out.split("Verdict")[1], "the same rows, so no distance at all"


def test_two_runs_never_draw_the_same(desk: Path) -> None:
    for name in ("a.zip", "b.zip"):
        assert main([*MAKE, "--out", name, "--teaching"]) == 0
    assert Path("a.zip").read_bytes() != Path("b.zip").read_bytes()


def test_a_spent_budget_blocks_and_nothing_is_drawn(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MAKE, "--out", "a.zip", "--budget", "1.5"]) == 0
    assert main([*MAKE, "--out", "b.zip"]) == 2
    assert "left: epsilon 0.5" in capsys.readouterr().err
    assert not Path("b.zip").exists()
    opened = account(desk)
    assert opened is not None
    assert opened.spent.epsilon == 1


def test_a_run_that_fails_before_it_draws_is_refunded(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, progress: RunProgress) -> None:
        raise dp.DPSynthError("Broken.")

    monkeypatch.setattr(synthesize, "execute", fail)
    assert main([*MAKE, "--out", "a.zip", "--budget", "1"]) == 2
    opened = account(desk)
    assert opened is not None
    assert [entry.state for entry in opened.entries] == ["refunded"]
    assert not Path("a.zip").exists()


@pytest.mark.parametrize("drawn", [True, False])
def test_an_interrupt_says_whether_the_budget_was_charged(
    desk: Path, drawn: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, progress: RunProgress) -> None:
        if drawn:
            progress.drawn()
        raise KeyboardInterrupt

    monkeypatch.setattr(synthesize, "execute", interrupted)
    assert main([*MAKE, "--out", "a.zip", "--budget", "1"]) == 130
    assert ("was charged" if drawn else "Nothing was charged") in capsys.readouterr().err
    opened = account(desk)
    assert opened is not None
    assert opened.spent.epsilon == (1 if drawn else 0)
    assert not Path("a.zip").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "0"], "epsilon is '0'; allowed: greater than 0"),
        (["--epsilon", "much"], "epsilon is 'much'"),
        (["--mechanism", "magic"], "mechanism is 'magic'; allowed: kd_tree"),
        (["--mechanism", "bayes"], "cannot be published as private"),
        (["--set", "depth"], "--set is 'depth'; allowed: PARAMETER=VALUE"),
        (["--set", "depth=3"], "parameter is 'depth'; allowed:"),
        (["--set", "rows=many"], "rows is 'many'; allowed: a whole number"),
        (["--set", "rows=0"], "rows is 0; allowed: a whole number from 1"),
        (["--set", "split_share=2"], "split_share is 2.0; allowed:"),
        (["--copies", "0"], "copies is 0"),
        (["--schema", "nowhere.json"], "cannot be read"),
        (["--schema", "data.csv"], "file is 'not JSON'"),
        (["--out", "data.csv"], "The file 'data.csv' already exists"),
        (["--out", "nowhere/b.zip"], "cannot be written"),
        (["--budget", "-1"], "epsilon is '-1'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_the_same_words_as_in_the_app(
    desk: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MAKE, "--out", "b.zip", *arguments]) == 2
    heard = capsys.readouterr()
    assert words in heard.err
    assert not heard.out
    assert not Path("b.zip").exists()
    assert (desk / "data.csv").stat().st_size > 1_000


def test_facts_that_nobody_declared_public_are_refused_before_anything_is_charged(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "schema.json").write_text(dp.suggest_schema(dp.read_table(desk / "data.csv")).to_json())
    assert main([*MAKE, "--out", "b.zip", "--budget", "3"]) == 2
    assert "read from the data, not declared public" in capsys.readouterr().err
    assert account(desk) is None


def test_the_account_fixes_the_unit_of_protection(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MAKE, "--out", "a.zip", "--budget", "3"]) == 0
    (desk / "schema.json").write_text(replace(mixed_schema(rows_per_person=2), file=FileLayout()).to_json())
    assert main([*MAKE, "--out", "b.zip"]) == 2
    assert "rows_per_person is 2; allowed: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("needs", "given", "delta"), [(True, [], "1e-6"), (True, ["--delta", "1e-9"], "1e-9"), (False, [], "0")]
)
def test_a_mechanism_that_needs_a_delta_gets_one(
    desk: Path, needs: bool, given: list[str], delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dp.MECHANISMS["kd_tree"], "needs_delta", needs)
    assert main([*MAKE, "--out", "b.zip", "--teaching", *given]) == 0
    with zipfile.ZipFile("b.zip") as archive:
        assert RunConfig.from_json(archive.read("configuration.json")).delta == delta


def test_names_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "\x1b[31mno.csv", "b.csv", "--schema", "\x1b[2Jno.json"]) == 2
    assert "\x1b" not in capsys.readouterr().err


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_moves_on_one_line_of_a_terminal() -> None:
    screen = Screen()
    bar = Bar(screen)
    for done in (0.0, 0.5, 1.0):
        bar("Counting", done)
    bar.close()
    *_, half, full = screen.getvalue().split("\r")
    assert screen.getvalue().count("\n") == 1
    assert half.count("#") == half.count("-") == 15
    assert "100% Counting" in full


def test_without_a_terminal_each_stage_is_one_line() -> None:
    log = io.StringIO()
    bar = Bar(log)
    for step in range(10):
        bar("Counting", step / 10)
    bar("Drawing rows", 1.0)
    bar.close()
    assert [line.split("% ")[1] for line in log.getvalue().splitlines()] == ["Counting", "Drawing rows"]


# ------------------------------------------------------------------ private estimates


def estimated(desk: Path) -> tuple[PaidEstimate, Ledger, str]:
    """A table whose one column was estimated privately, with its schema; nobody has paid yet."""
    (desk / "data.csv").write_text("age\n" + "\n".join(str(20 + i % 60) for i in range(2_000)))
    table = dp.read_table(desk / "data.csv")
    found = dp.estimate_bounds(table["age"], epsilon="0.1", noise=SecureNoise(Budget.of("0.1")))
    column = found.declare(Column(name="age", kind="integer", lower=0, upper=1), others_public=True)
    (desk / "schema.json").write_text(Schema(columns=(column,), file=layout_of(table.attrs)).to_json())
    settings = Settings.from_environment()
    key = settings.installation_key()
    ledger = Ledger(settings.ledger_url, key=key)
    name = ledger.known_name(file_fingerprints((desk / "data.csv").read_bytes(), key))
    ledger.open_account(name, total=Budget.of(3))
    return found, ledger, name


def entries_of(ledger: Ledger, name: str) -> tuple[Entry, ...]:
    account = ledger.account(name)
    assert account is not None
    return account.entries


def test_an_estimate_that_the_account_has_paid_for_is_part_of_the_claim(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, ledger, name = estimated(desk)
    charge = ledger.reserve(name, Budget.of("0.1"), purpose="Estimate")
    ledger.commit(charge.id, result={ESTIMATE: found.to_dict()})
    assert main([*MAKE, "--out", "bundle.zip"]) == 0
    said = capsys.readouterr().out
    assert "epsilon 1.1, delta 0 (pure)" in said
    assert "Range of column 'age': epsilon 0.1" in said
    assert "Synthetic rows: epsilon 1" in said
    assert [entry.budget.epsilon for entry in entries_of(ledger, name)] == [charge.entry.budget.epsilon, 1]


def test_an_estimate_that_nobody_paid_for_is_refused_before_anything_is_charged(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, ledger, name = estimated(desk)
    assert main([*MAKE, "--out", "bundle.zip"]) == 2
    assert "no charge for this estimate is on record for this table" in capsys.readouterr().err
    assert entries_of(ledger, name) == ()
