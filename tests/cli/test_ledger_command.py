"""The command that examines the ledger, or takes one over."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dpsynth_core.cli import main
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Budget


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    installed_ledger().open_account("table", total=Budget.of(1))
    return tmp_path / "home"


def test_check_finds_a_ledger_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "check"]) == 0
    assert capsys.readouterr().out == "The ledger is complete and unchanged: 2 record(s).\n"


def test_check_finds_a_change(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connection = sqlite3.connect(home / "ledger.db")
    with connection:
        connection.execute("UPDATE dpsynth_accounts SET epsilon = '9'")
    connection.close()
    assert main(["ledger", "check"]) == 2
    assert "Record 2 of the ledger, of kind 'account', was changed." in capsys.readouterr().err


def test_adopt_asks_for_the_number_of_accounts(capsys: pytest.CaptureFixture[str]) -> None:
    Settings.from_environment().head_file.unlink()
    assert main(["ledger", "check"]) == 2
    assert "ledger adopt" in capsys.readouterr().err
    assert main(["ledger", "adopt"]) == 2
    assert "repeat the command with '--accounts 1'" in capsys.readouterr().err
    assert main(["ledger", "adopt", "--accounts", "1"]) == 0
    assert capsys.readouterr().out.startswith("The ledger was adopted with 1 account(s) and 0 charge(s).\n")
    assert main(["ledger", "check"]) == 0


@pytest.mark.parametrize("head_first", [True, False])
def test_a_backup_holds_while_the_app_goes_on_if_the_head_is_copied_first(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head_first: bool
) -> None:
    """The order of docs/server.md, and the other one."""
    backup = tmp_path / "backup"
    backup.mkdir(mode=0o700)

    def copy_head() -> None:
        for file in home.glob("installation.*"):
            shutil.copy2(file, backup)

    def copy_database() -> None:
        with closing(sqlite3.connect(home / "ledger.db")) as old, closing(sqlite3.connect(backup / "ledger.db")) as new:
            old.backup(new)

    steps = [copy_head, copy_database]
    for step in steps if head_first else reversed(steps):
        step()
        installed_ledger().reserve("table", Budget.of("0.1"), purpose="meanwhile").commit()
    monkeypatch.setenv("DPSYNTH_HOME", str(backup))
    assert main(["ledger", "check"]) == (0 if head_first else 2)
