"""Keeping a visitor's session over a reload: in the server's memory, for the same browser only.

The address carries an unguessable token; the session is handed out only to the browser that it was made for, which is
recognised by the cookie that Streamlit sets against request forgery. A copied address opens nothing. Nothing is written
to disk, and what is not used for some hours is forgotten.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

IDLE_SECONDS = 8 * 3600
MOST_KEPT = 200


@dataclass(kw_only=True)
class _Kept:
    session: Any
    browser: str
    used: float


class Memory:
    """Sessions by token, each bound to a browser."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS, most: int = MOST_KEPT) -> None:
        self._idle, self._most = idle_seconds, most
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def keep(self, session: Any, browser: str) -> str:
        """Remember a session; returns the token under which its browser finds it again."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._forget_old()
            self._kept[token] = _Kept(session=session, browser=browser, used=time.monotonic())
        return token

    def find(self, token: str, browser: str) -> Any | None:
        """The session, if this browser is the one it was made for and it is not too old."""
        with self._lock:
            self._forget_old()
            kept = self._kept.get(token)
            if kept is None or not secrets.compare_digest(kept.browser, browser):
                return None
            kept.used = time.monotonic()
            return kept.session

    def _forget_old(self) -> None:
        now = time.monotonic()
        by_age = sorted(self._kept.items(), key=lambda item: item[1].used, reverse=True)
        self._kept = {t: k for i, (t, k) in enumerate(by_age) if i < self._most and now - k.used < self._idle}


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
