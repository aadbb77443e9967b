"""Keeping a visitor's session over a reload, and noticing when nobody is connected to it any more.

Sessions stay in the server's memory. The address carries an unguessable token; the session is handed out only to the
browser that it was made for, which is recognised by the cookie that Streamlit sets against request forgery. A copied
address opens nothing. Nothing is written to disk, and what is not used for some hours is forgotten.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamlit.runtime import Runtime

COOKIE = "_streamlit_xsrf"
"""Streamlit's cookie against request forgery."""
IDLE_SECONDS = 8 * 3600
MAX_SESSIONS = 200
GRACE_SECONDS = 25
"""How long a session may be without a connection: a reload takes a second or two, a short loss of network more."""
SWEEP_EVERY = 5
"""Seconds between two looks at who is connected."""


@dataclass(kw_only=True)
class _StoredSession:
    session: Any
    browser: str
    used: float


class Memory:
    """Sessions by token, each bound to a browser."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS, max_sessions: int = MAX_SESSIONS) -> None:
        self._idle, self._max_sessions = idle_seconds, max_sessions
        self._sessions: dict[str, _StoredSession] = {}
        self._lock = threading.Lock()

    def keep(self, session: Any, browser: str) -> str:
        """Remember a session; returns the token under which its browser finds it again."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._forget_old()
            self._sessions[token] = _StoredSession(session=session, browser=browser, used=time.monotonic())
        return token

    def find(self, token: str, browser: str) -> Any | None:
        """The session, if this browser is the one it was made for and it is not too old."""
        with self._lock:
            self._forget_old()
            stored = self._sessions.get(token)
            if stored is None or not secrets.compare_digest(stored.browser, browser):
                return None
            stored.used = time.monotonic()
            return stored.session

    def _forget_old(self) -> None:
        now = time.monotonic()
        by_age = sorted(self._sessions.items(), key=lambda item: item[1].used, reverse=True)
        self._sessions = {
            token: stored
            for i, (token, stored) in enumerate(by_age)
            if i < self._max_sessions and now - stored.used < self._idle
        }


class Leavable(Protocol):
    """A session whose visitor can leave."""

    def abandon(self) -> None:
        """Cancel what nobody waits for any more."""


@dataclass(kw_only=True)
class _Connections:
    """The browser tabs of one session. Times are monotonic seconds."""

    ids: set[str] = field(default_factory=set)
    last_connected: float = 0.0


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
    ) -> None:
        """Watch nobody yet.

        Args:
            connected: Whether a tab's connection is open.
            grace_seconds: How long a session may be without one.
            clock: Monotonic seconds.
        """
        self._connected, self._grace, self._clock = connected, grace_seconds, clock
        self._watched: dict[Leavable, _Connections] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def seen(self, session: Leavable, tab: str) -> None:
        """A tab shows this session now."""
        if not self._connected(tab):
            return  # a page without a browser, as in tests: nobody can close it
        with self._lock:
            connections = self._watched.setdefault(session, _Connections())
            connections.ids.add(tab)
            connections.last_connected = self._clock()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()

    def sweep(self) -> None:
        """Tell every session that has been without a connection for too long."""
        now = self._clock()
        with self._lock:
            gone = [session for session, tabs in self._watched.items() if self._has_gone(tabs, now)]
            for session in gone:
                del self._watched[session]
        for session in gone:
            session.abandon()

    def _has_gone(self, tabs: _Connections, now: float) -> bool:
        tabs.ids = {tab for tab in tabs.ids if self._connected(tab)}
        if tabs.ids:
            tabs.last_connected = now
        return now - tabs.last_connected > self._grace

    def _watch(self) -> None:
        while True:
            time.sleep(SWEEP_EVERY)
            self.sweep()


def tab_is_connected(tab: str) -> bool:
    """Whether a browser tab has its connection, by Streamlit's own name for it."""
    return Runtime.exists() and Runtime.instance().is_active_session(tab)


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


MEMORY = Memory()
PRESENCE = Presence(tab_is_connected)
