"""Files that a page offers, kept by the session until they are fetched.

Streamlit's own downloads belong to the whole server: the end of any visitor's script may remove the file that another
one is just fetching, and whoever has the address gets the file. Here a page registers how each of its files is made;
the server (pages/shared/server.py) makes it when it is asked for, for the browser that the session belongs to and no
other.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PATH = "download"
"""The first part of every download's address, relative to the app's."""
MAX_SENDING = 4
"""Files of one session that are made or sent at the same time."""
KEPT_SECONDS = 60.0
"""How long a page that is drawn anew can take until its new links are on the screen, on a busy server."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Download:
    """A file on offer."""

    name: str
    media_type: str
    content: Callable[[], bytes]
    """Makes the file. Called outside the page's script, perhaps several times."""


@dataclass(kw_only=True)
class _Tab:
    """What one browser tab offers."""

    now: dict[str, Download] = field(default_factory=dict)
    """By the page as far as it is drawn."""
    before: dict[str, tuple[Download, float]] = field(default_factory=dict)
    """By pages before it, with the time at which they began to be drawn anew."""

    def begin(self, now: float) -> None:
        kept = {offer_id: old for offer_id, old in self.before.items() if now - old[1] <= KEPT_SECONDS}
        self.before = kept | {offer_id: (download, now) for offer_id, download in self.now.items()}
        self.now = {}

    def find(self, offer_id: str) -> Download | None:
        old, _ = self.before.get(offer_id, (None, 0.0))
        return self.now.get(offer_id, old)


class Downloads:
    """What the pages of one session offer, by browser tab: two tabs may show different runs under the same label."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._tabs: dict[str, _Tab] = {}
        self._lock = threading.Lock()
        self._clock = clock
        self._sending = 0

    def begin_sending(self) -> bool:
        """Whether another file may be made and sent now; if so, ``end_sending`` must follow.

        Until a file is sent it is in memory, and whoever asks for it decides how long that takes.
        """
        with self._lock:
            free = self._sending < MAX_SENDING
            self._sending += free
            return free

    def end_sending(self) -> None:
        """A file was sent, or will not be."""
        with self._lock:
            self._sending -= 1

    def begin(self, tab: str, connected: Callable[[str], bool]) -> None:
        """A tab draws its page anew. What it offered before can be fetched for a while: it is on the screen until then.

        That may be after several beginnings, because whatever ends in the background breaks a drawing off.

        Args:
            tab: Which one.
            connected: Whether a tab is open; what closed ones offered is forgotten.
        """
        with self._lock:
            self._tabs.setdefault(tab, _Tab()).begin(self._clock())
            self._tabs = {each: offers for each, offers in self._tabs.items() if each == tab or connected(each)}

    def offer(self, tab: str, key: str, download: Download) -> str:
        """Offer a file; returns its name in the address, the same each time the page is drawn."""
        offer_id = hashlib.sha256(f"{tab}\n{key}".encode()).hexdigest()[:32]
        with self._lock:
            self._tabs.setdefault(tab, _Tab()).now[offer_id] = download
        return offer_id

    def find(self, offer_id: str) -> Download | None:
        """The file with that name; None if it is not on offer."""
        with self._lock:
            found = (tab.find(offer_id) for tab in self._tabs.values())
            return next((download for download in found if download is not None), None)

    def clear(self) -> None:
        """Offer nothing any more."""
        with self._lock:
            self._tabs.clear()
