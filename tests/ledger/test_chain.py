"""Nobody can reset a budget by losing, shortening, editing or replacing the ledger, and no crash locks anybody out."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpsynth_core.errors import BudgetError, LedgerError
from dpsynth_core.ledger import head
from dpsynth_core.ledger.adoption import adopt
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Budget
from tests.ledger.crashing import POINTS

TENTH = Budget.of("0.1")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


@pytest.fixture
def ledger(settings: Settings) -> Ledger:
    """Two accounts; on the first a committed, a refunded and an open charge."""
    ledger = installed_ledger(settings)
    ledger.open_account("table", total=Budget.of(1, "1e-6"), label="Survey")
    ledger.open_account("other", total=Budget.of(1))
    ledger.reserve("table", TENTH, purpose="first").commit(result={"found": 1})
    ledger.reserve("table", TENTH, purpose="second").refund("nothing drawn")
    ledger.reserve("table", TENTH, purpose="third")
    return ledger


def database_file(settings: Settings) -> Path:
    return settings.home / "ledger.db"


def edit(settings: Settings, *statements: str) -> None:
    connection = sqlite3.connect(database_file(settings))
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def remove(settings: Settings) -> None:
    for file in settings.home.glob("ledger.db*"):
        file.unlink()


def copied(settings: Settings, folder: Path) -> Path:
    """A copy of the ledger as it is now."""
    edit(settings, "PRAGMA user_version")
    connection = sqlite3.connect(database_file(settings))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return Path(shutil.copy(database_file(settings), folder / "copy.db"))


def restore(settings: Settings, copy: Path) -> None:
    remove(settings)
    shutil.copy(copy, database_file(settings))


def assert_refused(ledger: Ledger, match: str) -> None:
    """By the running app, by one that starts now, for reading and for charging."""
    for use in (
        lambda: ledger.account("table"),
        lambda: ledger.reserve("table", TENTH, purpose="again"),
        lambda: ledger.open_account("table", total=Budget.of(1, "1e-6")),
        lambda: installed_ledger().check(),
    ):
        with pytest.raises(LedgerError, match=match) as refused:
            use()
        assert "ledger check" in str(refused.value) or "ledger adopt" in str(refused.value)


# What is missing


def test_a_ledger_in_use_is_found_complete(ledger: Ledger, settings: Settings) -> None:
    assert ledger.check().position == installed_ledger(settings).check().position == 7
    account = installed_ledger(settings).account("table")
    assert account is not None
    assert account.spent.epsilon == Budget.of("0.2").epsilon


def test_a_removed_ledger_does_not_begin_afresh(ledger: Ledger, settings: Settings) -> None:
    remove(settings)
    with pytest.raises(LedgerError, match="no such table"):
        ledger.account("table")  # of an app that was running
    with pytest.raises(LedgerError, match=r"has 0 records, but had 7 when it was last used here: it was removed"):
        installed_ledger(settings)
    assert_refused(ledger, r"has 0 records, but had 7 when it was last used")


def test_an_emptied_ledger_does_not_begin_afresh(ledger: Ledger, settings: Settings) -> None:
    tables = ("results", "settlements", "charges", "accounts", "chain")
    edit(settings, *(f"DELETE FROM dpsynth_{table}" for table in tables))  # noqa: S608
    assert_refused(ledger, r"has 0 records, but had 7")


def test_an_older_copy_is_refused_and_the_newest_is_taken_back(
    ledger: Ledger, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    old = copied(settings, tmp_path / "old")
    ledger.reserve("table", Budget.of("0.7"), purpose="much")
    newest = copied(settings, tmp_path)
    restore(settings, old)
    assert_refused(ledger, r"has 7 records, but had 8")
    restore(settings, newest)
    with pytest.raises(BudgetError):
        installed_ledger(settings).reserve("table", Budget.of("0.7"), purpose="again")


def test_the_end_cannot_be_cut_off(ledger: Ledger, settings: Settings) -> None:
    edit(settings, "DELETE FROM dpsynth_charges WHERE id = 3", "DELETE FROM dpsynth_chain WHERE position = 7")
    assert_refused(ledger, "has 6 records, but had 7")


def test_another_ledger_of_the_same_key_is_refused(ledger: Ledger, settings: Settings, tmp_path: Path) -> None:
    """Made with the key, but elsewhere: longer, with other charges."""
    elsewhere = Ledger(f"sqlite:///{tmp_path}/elsewhere.db", key=settings.installation_key())
    elsewhere.open_account("table", total=Budget.of(1, "1e-6"), label="Survey")
    for number in range(9):
        elsewhere.reserve("table", Budget.of("0.001"), purpose=f"run {number}")
    del elsewhere
    connection = sqlite3.connect(tmp_path / "elsewhere.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    restore(settings, tmp_path / "elsewhere.db")
    assert_refused(ledger, "not the ledger that was last used here")


def test_a_lost_head_is_noticed(ledger: Ledger, settings: Settings) -> None:
    settings.head_file.unlink()
    assert_refused(ledger, "head at .* is missing")


def test_neither_head_nor_ledger_can_be_removed_together(ledger: Ledger, settings: Settings) -> None:
    remove(settings)
    settings.head_file.unlink()
    assert_refused(ledger, "head at .* is missing")


@pytest.mark.parametrize("content", ["", "[]", "null", '[0, "", ""]', "[1e400, 1, 1]", "x" * 5_000])
def test_an_edited_head_is_refused(ledger: Ledger, settings: Settings, content: str) -> None:
    settings.head_file.write_text(content, encoding="utf-8")
    with pytest.raises(LedgerError, match="was changed, or belongs to another installation key"):
        ledger.account("table")


# What was changed

FIELDS = {
    "accounts": ("fingerprint", "rows_per_person", "label", "epsilon", "delta", "created"),
    "charges": ("fingerprint", "run_id", "purpose", "epsilon", "delta", "details", "created"),
    "settlements": ("state", "reason", "settled"),
    "results": ("result",),
    "chain": ("fingerprint", "kind", "item", "previous", "digest", "position"),
}
VALUES = ["1/1000", "", "not a number", "1e-9999999", "1/0", "-1", "[]", "refunded", "2024-01-01T00:00:00+00:00", "9"]


@pytest.mark.parametrize(("table", "field"), [(table, field) for table, fields in FIELDS.items() for field in fields])
def test_every_edited_field_is_a_ledger_error(ledger: Ledger, settings: Settings, table: str, field: str) -> None:
    copy = copied(settings, settings.home.parent)
    key = {"accounts": "fingerprint = 'table'", "charges": "id = 1", "chain": "position = 3"}.get(table, "charge = 1")
    for value in VALUES:
        restore(settings, copy)
        if (field, value) == ("reason", ""):
            continue  # as it was
        try:
            edit(settings, f"UPDATE dpsynth_{table} SET {field} = '{value}' WHERE {key}")  # noqa: S608
        except sqlite3.IntegrityError:
            continue  # the database itself refuses it
        with pytest.raises(LedgerError):
            ledger.check()
        if field != "fingerprint":  # the rows of another account, which this reading does not see
            with pytest.raises(LedgerError):
                ledger.account("table")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO dpsynth_settlements VALUES (3, 'refunded', 'I say so', '2026-01-01T00:00:00+00:00')",
        "DELETE FROM dpsynth_settlements WHERE charge = 1",
        "DELETE FROM dpsynth_results",
        "DELETE FROM dpsynth_charges WHERE id = 3",
        "UPDATE dpsynth_settlements SET state = 'refunded'",
        "DELETE FROM dpsynth_chain WHERE position = 4",
        "INSERT INTO dpsynth_charges SELECT 9, fingerprint, 'again', purpose, '1/9', delta, details, created "
        "FROM dpsynth_charges WHERE id = 3",
        "INSERT INTO dpsynth_chain SELECT 8, fingerprint, kind, item, previous, digest FROM dpsynth_chain "
        "WHERE position = 7",
    ],
)
def test_records_cannot_be_added_or_removed(ledger: Ledger, settings: Settings, statement: str) -> None:
    edit(settings, statement)
    assert_refused(ledger, r"(missing|changed|double|nobody has entered)")


def test_what_is_wrong_with_one_account_is_noticed_by_a_check_of_all(ledger: Ledger, settings: Settings) -> None:
    edit(settings, "UPDATE dpsynth_accounts SET epsilon = '100' WHERE fingerprint = 'other'")
    with pytest.raises(LedgerError, match="was changed"):
        ledger.check()
    with pytest.raises(LedgerError, match="was changed"):
        ledger.account("other")


# Taking over


def as_before_there_was_a_chain(settings: Settings) -> None:
    edit(settings, "DROP TABLE dpsynth_chain")
    settings.head_file.unlink()


def test_an_older_ledger_is_taken_over_once_with_what_it_has_spent(ledger: Ledger, settings: Settings) -> None:
    before = ledger.account("table")
    as_before_there_was_a_chain(settings)
    with pytest.raises(LedgerError, match="ledger adopt"):
        installed_ledger(settings)
    for expected in (None, 0, 1, 3):
        with pytest.raises(LedgerError, match=r"holds 2 account\(s\) and 3 charge\(s\)\. Nothing was changed"):
            adopt(settings, accounts=expected)
    with pytest.raises(LedgerError, match="ledger adopt"):
        installed_ledger(settings)
    assert str(adopt(settings, accounts=2)) == "2 account(s) and 3 charge(s)"
    assert installed_ledger(settings).account("table") == before
    with pytest.raises(LedgerError, match="nothing to adopt"):
        adopt(settings, accounts=2)


def test_an_older_ledger_without_its_head_only_is_recognised(ledger: Ledger, settings: Settings) -> None:
    edit(settings, "DROP TABLE dpsynth_chain")
    with pytest.raises(LedgerError, match="has 0 records, but had 7"):
        installed_ledger(settings)
    assert ledger


def test_a_key_on_another_machine_takes_the_ledger_over_as_it_is(ledger: Ledger, settings: Settings) -> None:
    settings.head_file.unlink()
    adopt(settings, accounts=2)
    assert installed_ledger(settings).check() == ledger.check()


def test_adoption_accepts_no_changed_ledger(ledger: Ledger, settings: Settings) -> None:
    settings.head_file.unlink()
    edit(settings, "UPDATE dpsynth_charges SET epsilon = '1/1000' WHERE id = 1")
    with pytest.raises(LedgerError, match="was changed"):
        adopt(settings, accounts=2)
    assert not settings.head_file.exists()
    assert ledger


def test_adoption_does_not_forget_what_a_head_knows(ledger: Ledger, settings: Settings) -> None:
    remove(settings)
    with pytest.raises(LedgerError, match="has its head"):
        adopt(settings, accounts=0)
    assert ledger


# Crashes and crowds


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_moment_of_a_charge_neither_locks_out_nor_lets_it_be_undone(
    ledger: Ledger, settings: Settings, tmp_path: Path, point: str
) -> None:
    copy = copied(settings, tmp_path)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.ledger.crashing", point],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ},
        check=False,
    )
    assert killed.returncode == -9, killed.stderr
    assert "returned" not in killed.stdout  # so nothing was drawn for it
    after = installed_ledger(settings)
    account = after.account("table")
    assert account is not None
    assert ("killed" in [entry.run_id for entry in account.entries]) == (point != "before the commit")
    remembered = head.Head(file=settings.head_file, key=settings.installation_key()).read()
    assert remembered is not None
    if remembered.position == 8:
        restore(settings, copy)
        assert_refused(ledger, "has 7 records, but had 8")
    else:
        after.reserve("table", TENTH, purpose="the next one")
        after.check()
        restore(settings, copy)
        assert_refused(ledger, r"has 7 records, but had (8|9)")


def test_a_start_makes_up_for_a_head_that_was_left_behind(
    ledger: Ledger, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(settings, tmp_path)
    behind = settings.head_file.read_bytes()
    ledger.reserve("table", TENTH, purpose="killed before the head was written")
    settings.head_file.write_bytes(behind)
    installed_ledger(settings).check()
    restore(settings, copy)
    assert_refused(ledger, "has 7 records, but had 8")
    assert monkeypatch


def test_without_a_head_nothing_is_drawn_and_nothing_is_spent(
    ledger: Ledger, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(LedgerError, match="cannot be written: No space left on device"):
            ledger.reserve("table", TENTH, purpose="run", run_id="full")
    account = installed_ledger(settings).account("table")
    assert account is not None
    assert [entry.state for entry in account.entries] == ["committed", "refunded", "reserved", "refunded"]
    assert not list(settings.home.glob(".head*"))


def charge_many(number: int) -> None:
    ledger = installed_ledger()
    for turn in range(5):
        charge = ledger.reserve("table", Budget.of("0.01"), purpose="run", run_id=f"{number}-{turn}")
        (charge.commit, lambda: charge.refund("nothing drawn"))[turn % 2]()  # noqa: B023


@pytest.mark.slow
def test_eight_processes_charge_at_once_and_the_chain_holds(ledger: Ledger, settings: Settings) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=charge_many, args=(number,)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 8
    assert ledger.check().position == 7 + 8 * 5 * 2
    account = ledger.account("table")
    assert account is not None
    assert account.spent.epsilon == Budget.of("0.2").epsilon + 8 * 3 * Budget.of("0.01").epsilon
    remembered = head.Head(file=settings.head_file, key=settings.installation_key()).read()
    assert remembered == ledger.check()


# Rights


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_other_accounts_of_the_machine_are_kept_out(ledger: Ledger, settings: Settings) -> None:
    files = [file for file in settings.home.iterdir() if file.is_file()]
    assert {"ledger.db", "installation.key", "installation.head"} <= {file.name for file in files}
    assert {mode(file) for file in files} == {0o600}
    assert mode(settings.home) == 0o700
    assert ledger


def test_what_was_open_is_closed(ledger: Ledger, settings: Settings) -> None:
    settings.home.chmod(0o755)
    database_file(settings).chmod(0o644)
    settings.key_file.chmod(0o440)
    installed_ledger(settings)
    assert mode(settings.home) == 0o700
    assert mode(database_file(settings)) == 0o600
    assert mode(settings.key_file) == 0o400
    assert ledger


def test_a_head_elsewhere(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSYNTH_HEAD_FILE", str(tmp_path / "safe" / "ledger.head"))
    moved = Settings.from_environment()
    installed_ledger(moved).open_account("table", total=Budget.of(1))
    assert (tmp_path / "safe" / "ledger.head").exists()
    assert not settings.head_file.exists()
