"""The tables of all visitors together cannot use up the machine's memory."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.configuration import RunConfig
from pages.shared import room
from pages.shared.accounts import account_of
from pages.shared.data.actions import load_example, load_upload, open_account
from pages.shared.room import ROOM, Room, machine_bytes
from pages.shared.session import Session
from pages.shared.synthesize.actions import start
from tests.waiting.pages import csv_of


class Table:
    """Something of a size."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_what_does_not_fit_beside_the_others_is_refused() -> None:
    small, here, gone = Room(100), Table(40), Table(40)
    small.admit(here)
    small.admit(gone)
    small.check(20)
    with pytest.raises(DPSynthError, match="memory for tables is full"):
        small.check(21)
    del gone
    gc.collect()
    small.check(60)
    assert here.nbytes == 40


def test_a_table_that_does_not_fit_leaves_the_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    load_example(session, "two_groups_signal")
    before = session.current
    monkeypatch.setattr(ROOM, "max_bytes", session.nbytes + 10)
    with pytest.raises(DPSynthError, match="memory for tables is full"):
        load_upload(session, "rows.csv", csv_of(*map(str, range(100))))
    assert session.current is before


def test_a_run_whose_result_does_not_fit_is_refused_before_it_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(mode="release")
    load_example(session, "two_groups_signal")
    open_account(session, "1", "0")
    monkeypatch.setattr(ROOM, "max_bytes", 0)
    with pytest.raises(DPSynthError, match="memory for tables is full"):
        start(session, RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="1"))
    account = account_of(session)
    assert account is not None
    assert not account.entries


@pytest.mark.parametrize(("limit", "expected"), [("1073741824\n", 2**30), ("max\n", None), (None, None)])
def test_a_container_has_the_memory_that_it_was_given(
    limit: str | None, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    whole = machine_bytes()
    monkeypatch.setattr(room, "_CGROUP", tmp_path / "memory.max")
    assert machine_bytes() == (expected or whole)
