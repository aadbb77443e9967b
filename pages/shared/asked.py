"""What a visitor has asked for that costs epsilon."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from threading import Lock
from typing import Any


@dataclass(kw_only=True)
class Asked:
    """What costs epsilon and was asked for: remembered, because a timer may break off the page that would answer."""

    button: str
    """Key of the button that was pressed."""
    what: Any
    """What that button offered when it was pressed."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Under which it is charged, once."""
    confirmed: bool = False
    """Whether it may be paid for."""
    _unclaimed: Lock = field(default_factory=Lock)

    def confirm(self) -> None:
        """What the second button does."""
        self.confirmed = True

    def claim(self) -> bool:
        """Whether the caller is the one to answer it: two tabs of a session may come at the same moment."""
        return self._unclaimed.acquire(blocking=False)
