from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from dpsynth_core.errors import BudgetError, LedgerError, ParameterError
from dpsynth_core.ledger.accounts import Account, Balance, Entry
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.privacy.budget import Budget

SPAWN = multiprocessing.get_context("spawn")
TENTH = Budget.of("1/10")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def ledger(url: str) -> Ledger:
    ledger = Ledger(url)
    ledger.open_account("table", total=Budget.of(1, "1e-6"), label="Survey")
    return ledger


def account_in(ledger: Ledger) -> Account:
    account = ledger.account("table")
    assert account is not None
    return account


def entries_in(ledger: Ledger) -> tuple[Entry, ...]:
    return account_in(ledger).entries


def spent_in(ledger: Ledger) -> Fraction:
    return account_in(ledger).spent.epsilon


# Accounts


def test_an_account_states_its_terms(ledger: Ledger) -> None:
    account = account_in(ledger)
    assert (account.label, account.total, account.rows_per_person) == ("Survey", Budget.of(1, "1e-6"), 1)
    assert account.spent == Balance(epsilon=Fraction(0), delta=Fraction(0))
    assert account.left == Balance(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert account.created.tzinfo == UTC
    assert account.entries == ()


def test_an_account_is_there_after_a_restart(url: str, ledger: Ledger) -> None:
    charge = ledger.reserve("table", TENTH, purpose="first")
    assert Ledger(url).account("table") == ledger.account("table")
    assert entries_in(Ledger(url))[0].id == charge.id


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_whoever_only_looks_does_not_queue_behind_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    """Every page opens the ledger: with many visitors, opening it as a writer would make them wait for each other."""
    file = tmp_path / "ledger.db"
    Ledger(f"sqlite:///{file}", key=key).open_account("table", total=Budget.of(1))
    DecisionStore(Ledger(f"sqlite:///{file}", key=key))
    monkeypatch.setattr("dpsynth_core.ledger.database.SQLITE_WAIT_SECONDS", 0.1)
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert account_in(Ledger(f"sqlite:///{file}", key=key)).total == Budget.of(1)
        assert DecisionStore(Ledger(f"sqlite:///{file}", key=key)).history("table") == ()
        with pytest.raises(LedgerError, match="locked"):
            Ledger(f"sqlite:///{file}", key=key).open_account("another", total=Budget.of(1))
    finally:
        writer.close()


def test_opening_again_returns_the_account_as_it_stands(ledger: Ledger) -> None:
    ledger.reserve("table", TENTH, purpose="first")
    again = ledger.open_account("table", total=Budget.of("1.0", Fraction(1, 10**6)), label="Other label")
    assert again == ledger.account("table")
    assert (again.label, again.spent.epsilon) == ("Survey", Fraction(1, 10))


@pytest.mark.parametrize(
    ("total", "rows"),
    [
        (Budget.of(2, "1e-6"), 1),
        (Budget.of("0.5", "1e-6"), 1),
        (Budget.of(1), 1),
        (Budget.of(1, "1e-6"), 2),
    ],
)
def test_terms_cannot_be_changed(ledger: Ledger, total: Budget, rows: int) -> None:
    with pytest.raises(LedgerError, match=r"a total of epsilon 1 and delta 1e-6 for at most 1 row"):
        ledger.open_account("table", total=total, rows_per_person=rows)
    assert account_in(ledger).total == Budget.of(1, "1e-6")


def test_unknown_data_sets(ledger: Ledger) -> None:
    assert ledger.account("other") is None
    with pytest.raises(LedgerError, match=r"no account\. Open one"):
        ledger.reserve("other", TENTH, purpose="first")


def test_accounts_do_not_mix(ledger: Ledger) -> None:
    ledger.open_account("other", total=TENTH)
    ledger.reserve("other", TENTH, purpose="all of it")
    assert spent_in(ledger) == 0


# Charges


def test_a_charge_counts_at_once_and_stays(ledger: Ledger) -> None:
    charge = ledger.reserve("table", TENTH, purpose="synthetic table", details={"method": "x", "columns": ["a", "b"]})
    assert charge.fresh
    assert charge.entry.state == charge.state == "reserved"
    assert spent_in(ledger) == Fraction(1, 10)
    charge.commit()
    charge.commit()
    assert charge.state == "committed"
    (entry,) = entries_in(ledger)
    assert (entry.state, entry.budget, entry.purpose) == ("committed", TENTH, "synthetic table")
    assert entry.details == {"method": "x", "columns": ["a", "b"]}
    assert entry.settled is not None
    assert timedelta(0) <= entry.settled - entry.created < timedelta(minutes=1)
    assert entry.settled.tzinfo == entry.created.tzinfo == UTC


def test_a_refund_gives_back_and_stays_visible(ledger: Ledger) -> None:
    charge = ledger.reserve("table", TENTH, purpose="first")
    charge.refund("bad parameter")
    charge.refund("said twice")
    assert account_in(ledger).left.epsilon == 1
    (entry,) = entries_in(ledger)
    assert (entry.state, entry.reason) == ("refunded", "bad parameter")


def test_what_is_settled_is_final(ledger: Ledger) -> None:
    used, unused = (ledger.reserve("table", TENTH, purpose="run") for _ in range(2))
    used.commit()
    unused.refund("bad parameter")
    with pytest.raises(LedgerError, match="is committed, which is final, and cannot be refunded"):
        used.refund("second thoughts")
    with pytest.raises(LedgerError, match="is refunded, which is final, and cannot be committed"):
        unused.commit()
    assert [entry.state for entry in entries_in(ledger)] == ["committed", "refunded"]


def test_a_charge_that_does_not_exist(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="There is no charge 7"):
        ledger.commit(7)
    with pytest.raises(LedgerError, match="There is no charge 7"):
        ledger.refund(7, "none")


def test_tenths_add_up_to_exactly_one(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.reserve("table", Budget.of(0.1, 1e-7), purpose="a tenth")
    assert account_in(ledger).left == Balance(epsilon=Fraction(0), delta=Fraction(0))
    with pytest.raises(BudgetError):
        ledger.reserve("table", Budget.of("1e-30"), purpose="a hair more")


@pytest.mark.parametrize("asked", [Budget.of("0.8"), Budget.of("0.1", "2e-6")])
def test_overspending_is_refused_and_says_what_is_left(ledger: Ledger, asked: Budget) -> None:
    ledger.reserve("table", Budget.of("1/3"), purpose="a third")
    with pytest.raises(BudgetError) as error:
        ledger.reserve("table", asked, purpose="too much")
    text = str(error.value)
    assert text.startswith(f"There is not enough {'delta' if asked.delta else 'epsilon'}. ")
    assert f"asks for epsilon {float(asked.epsilon):g} and delta" in text
    assert "left: epsilon 2/3 (about 0.6666) and delta 1e-6" in text
    assert "of a total of epsilon 1 and delta 1e-6" in text
    assert "Ask for no more than what is left" in text
    assert len(entries_in(ledger)) == 1


def test_amounts_of_any_size_are_exact(url: str) -> None:
    ledger = Ledger(url)
    ledger.open_account("table", total=Budget.of(10**100))
    ledger.reserve("table", Budget.of(Fraction(1, 3**900)), purpose="tiny")
    assert account_in(ledger).left.epsilon == 10**100 - Fraction(1, 3**900)
    with pytest.raises(BudgetError, match="asks for epsilon"):
        ledger.reserve("table", Budget.of(10**100), purpose="all of it")


def test_a_run_is_charged_once(ledger: Ledger) -> None:
    first = ledger.reserve("table", TENTH, purpose="run", run_id="r1")
    again = ledger.reserve("table", TENTH, purpose="run", run_id="r1")
    assert (first.id, first.fresh, again.fresh) == (again.id, True, False)
    first.commit()
    assert ledger.reserve("table", TENTH, purpose="run", run_id="r1").state == "committed"
    assert spent_in(ledger) == Fraction(1, 10)


def test_a_run_cannot_stand_for_two_things(ledger: Ledger) -> None:
    ledger.open_account("other", total=Budget.of(1))
    charge = ledger.reserve("table", TENTH, purpose="run", run_id="r1")
    with pytest.raises(LedgerError, match=r"'r1' is on record with another amount, epsilon 0\.1 and delta 0"):
        ledger.reserve("table", Budget.of("0.2"), purpose="run", run_id="r1")
    with pytest.raises(LedgerError, match="'r1' is on record with another data set"):
        ledger.reserve("other", TENTH, purpose="run", run_id="r1")
    charge.refund("bad parameter")
    with pytest.raises(LedgerError, match="'r1' is on record with a charge that was refunded"):
        ledger.reserve("table", TENTH, purpose="run", run_id="r1")


@pytest.mark.parametrize(
    "change",
    [
        {"purpose": " "},
        {"purpose": "x" * 201},
        {"run_id": ""},
        {"details": {"x": float("nan")}},
        {"details": {"x": object()}},
    ],
)
def test_bad_parameters_are_named(ledger: Ledger, change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(change))} is .*allowed: "):
        ledger.reserve("table", TENTH, **{"purpose": "run", **change})
    assert spent_in(ledger) == 0


def test_amounts_are_stored_as_text(tmp_path: Path, ledger: Ledger) -> None:
    ledger.reserve("table", Budget.of("0.1", "1e-7"), purpose="run")
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        rows = connection.execute("SELECT epsilon, delta FROM dpsynth_charges").fetchall()
        mode = connection.execute("PRAGMA journal_mode").fetchone()
    assert (rows, mode) == ([("1/10", "1/10000000")], ("wal",))


# Addresses and keys


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_a_ledger_in_memory_is_refused(address: str) -> None:
    with pytest.raises(LedgerError, match="forgets what was spent"):
        Ledger(address)


@pytest.mark.parametrize("address", ["", "not a url", "nosuchdatabase://host/x"])
def test_a_bad_address_is_refused(address: str) -> None:
    with pytest.raises(LedgerError, match="address cannot be used"):
        Ledger(address)


def test_a_ledger_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be used: unable to open database file"):
        Ledger(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(b"not a database, and nothing to overwrite" * 100)
    with pytest.raises(LedgerError, match="file is not a database"):
        Ledger(f"sqlite:///{file}")
    assert file.read_bytes().startswith(b"not a database")


def test_another_key_is_refused(url: str) -> None:
    Ledger(url, key=b"a" * 32)
    Ledger(url, key=b"a" * 32)
    with pytest.raises(LedgerError, match=r"another installation key.*DPSYNTH_KEY_FILE"):
        Ledger(url, key=b"b" * 32)


# Charging for a block


class CrashError(Exception):
    pass


def charged(ledger: Ledger, budget: Budget = TENTH, **named: Any) -> AbstractContextManager[LedgerCharge]:
    return ledger.charge("table", budget, purpose="run", **named)


def fail(ledger: Ledger, error: type[BaseException], *, drawn: bool) -> NoReturn:
    with charged(ledger) as charge:
        if drawn:
            charge.drawn()
        raise error


def test_what_follows_the_block_runs_after_the_charge_is_committed(ledger: Ledger) -> None:
    with charged(ledger) as charge:
        assert entries_in(ledger)[0].state == "reserved"
        charge.drawn()
    assert entries_in(ledger)[0].state == "committed"


def test_nothing_runs_without_budget(ledger: Ledger) -> None:
    with pytest.raises(BudgetError), charged(ledger, Budget.of(2)):
        pytest.fail("the block has run")


@pytest.mark.parametrize("error", [CrashError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    ("drawn", "state", "note"), [(False, "refunded", "Nothing was charged."), (True, "committed", "budget was charged")]
)
def test_a_failure_is_refunded_only_if_nothing_was_drawn(
    ledger: Ledger, error: type[BaseException], drawn: bool, state: str, note: str
) -> None:
    with pytest.raises(error) as raised:
        fail(ledger, error, drawn=drawn)
    assert entries_in(ledger)[0].state == state
    assert spent_in(ledger) == (Fraction(1, 10) if drawn else 0)
    assert note in raised.value.__notes__[0]


def test_a_block_that_has_drawn_nothing_is_refunded_and_hands_out_nothing(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="without drawing any noise"), charged(ledger):
        pass
    assert entries_in(ledger)[0].state == "refunded"


def test_a_block_may_settle_its_charge_itself(ledger: Ledger) -> None:
    with charged(ledger) as charge:
        charge.refund("changed my mind")
    with charged(ledger) as charge:
        charge.commit()
    assert [entry.state for entry in entries_in(ledger)] == ["refunded", "committed"]


def test_nothing_is_refunded_after_a_draw_or_drawn_after_a_refund(ledger: Ledger) -> None:
    used, unused = (ledger.reserve("table", TENTH, purpose="run") for _ in range(2))
    used.drawn()
    with pytest.raises(LedgerError, match="cannot be refunded"):
        used.refund("second thoughts")
    unused.refund("bad parameter")
    with pytest.raises(LedgerError, match="nothing may be drawn"):
        unused.drawn()
    assert [entry.state for entry in entries_in(ledger)] == ["reserved", "refunded"]


def refuse(*_: object, **__: object) -> NoReturn:
    raise LedgerError("The disk is full.")


def test_nothing_follows_the_block_if_the_commit_fails(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "commit", refuse)
    seen: list[str] = []

    def publish() -> None:
        with charged(ledger) as charge:
            charge.drawn()
        seen.append("secret")

    with pytest.raises(LedgerError, match="disk is full"):
        publish()
    assert not seen
    assert spent_in(ledger) == Fraction(1, 10)


@pytest.mark.parametrize("drawn", [False, True])
def test_a_failed_settlement_leaves_the_failure_and_the_charge(
    ledger: Ledger, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "commit" if drawn else "refund", refuse)
    with pytest.raises(CrashError) as error:
        fail(ledger, CrashError, drawn=drawn)
    assert "stays spent: The disk is full." in error.value.__notes__[0]
    assert spent_in(ledger) == Fraction(1, 10)


def test_a_double_click_draws_once(ledger: Ledger) -> None:
    drawn: list[int] = []

    def click() -> None:
        with charged(ledger, run_id="r1") as charge:
            charge.drawn()
            drawn.append(1)

    click()
    with pytest.raises(LedgerError, match="'r1' was charged before"):
        click()
    assert (len(drawn), spent_in(ledger)) == (1, Fraction(1, 10))


# Any sequence of operations


class AnySequence(RuleBasedStateMachine):
    charges = Bundle("charges")
    total = Budget.of(1, "1e-6")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{self.directory.name}/ledger.db"
        self.ledger = Ledger(self.url)
        self.ledger.open_account("table", total=self.total)
        self.states: dict[int, tuple[Budget, str]] = {}

    def spent(self) -> tuple[Fraction, Fraction]:
        counted = [budget for budget, state in self.states.values() if state != "refunded"]
        return sum((b.epsilon for b in counted), Fraction(0)), sum((b.delta for b in counted), Fraction(0))

    @rule(
        target=charges,
        epsilon=st.fractions(Fraction(1, 10**9), Fraction(3, 4)),
        delta=st.sampled_from([0, "1e-7", "1/3000000", "1e-5"]),
    )
    def reserve(self, epsilon: Fraction, delta: Any) -> int | None:
        budget = Budget.of(epsilon, delta)
        spent = self.spent()
        fits = spent[0] + budget.epsilon <= self.total.epsilon and spent[1] + budget.delta <= self.total.delta
        try:
            charge = self.ledger.reserve("table", budget, purpose="run")
        except BudgetError:
            assert not fits
            return None
        assert fits
        self.states[charge.id] = (budget, "reserved")
        return charge.id

    @rule(charge=charges)
    def commit(self, charge: int | None) -> None:
        self.settle(charge, "committed", self.ledger.commit)

    @rule(charge=charges)
    def refund(self, charge: int | None) -> None:
        self.settle(charge, "refunded", lambda number: self.ledger.refund(number, "unused"))

    def settle(self, charge: int | None, state: str, act: Callable[[int], None]) -> None:
        if charge is None:
            return
        budget, present = self.states[charge]
        if present in ("reserved", state):
            act(charge)
            self.states[charge] = (budget, state)
        else:
            with pytest.raises(LedgerError):
                act(charge)

    @rule()
    def restart(self) -> None:
        self.ledger = Ledger(self.url)

    @invariant()
    def the_ledger_agrees(self) -> None:
        account = account_in(self.ledger)
        assert (account.spent.epsilon, account.spent.delta) == self.spent()
        assert min(account.left.epsilon, account.left.delta) >= 0
        assert {entry.id: (entry.budget, entry.state) for entry in account.entries} == self.states

    def teardown(self) -> None:
        self.directory.cleanup()


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=15, stateful_step_count=12)


# Many at once


def hammer(url: str, attempts: int) -> list[str]:
    """What became of each attempt; an error that is not about budget would reach the caller."""
    ledger = Ledger(url)
    ledger.open_account("table", total=Budget.of(1))
    ledger.reserve("table", Budget.of("1/50"), purpose="double click", run_id="same")
    outcomes = []
    for _ in range(attempts):
        try:
            charge = ledger.reserve("table", Budget.of("1/50"), purpose="hammer")
        except BudgetError:
            outcomes.append("refused")
        else:
            charge.commit()
            outcomes.append("charged")
    return outcomes


def check_hammered(url: str, outcomes: list[list[str]]) -> None:
    account = account_in(Ledger(url))
    # One of the fifty is the double click, which all share.
    assert sum(done.count("charged") for done in outcomes) == 49
    assert account.left.epsilon == 0
    assert len(account.entries) == 50
    assert [entry.run_id for entry in account.entries].count("same") == 1


def test_processes_that_start_and_charge_at_once(url: str) -> None:
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        futures = [pool.submit(hammer, url, 50) for _ in range(2)]
        check_hammered(url, [future.result() for future in futures])


def test_threads_that_charge_at_once(url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        check_hammered(url, list(pool.map(lambda _: hammer(url, 10), range(8))))


def test_threads_that_share_a_ledger_and_a_run(ledger: Ledger) -> None:
    barrier = threading.Barrier(8)

    def click(_: int) -> bool:
        barrier.wait()
        return ledger.reserve("table", TENTH, purpose="run", run_id="r1").fresh

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(click, range(8))) == [False] * 7 + [True]
    assert spent_in(ledger) == Fraction(1, 10)


def test_commit_and_refund_at_once_leave_one_of_them(ledger: Ledger) -> None:
    charge = ledger.reserve("table", TENTH, purpose="run")
    barrier = threading.Barrier(2)

    def settle(act: Callable[[], None]) -> bool:
        barrier.wait()
        try:
            act()
        except LedgerError:
            return False
        return True

    acts = [charge.commit, lambda: charge.refund("unused")]
    with ThreadPoolExecutor(2) as pool:
        committed, refunded = pool.map(settle, acts)
    assert committed != refunded
    assert spent_in(ledger) == (Fraction(1, 10) if committed else 0)


# Killed at any moment


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def reserve_and_die(ledger: Ledger) -> None:
    ledger.reserve("table", TENTH, purpose="killed before the commit")
    die()


def die_within_the_transaction(ledger: Ledger) -> None:
    sa.event.listen(ledger._engine, "commit", die)
    ledger.reserve("table", TENTH, purpose="killed before it was on record")


def charge_forever(ledger: Ledger, done: int) -> None:
    while True:
        charge = ledger.reserve("table", Budget.of("1e-6"), purpose="loop")
        os.write(done, b"r")
        charge.commit()
        os.write(done, b"c")


def killed_child(act: Callable[[], None]) -> None:
    """Fork a child for ``act`` and wait until it is killed."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def kill_in_the_loop(ledger: Ledger, acknowledgements: int) -> bytes:
    """Kill a busy child after so many acknowledgements; return all that it gave."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            charge_forever(ledger, write)
        finally:
            os._exit(1)
    os.close(write)
    with open(read, "rb", buffering=0) as pipe:
        seen = b"".join(pipe.read(1) for _ in range(acknowledgements))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return seen + b"".join(iter(lambda: pipe.read(100), b""))


def check_loop(before: Account, after: Account, seen: bytes) -> None:
    """All that was acknowledged is on record, and at most one step more."""
    known = len(before.entries)
    assert after.entries[:known] == before.entries
    states = [entry.state for entry in after.entries[known:]]
    steps = sum(1 if state == "reserved" else 2 for state in states)
    assert len(seen) <= steps <= len(seen) + 1
    assert "reserved" not in states[:-1]
    assert after.spent.epsilon == sum(entry.budget.epsilon for entry in after.entries)


def killing(url: str) -> None:
    """Runs in a process of its own, so that it forks a small and single-threaded one."""
    ledger = Ledger(url)
    killed_child(lambda: reserve_and_die(ledger))
    assert [entry.state for entry in entries_in(Ledger(url))] == ["reserved"]
    assert spent_in(ledger) == Fraction(1, 10)
    killed_child(lambda: die_within_the_transaction(ledger))
    assert len(entries_in(ledger)) == 1
    choice = random.Random(7)
    for _ in range(25):
        before = account_in(ledger)
        seen = kill_in_the_loop(ledger, choice.randrange(8))
        check_loop(before, account_in(ledger), seen)
    ledger.reserve("table", Budget.of("1e-6"), purpose="all is well").commit()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_a_killed_process_can_lose_budget_but_never_gain_any(tmp_path: Path, url: str, ledger: Ledger) -> None:
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        pool.submit(killing, url).result()
    assert entries_in(ledger)[-1].state == "committed"
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("error", [LedgerError("a"), BudgetError("b")])
def test_errors_travel_between_processes(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
