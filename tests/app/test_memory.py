from __future__ import annotations

import pytest

from pages.shared.memory import GRACE_SECONDS, SWEEP_EVERY, Memory, Presence, browser_of


def masked(token: bytes, mask: bytes) -> str:
    hidden = bytes(byte ^ mask[i % 4] for i, byte in enumerate(token))
    return f"2|{mask.hex()}|{hidden.hex()}|1794800512"


TOKEN, OTHER = bytes(range(16)), bytes(range(1, 17))


def test_a_browser_is_recognised_however_its_cookie_is_masked() -> None:
    first, second = (browser_of(masked(TOKEN, mask)) for mask in (b"\x01\x02\x03\x04", b"\xaa\xbb\xcc\xdd"))
    assert first == second
    assert first != browser_of(masked(OTHER, b"\x01\x02\x03\x04"))
    assert TOKEN.hex() not in first


@pytest.mark.parametrize("cookie", ["", "2", "2|||", "2|zz|zz|1", "2|01020304|0102|1", "nonsense"])
def test_no_cookie_no_browser(cookie: str) -> None:
    assert browser_of(cookie) == ""


def test_a_session_is_found_by_its_own_browser_only() -> None:
    memory = Memory()
    token = memory.keep("mine", "browser")
    assert memory.find(token, "browser") == "mine"
    assert memory.find(token, "another browser") is None
    assert memory.find("guess", "browser") is None
    assert len(token) >= 32


def test_what_is_not_used_is_forgotten() -> None:
    memory = Memory(idle_seconds=0)
    assert memory.find(memory.keep("mine", "browser"), "browser") is None


def test_only_so_many_are_kept() -> None:
    memory = Memory(max_sessions=2)
    tokens = [memory.keep(i, "browser") for i in range(5)]
    assert sum(memory.find(token, "browser") is not None for token in tokens) == 2
    assert memory.find(tokens[-1], "browser") == 4


class Visitor:
    """A session that counts how often its visitor has gone."""

    def __init__(self) -> None:
        self.left = 0

    def abandon(self) -> None:
        self.left += 1


class Tabs:
    """Browser tabs that open and close, and a clock that the test moves."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.now = 0.0
        self.presence = Presence(self.open.__contains__, grace_seconds=25, clock=lambda: self.now)

    def show(self, visitor: Visitor, tab: str) -> None:
        self.open.add(tab)
        self.presence.seen(visitor, tab)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.presence.sweep()


def test_work_is_given_up_within_a_minute_after_the_last_tab_is_closed() -> None:
    tabs, visitor = Tabs(), Visitor()
    tabs.show(visitor, "one")
    tabs.show(visitor, "two")
    tabs.open.discard("one")
    tabs.wait(1000)
    assert visitor.left == 0, "the other tab is still there"
    tabs.open.clear()
    tabs.wait(20)
    assert visitor.left == 0
    tabs.wait(6)
    assert visitor.left == 1
    tabs.wait(1000)
    assert visitor.left == 1, "once is enough"
    assert GRACE_SECONDS + SWEEP_EVERY < 60


def test_a_reload_within_the_grace_period_changes_nothing() -> None:
    tabs, visitor = Tabs(), Visitor()
    tabs.show(visitor, "before")
    tabs.open.clear()
    tabs.wait(20)
    tabs.show(visitor, "after")
    tabs.wait(1000)
    assert visitor.left == 0


def test_whoever_comes_back_late_is_watched_again() -> None:
    tabs, visitor = Tabs(), Visitor()
    for visit in range(1, 3):
        tabs.show(visitor, f"tab {visit}")
        tabs.open.clear()
        tabs.wait(30)
        assert visitor.left == visit
