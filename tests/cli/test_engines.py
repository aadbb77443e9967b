"""The command on rows that stay where they are: the same account, and nothing charged where something is wrong."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dpsynth_core.cli import main
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.settings import Settings
from tests.tables.streamed import SCHEMA, mixed_frame, parquet_file

MAKE = ["synthesize", "rows.parquet", "--schema", "schema.json", "--mechanism", "kd_tree", "--epsilon", "1"]
ENGINE = ["--engine", "duckdb"]


@pytest.fixture
def folder(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(desk)
    parquet_file(desk)
    (desk / "schema.json").write_text(SCHEMA.to_json())
    return desk


def account(folder: Path) -> Account | None:
    settings = Settings.from_environment()
    key = settings.installation_key()
    ledger = Ledger(settings.ledger_url, key=key)
    return ledger.account(ledger.known_name(file_fingerprints((folder / "rows.parquet").read_bytes(), key)))


def test_memory_and_engine_share_one_account(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MAKE, "--out", "first.zip", "--budget", "2"]) == 0
    assert main([*MAKE, *ENGINE, "--out", "second.zip"]) == 0
    assert "epsilon 0 of 2" in capsys.readouterr().out
    opened = account(folder)
    assert opened is not None
    assert [entry.state for entry in opened.entries] == ["committed", "committed"]
    assert main([*MAKE, *ENGINE, "--out", "third.zip"]) != 0, "a spent budget blocks"
    with zipfile.ZipFile("second.zip") as bundle:
        assert any(name.endswith(".csv") for name in bundle.namelist())


TEST = ["compare", "rows.parquet", "--schema", "schema.json", "--value", "k", "--group", "b", "--epsilon", "1"]


def test_two_groups_are_compared_where_the_rows_are_and_charged_to_the_same_account(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*TEST, *ENGINE, "--budget", "2", "--budget-delta", "2e-6"]) == 0
    assert "on 48 original rows" in capsys.readouterr().out
    assert main(TEST) == 2
    assert "has paid for this test before" in capsys.readouterr().err
    monkeypatch.setattr("dpsynth_core.inference.private_comparison.MAX_TEST_ROWS", 30)
    assert main([*TEST, *ENGINE, "--again"]) == 0
    assert "on 30 of 48 original rows, drawn at random by position" in capsys.readouterr().out
    opened = account(folder)
    assert opened is not None
    assert [(entry.state, entry.budget.epsilon) for entry in opened.entries] == [("committed", 1), ("committed", 1)]
    assert [found.n for found in opened.comparisons] == [48, 30]


def test_nothing_is_charged_where_something_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = [word.replace("rows.parquet", "absent.parquet") for word in MAKE]
    assert main([*absent, *ENGINE, "--out", "a.zip"]) == 2
    assert "no file" in capsys.readouterr().err
    assert main([*MAKE, "--table", "people", "--out", "a.zip"]) == 2
    assert "--engine" in capsys.readouterr().err
    mixed_frame().drop(columns="k").to_parquet("rows.parquet")
    assert main([*MAKE, *ENGINE, "--out", "a.zip"]) == 2
    assert "'k'" in capsys.readouterr().err
    assert account(folder) is None
    assert not Path("a.zip").exists()


def test_more_rows_than_memory_holds_are_written_as_they_are_drawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dpsynth_core.runs.configuration.MAX_ROWS_HELD", 40)
    assert main([*MAKE, *ENGINE, "--copies", "2", "--out", "a.zip"]) == 2
    assert "at most 40 synthetic rows" in capsys.readouterr().err
    assert account(folder) is None
    assert main([*MAKE, *ENGINE, "--set", "rows=300", "--out", "a.zip"]) == 0
    assert "300 synthetic rows from 48 original ones" in capsys.readouterr().out
    with zipfile.ZipFile("a.zip") as bundle:
        assert "synthetic.csv" not in bundle.namelist()
        assert pq.read_metadata(bundle.open("synthetic.parquet")).num_rows == 300
    opened = account(folder)
    assert opened is not None
    assert [entry.state for entry in opened.entries] == ["committed"]


def test_a_file_that_changes_before_the_first_draw_is_not_charged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dpsynth_core.cli.synthesize as module

    check = module._check
    rows = folder / "rows.parquet"
    whole = rows.read_bytes()

    def meddle(*given: object) -> None:
        check(*given)  # type: ignore[arg-type]
        rows.write_bytes(whole)

    monkeypatch.setattr(module, "_check", meddle)
    assert main([*MAKE, *ENGINE, "--out", "a.zip"]) == 2
    assert "changed" in capsys.readouterr().err
    opened = account(folder)
    assert opened is not None
    assert [entry.state for entry in opened.entries] == ["refunded"], "nothing was drawn"
