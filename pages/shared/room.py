"""How much memory the tables and results of all visitors may take together.

A table in use is never dropped. So that no number of visitors, and no visitor with many tabs, can use up the machine's
memory, there is a bound on all of them: what would exceed it is refused before it is loaded or charged.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from dpsynth_core.errors import DPSynthError

TABLES_SHARE = 0.5
"""Of the machine's memory; the rest is for workers, for uploads and for the server itself."""
UPLOADS_SHARE = 0.25
"""Of the machine's memory, for uploaded files that are not tables yet."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


class Holder(Protocol):
    """Something that holds tables."""

    @property
    def nbytes(self) -> int:
        """Memory that they take."""


class Room:
    """A bound on what all holders together hold."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._holders: WeakSet[Holder] = WeakSet()
        self._lock = threading.Lock()

    def admit(self, holder: Holder) -> None:
        """Count what it holds, as long as it exists."""
        with self._lock:
            self._holders.add(holder)

    def check(self, more: int) -> None:
        """Refuse what does not fit beside everything that is held.

        Args:
            more: Bytes that are to be added, about.
        """
        with self._lock:
            holders = list(self._holders)
        if sum(holder.nbytes for holder in holders) + more > self.max_bytes:
            raise DPSynthError(
                f"The server's memory for tables is full: those of all visitors together may take "
                f"{self.max_bytes / 1024**3:.1f} GiB. Nothing was loaded, started or charged. Close tabs with tables "
                "that you do not need any more, take a smaller table, or try again later."
            )


def machine_bytes() -> int:
    """Memory of this machine, or of the container that the server runs in where that is less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 4 * 1024**3
    try:
        limit = _CGROUP.read_text(encoding="ascii").strip()
    except OSError:  # no container, or not this kind
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical


ROOM = Room(int(TABLES_SHARE * machine_bytes()))
