"""Two tabs of one session that do the same at the same moment pay once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.configuration import RunConfig
from pages.shared.accounts import account_of
from pages.shared.asked import Asked
from pages.shared.data.actions import load_example, open_account
from pages.shared.session import Session
from pages.shared.synthesize.actions import start

TABS = 4


def test_runs_that_are_started_at_the_same_moment_are_one() -> None:
    session = Session(mode="release")
    load_example(session, "two_groups_signal")
    open_account(session, "10", "0")
    config, together = RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="1"), threading.Barrier(TABS)

    def press(_tab: int) -> str:
        together.wait()
        try:
            start(session, config)
        except DPSynthError as refusal:
            return str(refusal)
        return ""

    with ThreadPoolExecutor(TABS) as tabs:
        refusals = [refusal for refusal in tabs.map(press, range(TABS)) if refusal]
    account = account_of(session)
    assert account is not None
    assert len(account.entries) == 1
    assert refusals == ["A run is under way already. Wait for it or cancel it."] * (TABS - 1)
    session.abandon()
    for tasks in session.tasks:
        for task in tasks:
            task.cancel()


def test_what_was_asked_for_is_answered_once() -> None:
    asked, together = Asked(button="run", what=None), threading.Barrier(TABS)

    def answer(_tab: int) -> bool:
        together.wait()
        return asked.claim()

    with ThreadPoolExecutor(TABS) as tabs:
        assert sum(tabs.map(answer, range(TABS))) == 1
