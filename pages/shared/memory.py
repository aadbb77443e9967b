"""Keeping a visitor's session over a reload, and noticing when nobody is connected to it any more.

Sessions stay in the server's memory. The address carries an unguessable token; the session is handed out only to the
browser that it was made for, which is recognised by the cookie that Streamlit sets against request forgery. A copied
address opens nothing. An address without a token, which a page has for a moment after it was changed, leads back to the
session that the same browser has just left. Nothing is written to disk. Once the last tab is closed, a table is kept
for a while, within a bound on memory, and then dropped; the visitor's next page says so.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from streamlit.runtime import Runtime

from dpsynth_core.errors import ParameterError
from pages.shared.closed_tabs import forget_tab
from pages.shared.heap import give_back

_LOG = logging.getLogger(__name__)
COOKIE = "_streamlit_xsrf"
"""Streamlit's cookie against request forgery."""
IDLE_MINUTES = 60
"""How long a table is kept after its last tab was closed."""
PAID_MINUTES = 8 * 60
"""The same where epsilon was spent on its results: they cannot be had again for nothing."""
KEEP_MINUTES = "DPSYNTH_KEEP_MINUTES"
"""The setting with which whoever runs the server makes both shorter."""
MAX_IDLE_BYTES = 512 * 2**20
"""What the tables of all sessions without a tab may take together."""
MAX_SESSIONS = 200
"""How many sessions without a tab are remembered."""
GRACE_SECONDS = 25
"""How long a session may be without a connection: a reload takes a second or two, a short loss of network more."""
SWEEP_EVERY = 5
"""Seconds between two looks at who is connected."""
DropReason: TypeAlias = Literal["minutes", "bytes"]


class Visitor(Protocol):
    """A session whose visitor can leave."""

    @property
    def nbytes(self) -> int:
        """Memory that its table and results take."""

    @property
    def paid(self) -> bool:
        """Whether it holds results that epsilon was spent on."""

    @property
    def busy(self) -> bool:
        """Whether work is under way."""

    def abandon(self) -> None:
        """Cancel what nobody waits for any more."""

    def drop_table(self, reason: DropReason) -> None:
        """Remove the table and its results from memory."""


@dataclass(kw_only=True)
class _StoredSession:
    session: Any
    browser: str
    used: float

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Among sessions without a tab, the lowest is forgotten first."""
        return self.session.paid or self.session.busy, self.session.nbytes > 0, self.used


class Memory:
    """Sessions by token, each bound to a browser.

    While a tab shows a session, nothing of it is dropped. Afterwards its table is: when its time is over, or when the
    tables of all such sessions take too much memory together; largest first, results that were paid for last. The rest
    of the session is small and stays until its own time is over.
    """

    def __init__(
        self,
        *,
        idle_minutes: float = IDLE_MINUTES,
        paid_minutes: float = PAID_MINUTES,
        max_idle_bytes: int = MAX_IDLE_BYTES,
        max_sessions: int = MAX_SESSIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.idle_minutes, self.paid_minutes = idle_minutes, paid_minutes
        self._max_idle_bytes, self._max_sessions, self._clock = max_idle_bytes, max_sessions, clock
        self._sessions: dict[str, _StoredSession] = {}
        self._lock = threading.Lock()

    def minutes(self, *, paid: bool) -> float:
        """How long a table is kept after its last tab was closed."""
        return self.paid_minutes if paid else self.idle_minutes

    def keep(self, session: Visitor, browser: str) -> str:
        """Remember a session; returns the token under which its browser finds it again."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._sessions[token] = _StoredSession(session=session, browser=browser, used=self._clock())
        return token

    def find(self, token: str, browser: str) -> Any | None:
        """The session, if this browser is the one it was made for and it is not too old."""
        with self._lock:
            self._forget_old()
            stored = self._sessions.get(token)
            if stored is None or not secrets.compare_digest(stored.browser, browser):
                return None
            stored.used = self._clock()
            return stored.session

    def left_by(self, browser: str, has_left: Callable[[Any], bool]) -> Any | None:
        """The session that this browser used last, if it has just left it; None for a browser without a cookie.

        Args:
            browser: The browser that comes without a token.
            has_left: Whether a session's last tab was closed a moment ago.
        """
        with self._lock:
            mine = [
                each for each in self._sessions.values() if browser and secrets.compare_digest(each.browser, browser)
            ]
            left = [each for each in mine if has_left(each.session)]
            return max(left, key=lambda each: each.used).session if left else None

    def sweep(self, connected: Callable[[Any], bool]) -> bool:
        """Drop tables that nobody has looked at for too long, or that take too much memory; whether anything went.

        Args:
            connected: Whether a tab shows a session.
        """
        with self._lock:
            now = self._clock()
            before = self._held()
            in_use = {token for token, stored in self._sessions.items() if connected(stored.session)}
            for token, stored in self._sessions.items():
                if token in in_use or stored.session.busy:
                    stored.used = now
            # Whoever was found a moment ago is on the way back, and not connected yet.
            idle = [
                stored
                for stored in self._sessions.values()
                if now - stored.used > GRACE_SECONDS and stored.session.nbytes
            ]
            self._drop_late(idle, now)
            self._drop_large([stored for stored in idle if stored.session.nbytes])
            self._forget_old()
            self._forget_many(in_use)
            return self._held() != before

    def _held(self) -> tuple[int, int]:
        """How many sessions there are, and how many of them have a table."""
        return len(self._sessions), sum(stored.session.nbytes > 0 for stored in self._sessions.values())

    def _drop_late(self, idle: list[_StoredSession], now: float) -> None:
        for stored in idle:
            if now - stored.used > 60 * self.minutes(paid=stored.session.paid):
                stored.session.drop_table("minutes")

    def _drop_large(self, idle: list[_StoredSession]) -> None:
        total = sum(stored.session.nbytes for stored in idle)
        for stored in sorted(idle, key=lambda each: (each.session.paid, -each.session.nbytes)):
            if total <= self._max_idle_bytes:
                return
            total -= stored.session.nbytes
            stored.session.drop_table("bytes")

    def _forget_old(self) -> None:
        now, limit = self._clock(), 60 * self.paid_minutes
        self._sessions = {token: stored for token, stored in self._sessions.items() if now - stored.used < limit}

    def _forget_many(self, in_use: set[str]) -> None:
        """Anybody can begin any number of sessions: those without a table go first, and none that a tab shows."""
        idle = [token for token in self._sessions if token not in in_use]
        too_many = len(idle) - self._max_sessions
        if too_many > 0:
            for token in sorted(idle, key=lambda each: self._sessions[each].rank)[:too_many]:
                del self._sessions[token]


class Presence:
    """Notices when the last tab of a session has been closed.

    Streamlit calls nobody when a connection ends, so a thread looks from time to time. Tabs are counted by Streamlit's
    own session ids: a reload gets a new id, which joins the session before the grace period is over.
    """

    def __init__(
        self,
        connected: Callable[[str], bool],
        *,
        grace_seconds: float = GRACE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        forget_tab: Callable[[str], None] | None = None,
        after_sweep: Callable[[], None] | None = None,
    ) -> None:
        """Watch nobody yet.

        Args:
            connected: Whether a tab's connection is open.
            grace_seconds: How long a session may be without one.
            clock: Monotonic seconds.
            forget_tab: Removes what a tab that was closed has left behind.
            after_sweep: What else to do from time to time.
        """
        self._connected, self._grace, self._clock = connected, grace_seconds, clock
        self._forget_tab, self._after_sweep = forget_tab, after_sweep
        self._watched: dict[Visitor, dict[str, float]] = {}  # when each tab was last seen connected
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def seen(self, session: Visitor, tab: str) -> None:
        """A tab shows this session now."""
        if not self._connected(tab):
            return  # a page without a browser, as in tests: nobody can close it
        with self._lock:
            self._watched.setdefault(session, {})[tab] = self._clock()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()

    def sweep(self) -> None:
        """Forget every tab that was closed for too long, and tell every session that has lost its last one."""
        with self._lock:
            closed = {session: self._closed(tabs) for session, tabs in self._watched.items()}
            gone = [session for session, tabs in self._watched.items() if not tabs]
            for session in gone:
                del self._watched[session]
        if self._forget_tab is not None:
            for tab in (tab for tabs in closed.values() for tab in tabs):
                self._forget_tab(tab)
        for session in gone:
            session.abandon()

    def _closed(self, tabs: dict[str, float]) -> list[str]:
        """Take the tabs out that have been closed for too long."""
        now = self._clock()
        tabs.update({tab: now for tab in tabs if self._connected(tab)})
        closed = [tab for tab, seen in tabs.items() if now - seen > self._grace]
        for tab in closed:
            del tabs[tab]
        return closed

    def connected(self, session: Visitor) -> bool:
        """Whether a tab shows this session."""
        with self._lock:
            return any(self._connected(tab) for tab in self._watched.get(session, ()))

    def left(self, session: Visitor) -> bool:
        """Whether the last tab of a session was closed a moment ago: by a reload, or by mistake."""
        with self._lock:
            tabs = self._watched.get(session, {})
            return bool(tabs) and not any(self._connected(tab) for tab in tabs)

    def look(self) -> None:
        """Once. Whatever fails is noted and tried again: without further looks, sessions in use would count as left."""
        try:
            self.sweep()
            if self._after_sweep is not None:
                self._after_sweep()
        except Exception as error:  # noqa: BLE001  whatever it is
            _LOG.error("Looking after sessions failed (%s); the next look follows.", type(error).__name__)

    def _watch(self) -> None:
        while True:
            time.sleep(SWEEP_EVERY)
            self.look()


def tab_is_connected(tab: str) -> bool:
    """Whether a browser tab has its connection, by Streamlit's own name for it."""
    # Streamlit's tests of a page stand in for the runtime with something that is neither true nor false; taken for a
    # connection, it would be missed half a minute later, and the work of a test on a busy machine would be given up.
    return Runtime.exists() and Runtime.instance().is_active_session(tab) is True


def browser_of(cookie: str) -> str:
    """A name for the browser from Streamlit's cookie, whose text is masked anew on every load; empty if there is none.

    Version 2 of the cookie is ``2|mask|masked token|timestamp``: the token is the masked one with the mask taken off.
    """
    parts = cookie.split("|")
    try:
        mask, masked = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
        token = bytes(byte ^ mask[i % len(mask)] for i, byte in enumerate(masked))
    except (IndexError, ValueError, ZeroDivisionError):
        return ""
    return hashlib.sha256(token).hexdigest() if len(token) >= 16 else ""


def memory_from(environment: Mapping[str, str]) -> Memory:
    """With tables kept as long as the server's settings allow, and never longer than by default."""
    given = environment.get(KEEP_MINUTES, "")
    try:
        minutes = float(given or PAID_MINUTES)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= PAID_MINUTES:
        raise ParameterError(
            KEEP_MINUTES, given, allowed=f"minutes, above 0 and at most {PAID_MINUTES}", remedy="Correct or remove it."
        )
    return Memory(idle_minutes=min(minutes, IDLE_MINUTES), paid_minutes=minutes)


MEMORY = memory_from(os.environ)


def _sweep_memory() -> None:
    if MEMORY.sweep(PRESENCE.connected):
        give_back()


PRESENCE: Presence = Presence(tab_is_connected, forget_tab=forget_tab, after_sweep=_sweep_memory)
