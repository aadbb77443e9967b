from __future__ import annotations

import subprocess
import sys

import pytest
from streamlit.testing.v1 import AppTest

from dpsynth_core.errors import ParameterError
from pages.shared.data.actions import load_example
from pages.shared.memory import (
    GRACE_SECONDS,
    KEEP_MINUTES,
    SWEEP_EVERY,
    DropReason,
    Memory,
    Presence,
    browser_of,
    memory_from,
)
from tests.waiting.pages import ROOT, session_of, settled


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


class Visitor:
    """A session with a table of some size, which counts how often its visitor has gone."""

    def __init__(self, nbytes: int = 0, *, paid: bool = False) -> None:
        self.left, self.nbytes, self.paid, self.busy = 0, nbytes, paid, False
        self.dropped: DropReason | None = None

    def abandon(self) -> None:
        self.left += 1

    def drop_table(self, reason: DropReason) -> None:
        self.dropped, self.nbytes = reason, 0


def test_a_session_is_found_by_its_own_browser_only() -> None:
    memory, mine = Memory(), Visitor()
    token = memory.keep(mine, "browser")
    assert memory.find(token, "browser") is mine
    assert memory.find(token, "another browser") is None
    assert memory.find("guess", "browser") is None
    assert len(token) >= 32


def test_without_a_token_a_browser_finds_what_it_has_just_left_and_nothing_else() -> None:
    memory, open_elsewhere, just_left, foreign = Memory(), Visitor(), Visitor(), Visitor()
    memory.keep(open_elsewhere, "browser")
    memory.keep(just_left, "browser")
    memory.keep(foreign, "another browser")
    assert memory.left_by("browser", {just_left, foreign}.__contains__) is just_left
    assert memory.left_by("browser", {foreign}.__contains__) is None
    assert memory.left_by("a third browser", {just_left, foreign}.__contains__) is None
    memory.keep(just_left, "")
    assert memory.left_by("", {just_left}.__contains__) is None, "without a cookie nobody is recognised"


class Server:
    """A memory with a clock that the test moves, and visitors who are connected or not."""

    def __init__(self, **bounds: float) -> None:
        self.now = 0.0
        self.connected: set[Visitor] = set()
        self.memory = Memory(clock=lambda: self.now, **bounds)  # type: ignore[arg-type]

    def receive(self, visitor: Visitor) -> str:
        self.connected.add(visitor)
        return self.memory.keep(visitor, "browser")

    def wait(self, minutes: float) -> bool:
        self.now += 60 * minutes
        return self.memory.sweep(self.connected.__contains__)


def test_only_so_many_are_kept_without_a_tab_and_those_with_a_tab_always() -> None:
    server = Server(max_sessions=2)
    tokens = [server.receive(Visitor()) for _ in range(5)]
    server.wait(1)
    assert all(server.memory.find(token, "browser") for token in tokens), "a tab shows each of them"
    server.connected.clear()
    server.wait(1)
    assert sum(server.memory.find(token, "browser") is not None for token in tokens) == 2


def test_visitors_who_bring_nothing_push_nobody_out() -> None:
    """Anybody can open the first page hundreds of times, each time as a browser that was never seen before."""
    server, here, paid, table = Server(max_sessions=3), Visitor(10), Visitor(10, paid=True), Visitor(10)
    tokens = [server.receive(visitor) for visitor in (here, paid, table)]
    server.wait(1)
    server.connected = {here}
    server.now += 2 * GRACE_SECONDS
    for _ in range(50):
        server.memory.keep(Visitor(), "another browser")
    server.wait(1)
    assert [server.memory.find(token, "browser") for token in tokens] == [here, paid, table]
    more = [server.memory.keep(Visitor(10), "another browser") for _ in range(3)]
    server.wait(1)
    assert server.memory.find(tokens[1], "browser") is paid, "what was paid for goes last"
    assert server.memory.find(tokens[2], "browser") is None
    assert sum(server.memory.find(token, "another browser") is not None for token in more) == 2


def test_a_table_is_dropped_when_its_tab_was_closed_for_too_long_and_the_session_is_still_found() -> None:
    server, visitor = Server(idle_minutes=60), Visitor(100)
    token = server.receive(visitor)
    server.wait(500)
    assert visitor.dropped is None, "a tab shows it"
    server.connected.clear()
    server.wait(59)
    assert visitor.dropped is None
    server.wait(2)
    assert visitor.dropped == "minutes"
    assert server.memory.find(token, "browser") is visitor, "so that its page can say what happened"


def test_a_sweep_says_whether_there_is_memory_to_give_back() -> None:
    server, visitor = Server(idle_minutes=60, paid_minutes=120), Visitor(100)
    server.receive(visitor)
    assert not server.wait(500), "a tab shows it"
    server.connected.clear()
    assert not server.wait(59)
    assert server.wait(2), "the table went"
    assert not server.wait(50)
    assert server.wait(60), "the session went"
    assert not server.wait(60)


def test_memory_of_what_has_gone_is_given_back_to_the_system() -> None:
    """In a process of its own: parts that refer to each other, between things that stay."""
    script = """
import gc, os
from pathlib import Path
from pages.shared.heap import give_back
class Part:
    pass
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
gc.disable()
kept, before = [], resident()
for number in range(300):
    parts = [Part() for _ in range(200)]
    for one, other in zip(parts, parts[1:] + parts[:1]):
        one.next, one.text = other, bytes(2_000)
    kept.append(bytes(2_000))
del parts, one, other
held = resident() - before
give_back()
print(held, resident() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    held, left = map(int, done.stdout.split())
    assert held > 100 * 2**20
    assert left < held / 4


def test_whoever_runs_the_server_can_have_tables_dropped_sooner_and_never_later() -> None:
    assert [memory_from({}).minutes(paid=paid) for paid in (False, True)] == [60, 480]
    assert [memory_from({KEEP_MINUTES: "90"}).minutes(paid=paid) for paid in (False, True)] == [60, 90]
    assert [memory_from({KEEP_MINUTES: "0.5"}).minutes(paid=paid) for paid in (False, True)] == [0.5, 0.5]
    for wrong in ("0", "-1", "nan", "481", "inf", "an hour"):
        with pytest.raises(ParameterError, match=KEEP_MINUTES):
            memory_from({KEEP_MINUTES: wrong})


def test_results_that_were_paid_for_are_kept_longer() -> None:
    server, visitor = Server(idle_minutes=60, paid_minutes=480), Visitor(100, paid=True)
    token = server.receive(visitor)
    server.connected.clear()
    server.wait(470)
    assert visitor.dropped is None
    server.wait(20)
    assert visitor.dropped == "minutes"
    assert server.memory.find(token, "browser") is None, "the session has had its time, too"


def test_beyond_the_bound_on_memory_the_largest_idle_table_goes_first_and_paid_ones_last() -> None:
    server = Server(max_idle_bytes=250)
    small, large, paid, working, connected = (
        Visitor(100),
        Visitor(300),
        Visitor(140, paid=True),
        Visitor(10_000),
        Visitor(10_000),
    )
    working.busy = True
    for visitor in (small, large, paid, working, connected):
        server.receive(visitor)
    server.connected = {connected}
    server.wait(0.1)
    assert not any(visitor.dropped for visitor in (small, large, paid)), "a reload takes some seconds"
    server.wait(1)
    assert (small.dropped, large.dropped, paid.dropped) == (None, "bytes", None)
    assert (working.dropped, connected.dropped) == (None, None)
    another = Visitor(200, paid=True)
    server.receive(another)
    server.connected.discard(another)
    server.wait(1)
    assert (small.dropped, paid.dropped, another.dropped) == ("bytes", None, "bytes"), "140 are left"


def test_whoever_is_on_the_way_back_loses_nothing() -> None:
    server, visitor = Server(max_idle_bytes=50), Visitor(100)
    token = server.receive(visitor)
    server.connected.clear()
    server.now += 24
    assert server.memory.find(token, "browser") is visitor
    server.wait(0.4)
    assert visitor.dropped is None


class Tabs:
    """Browser tabs that open and close, and a clock that the test moves."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.now = 0.0
        self.forgotten: list[str] = []
        self.presence = Presence(
            self.open.__contains__, grace_seconds=25, clock=lambda: self.now, forget_tab=self.forgotten.append
        )

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
    assert tabs.forgotten == ["one"], "what the closed one has left behind is not needed"
    tabs.open.clear()
    tabs.wait(20)
    assert visitor.left == 0
    tabs.wait(6)
    assert visitor.left == 1
    tabs.wait(1000)
    assert visitor.left == 1, "once is enough"
    assert not tabs.presence.left(visitor), "that is no reload any more"
    assert GRACE_SECONDS + SWEEP_EVERY < 60


def test_a_reload_within_the_grace_period_changes_nothing() -> None:
    tabs, visitor = Tabs(), Visitor()
    tabs.show(visitor, "before")
    assert not tabs.presence.left(visitor)
    tabs.open.clear()
    tabs.wait(20)
    assert tabs.presence.left(visitor)
    tabs.show(visitor, "after")
    assert not tabs.presence.left(visitor)
    tabs.wait(1000)
    assert visitor.left == 0


def test_whoever_comes_back_late_is_watched_again() -> None:
    tabs, visitor = Tabs(), Visitor()
    for visit in range(1, 3):
        tabs.show(visitor, f"tab {visit}")
        tabs.open.clear()
        tabs.wait(30)
        assert visitor.left == visit


def test_the_page_says_which_table_was_dropped_why_and_how_to_go_on() -> None:
    app = settled(AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run())
    (example,) = (button for button in app.button if button.label == "Try an example")
    settled(example.click().run())
    session = session_of(app)
    assert session.nbytes > 20_000 * 3 * 8
    assert (session.paid, session.busy) == (False, False)
    session.drop_table("bytes")
    assert (session.current, session.nbytes) == (None, 0)
    settled(app.run())
    assert [warning.value for warning in app.warning] == ["Your table is no longer in the server's memory."]
    (text,) = (text.value for text in app.text if "dropped" in text.value)
    assert "the server needed the memory" in text
    assert "epsilon" not in text, "nothing was paid for"
    load_example(session, "breast_cancer")
    settled(app.run())
    assert not any("memory" in warning.value for warning in app.warning)


def test_a_look_that_fails_is_not_the_last_and_says_no_more_than_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[int] = []

    def fail() -> None:
        looks.append(1)
        raise ValueError("a cell's value")

    presence = Presence(lambda _: True, after_sweep=fail)
    presence.look()
    presence.look()
    assert len(looks) == 2
    assert "ValueError" in caplog.text
    assert "cell" not in caplog.text
