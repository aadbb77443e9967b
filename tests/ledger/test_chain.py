"""Nobody can reset a budget by losing, shortening, editing or replacing the ledger, and no crash locks anybody out."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dpsynth_core.errors import BudgetError, LedgerError
from dpsynth_core.ledger import chain, head
from dpsynth_core.ledger import ledger as ledger_module
from dpsynth_core.ledger.adoption import adopt
from dpsynth_core.ledger.chain import FIRST_KINDS, Chain, unlinked
from dpsynth_core.ledger.decisions import DecisionRow, DecisionStore
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.tables import CHAIN
from dpsynth_core.privacy.budget import Budget
from tests.ledger.crashing import POINTS

TENTH = Budget.of("0.1")
RECORDS = 11
"""In the ledger of most tests here."""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


def decision(choice: str) -> DecisionRow:
    decided = datetime(2026, 1, 1, tzinfo=UTC)
    return DecisionRow(release="r", choice=choice, reviewer="Ada", note="", decided=decided, details={"bundle": "b"})


@pytest.fixture
def ledger(settings: Settings) -> Ledger:
    """Two accounts; on the first a committed, a refunded and an open charge, two decisions and a look."""
    ledger = installed_ledger(settings)
    ledger.open_account("table", total=Budget.of(1, "1e-6"), label="Survey")
    ledger.open_account("other", total=Budget.of(1))
    ledger.reserve("table", TENTH, purpose="first").commit(result={"found": 1})
    ledger.reserve("table", TENTH, purpose="second").refund("nothing drawn")
    store = DecisionStore(ledger)
    store.record("table", decision("approve"), ticket="1")
    store.record("table", decision("hold"), ticket="2")
    store.record_look("table")
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
        lambda: DecisionStore(ledger).history("table"),
        lambda: DecisionStore(ledger).looked("table"),
        lambda: DecisionStore(ledger).record("table", decision("approve"), ticket="new"),
        lambda: DecisionStore(ledger).record_look("table"),
        lambda: installed_ledger().check(),
    ):
        with pytest.raises(LedgerError, match=match) as refused:
            use()
        assert "ledger check" in str(refused.value) or "ledger adopt" in str(refused.value)


# What is missing


def test_a_ledger_in_use_is_found_complete(ledger: Ledger, settings: Settings) -> None:
    assert ledger.check().position == installed_ledger(settings).check().position == RECORDS
    account = installed_ledger(settings).account("table")
    assert account is not None
    assert account.spent.epsilon == Budget.of("0.2").epsilon


def test_a_removed_ledger_does_not_begin_afresh(ledger: Ledger, settings: Settings) -> None:
    remove(settings)
    with pytest.raises(LedgerError, match="no such table"):
        ledger.account("table")  # of an app that was running
    with pytest.raises(LedgerError, match=r"has 0 records, but had 11 when it was last used here: it was removed"):
        installed_ledger(settings)
    assert_refused(ledger, r"has 0 records, but had 11 when it was last used")


def test_an_emptied_ledger_does_not_begin_afresh(ledger: Ledger, settings: Settings) -> None:
    tables = ("results", "settlements", "charges", "decisions", "looks", "accounts", "chain")
    edit(settings, *(f"DELETE FROM dpsynth_{table}" for table in tables))  # noqa: S608
    assert_refused(ledger, r"has 0 records, but had 11")


def test_an_older_copy_is_refused_and_the_newest_is_taken_back(
    ledger: Ledger, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    old = copied(settings, tmp_path / "old")
    ledger.reserve("table", Budget.of("0.7"), purpose="much")
    newest = copied(settings, tmp_path)
    restore(settings, old)
    assert_refused(ledger, r"has 11 records, but had 12")
    restore(settings, newest)
    with pytest.raises(BudgetError):
        installed_ledger(settings).reserve("table", Budget.of("0.7"), purpose="again")


def test_the_end_cannot_be_cut_off(ledger: Ledger, settings: Settings) -> None:
    edit(settings, "DELETE FROM dpsynth_charges WHERE id = 3", "DELETE FROM dpsynth_chain WHERE position = 11")
    assert_refused(ledger, "has 10 records, but had 11")


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
    "decisions": ("fingerprint", "ticket", "release", "choice", "reviewer", "note", "decided", "details"),
    "looks": ("fingerprint", "first"),
    "chain": ("fingerprint", "kind", "item", "previous", "digest", "position"),
}
KEYS = {
    "accounts": "fingerprint = 'table'",
    "charges": "id = 1",
    "decisions": "id = 1",
    "looks": "fingerprint = 'table'",
    "chain": "position = 4",
}
VALUES = ["1/1000", "", "not a number", "1e-9999999", "1/0", "-1", "[]", "refunded", "2024-01-01T00:00:00+00:00", "9"]


@pytest.mark.parametrize(("table", "field"), [(table, field) for table, fields in FIELDS.items() for field in fields])
def test_every_edited_field_is_a_ledger_error(ledger: Ledger, settings: Settings, table: str, field: str) -> None:
    copy = copied(settings, settings.home.parent)
    key = KEYS.get(table, "charge = 1")
    for value in VALUES:
        restore(settings, copy)
        if (field, value) in (("reason", ""), ("note", "")):
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
        "DELETE FROM dpsynth_chain WHERE kind = 'format'",
        "UPDATE dpsynth_chain SET kind = 'look' WHERE kind = 'format'",
        "DELETE FROM dpsynth_decisions",
        "DELETE FROM dpsynth_decisions WHERE id = 2",
        "UPDATE dpsynth_decisions SET id = 3 - id + 100; UPDATE dpsynth_decisions SET id = id - 100",
        "UPDATE dpsynth_decisions SET choice = 'approve' WHERE id = 2",
        "INSERT INTO dpsynth_decisions SELECT 3, fingerprint, '3', release, choice, reviewer, note, decided, details "
        "FROM dpsynth_decisions WHERE id = 1",
        "DELETE FROM dpsynth_looks",
        "DELETE FROM dpsynth_looks; DELETE FROM dpsynth_chain WHERE kind = 'look'",
        "DELETE FROM dpsynth_decisions WHERE id = 2; DELETE FROM dpsynth_chain WHERE kind = 'decision' AND item = '2'; "
        "UPDATE dpsynth_chain SET position = position - 1 WHERE position > 9",
        "INSERT INTO dpsynth_charges SELECT 9, fingerprint, 'again', purpose, '1/9', delta, details, created "
        "FROM dpsynth_charges WHERE id = 3",
        "INSERT INTO dpsynth_chain SELECT 12, fingerprint, kind, item, previous, digest FROM dpsynth_chain "
        "WHERE position = 11",
    ],
)
def test_records_cannot_be_added_or_removed(ledger: Ledger, settings: Settings, statement: str) -> None:
    edit(settings, *statement.split("; "))
    assert_refused(ledger, r"(records, but had|missing|changed|double|nobody has entered)")


def test_what_is_wrong_with_one_account_is_noticed_by_a_check_of_all(ledger: Ledger, settings: Settings) -> None:
    edit(settings, "UPDATE dpsynth_accounts SET epsilon = '100' WHERE fingerprint = 'other'")
    with pytest.raises(LedgerError, match="was changed"):
        ledger.check()
    with pytest.raises(LedgerError, match="was changed"):
        ledger.account("other")


def test_a_look_that_nobody_has_recorded_is_noticed(ledger: Ledger, settings: Settings) -> None:
    """It would say that private diagnostics led to a choice that they did not lead to."""
    edit(settings, "INSERT INTO dpsynth_looks VALUES ('other', '2026-01-01T00:00:00+00:00')")
    for use in (DecisionStore(ledger).looked, DecisionStore(ledger).history, ledger.account):
        with pytest.raises(LedgerError, match="nobody has entered"):
            use("other")
    assert DecisionStore(ledger).looked("table")


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


def as_before_decisions_were_chained(settings: Settings) -> None:
    """Only accounts, charges and settlements have links, and the head knows the last of them."""
    key = settings.installation_key()
    with sa.create_engine(settings.ledger_url).begin() as connection:
        connection.execute(CHAIN.delete())
        # A chain that is not empty gets no mark of its own.
        for position, (kind, item) in enumerate(list(unlinked(connection, FIRST_KINDS)), start=1):
            ((owner, _, values),) = chain._records(connection, kind, item)
            last = chain.last_link(connection)
            digest = Chain(key)._digest(position, last.digest, kind, owner, str(item), *values)
            row = {"position": position, "fingerprint": owner, "kind": kind, "item": str(item)}
            connection.execute(CHAIN.insert().values(**row, previous=last.digest, digest=digest))
        end = chain.last_link(connection)
    head.Head(file=settings.head_file, key=key).write(end)
    ledger_module._checked.clear()  # as when the app starts again after the update


def test_decisions_and_looks_of_an_older_ledger_are_taken_into_the_chain(ledger: Ledger, settings: Settings) -> None:
    account, history = ledger.account("table"), DecisionStore(ledger).history("table")
    as_before_decisions_were_chained(settings)
    with pytest.raises(LedgerError, match="chain was changed"):
        ledger.account("table")  # the ledger of a running app is never older than the app
    after = installed_ledger(settings)
    assert after.check().position == RECORDS
    assert after.account("table") == account
    assert DecisionStore(after).history("table") == history
    assert DecisionStore(after).looked("table")
    remembered = head.Head(file=settings.head_file, key=settings.installation_key()).read()
    assert remembered == after.check()
    edit(settings, "DELETE FROM dpsynth_looks")
    assert_refused(after, "missing")


def test_an_older_chain_is_adopted_without_its_head(ledger: Ledger, settings: Settings) -> None:
    history = DecisionStore(ledger).history("table")
    as_before_decisions_were_chained(settings)
    settings.head_file.unlink()
    adopt(settings, accounts=2)
    assert DecisionStore(installed_ledger(settings)).history("table") == history
    assert installed_ledger(settings).check().position == RECORDS


def test_an_older_ledger_that_was_edited_is_not_taken_over(ledger: Ledger, settings: Settings) -> None:
    as_before_decisions_were_chained(settings)
    edit(settings, "UPDATE dpsynth_charges SET epsilon = '1/1000' WHERE id = 1")
    with pytest.raises(LedgerError, match="was changed"):
        installed_ledger(settings)
    assert ledger


def test_nobody_can_make_a_ledger_pass_as_older_to_slip_a_decision_in(ledger: Ledger, settings: Settings) -> None:
    edit(
        settings,
        "DELETE FROM dpsynth_chain WHERE kind = 'format'",
        "UPDATE dpsynth_chain SET position = position - 1",
        "UPDATE dpsynth_decisions SET choice = 'approve'",
    )
    ledger_module._checked.clear()
    with pytest.raises(LedgerError, match="has 10 records, but had 11"):
        installed_ledger(settings)
    with pytest.raises(LedgerError, match=r"was changed|missing"):
        Ledger(settings.ledger_url, key=settings.installation_key()).check()  # by somebody without the head
    assert ledger


def test_an_older_ledger_without_its_head_only_is_recognised(ledger: Ledger, settings: Settings) -> None:
    edit(settings, "DROP TABLE dpsynth_chain")
    with pytest.raises(LedgerError, match="has 0 records, but had 11"):
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
    if remembered.position == RECORDS + 1:
        restore(settings, copy)
        assert_refused(ledger, "has 11 records, but had 12")
    else:
        after.reserve("table", TENTH, purpose="the next one")
        after.check()
        restore(settings, copy)
        assert_refused(ledger, r"has 11 records, but had (12|13)")


def test_a_start_makes_up_for_a_head_that_was_left_behind(
    ledger: Ledger, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(settings, tmp_path)
    behind = settings.head_file.read_bytes()
    ledger.reserve("table", TENTH, purpose="killed before the head was written")
    settings.head_file.write_bytes(behind)
    installed_ledger(settings).check()
    restore(settings, copy)
    assert_refused(ledger, "has 11 records, but had 12")
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
    assert ledger.check().position == RECORDS + 8 * 5 * 2
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
