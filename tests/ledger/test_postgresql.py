"""The ledger in PostgreSQL: charges at once, a restart midway, edits, and a ledger that moves there from a file."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from dpsynth_core.cli import main
from dpsynth_core.errors import BudgetError, LedgerError
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.people import ROLES, Person
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.privacy.budget import Budget
from tests.waiting.postgresql import MISSING, PostgreSQL, postgresql

CENT = Budget.of("0.01")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    with postgresql() as running:
        yield running


@pytest.fixture
def ledger(server: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DPSYNTH_LEDGER_URL", server.url)
    ledger = installed_ledger()
    ledger.open_account("table", total=Budget.of(1))
    return ledger


def spent(ledger: Ledger) -> int:
    account = ledger.account("table")
    assert account is not None
    return int(account.spent.epsilon * 100)


def test_eight_at_once(ledger: Ledger) -> None:
    problems: list[BaseException] = []

    def charge(number: int) -> None:
        try:
            mine = installed_ledger()
            for turn in range(10):
                mine.reserve("table", CENT, purpose="run", run_id=f"{number}-{turn}").commit()
                assert mine.account("table") is not None
        except BaseException as error:  # noqa: BLE001  shown below
            problems.append(error)

    threads = [threading.Thread(target=charge, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not problems
    assert spent(ledger) == 80
    assert ledger.check().position == 2 + 80 * 2


PROCESSES = 20


def race(number: int, results: multiprocessing.SimpleQueue[str]) -> None:
    """Charge until there is nothing left; each success is reported."""
    mine = installed_ledger()
    for turn in range(10):
        try:
            mine.reserve("table", CENT, purpose="race", run_id=f"{number}-{turn}").commit()
            results.put("paid")
        except BudgetError:
            results.put("refused")
            return


def test_twenty_processes_never_spend_more_than_is_left(ledger: Ledger) -> None:
    ledger.reserve("table", Budget.of("0.7"), purpose="before").commit()
    context = multiprocessing.get_context("fork")
    results: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    processes = [context.Process(target=race, args=(number, results)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    found = Counter[str]()
    while not results.empty():
        found[results.get()] += 1
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert found["paid"] == 30, "exactly what was left"
    assert found["refused"] >= 17
    assert spent(ledger) == 100
    ledger.check()


def test_a_ledger_in_a_file_can_be_moved_and_only_one_of_the_two_is_used_on(
    server: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    settings = Settings.from_environment()
    person = Person(subject="https://id 1", name="Sue", roles=frozenset(ROLES))
    before = installed_ledger(settings, by=person)
    before.open_account("table", total=Budget.of(1), label="Ürvey")
    before.reserve("table", CENT, purpose="run").commit(result={"found": "x"})
    DecisionStore(before).record_look("table")
    end = before.check()
    monkeypatch.setenv("DPSYNTH_NEW_LEDGER_URL", server.url)
    assert main(["ledger", "move"]) == 0
    assert main(["ledger", "move"]) == 2, "the new database is not empty any more"

    monkeypatch.setenv("DPSYNTH_LEDGER_URL", server.url)
    moved = installed_ledger(by=person)
    assert moved.check() == end
    assert moved.account("table") == before.account("table")
    charge = moved.reserve("table", CENT, purpose="after the move")
    assert charge.id == 2, "numbers go on where they were"
    with pytest.raises(LedgerError, match="older copy"):
        installed_ledger(settings, by=person).reserve("table", CENT, purpose="from the old one")


def test_a_restart_midway_loses_nothing_and_doubles_nothing(ledger: Ledger, server: PostgreSQL) -> None:
    done, refused, stop = set[str](), 0, threading.Event()

    def charge() -> None:
        nonlocal refused
        for number in range(95):
            if stop.is_set():
                return
            run_id = f"run {number}"
            for _ in range(200):  # a visitor who tries again
                try:
                    installed_ledger().reserve("table", CENT, purpose="run", run_id=run_id)
                    done.add(run_id)
                    break
                except LedgerError:
                    refused += 1
                    time.sleep(0.05)

    thread = threading.Thread(target=charge)
    thread.start()
    for _ in range(3):
        time.sleep(1)
        server.stop()
        server.start()
    stop.set()
    thread.join(60)
    account = ledger.account("table")
    assert account is not None
    on_record = [entry.run_id for entry in account.entries]
    assert refused  # it was indeed down in between
    assert done <= set(on_record)
    assert len(on_record) == len(set(on_record))
    ledger.check()


def test_an_edit_is_noticed(ledger: Ledger, server: PostgreSQL) -> None:
    ledger.reserve("table", CENT, purpose="run")
    with sa.create_engine(server.url).begin() as connection:
        connection.execute(sa.text("UPDATE dpsynth_charges SET epsilon = '1/1000'"))
    with pytest.raises(LedgerError, match="was changed"):
        ledger.account("table")


def test_an_emptied_database_is_noticed(ledger: Ledger, server: PostgreSQL) -> None:
    with sa.create_engine(server.url).begin() as connection:
        connection.execute(sa.text("TRUNCATE dpsynth_accounts, dpsynth_chain CASCADE"))
    with pytest.raises(LedgerError, match="has 0 records, but had 2"):
        ledger.account("table")
