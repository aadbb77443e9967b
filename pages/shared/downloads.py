"""Files that a page offers, kept by the session until they are fetched.

Streamlit's own downloads belong to the whole server: the end of any visitor's script may remove the file that another
one is just fetching, and whoever has the address gets the file. Here a page registers how each of its files is made;
the server (pages/shared/server.py) makes it when it is asked for, for the browser that the session belongs to and no
other.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

PATH = "download"
"""The first part of every download's address, relative to the app's."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Download:
    """A file on offer."""

    name: str
    media_type: str
    content: Callable[[], bytes]
    """Makes the file. Called outside the page's script, perhaps several times."""


class Downloads:
    """What the pages of one session offer, by browser tab: two tabs may show different runs under the same label."""

    def __init__(self) -> None:
        self._now: dict[str, dict[str, Download]] = {}
        self._before: dict[str, dict[str, Download]] = {}
        self._lock = threading.Lock()

    def begin(self, tab: str, connected: Callable[[str], bool]) -> None:
        """A tab draws its page anew. What it offered before can be fetched until it is drawn once more.

        Args:
            tab: Which one.
            connected: Whether a tab is open; what closed ones offered is forgotten.
        """
        with self._lock:
            self._before[tab], self._now[tab] = self._now.get(tab, {}), {}
            for offers in (self._before, self._now):
                for gone in [each for each in offers if each != tab and not connected(each)]:
                    del offers[gone]

    def offer(self, tab: str, key: str, download: Download) -> str:
        """Offer a file; returns its name in the address, the same each time the page is drawn."""
        offer_id = hashlib.sha256(f"{tab}\n{key}".encode()).hexdigest()[:32]
        with self._lock:
            self._now.setdefault(tab, {})[offer_id] = download
        return offer_id

    def find(self, offer_id: str) -> Download | None:
        """The file with that name; None if it is not on offer."""
        with self._lock:
            for offers in (*self._now.values(), *self._before.values()):
                if offer_id in offers:
                    return offers[offer_id]
        return None

    def clear(self) -> None:
        """Offer nothing any more."""
        with self._lock:
            self._now.clear()
            self._before.clear()
