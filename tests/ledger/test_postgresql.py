"""The ledger in PostgreSQL: many charge at once, a restart midway loses nothing, and edits are noticed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
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
