"""What a reviewer has decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from dpsynth_core.errors import ParameterError

Choice: TypeAlias = Literal["approve", "hold"]
MOST_CHARACTERS = {"reviewer": 200, "note": 10_000}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether a release may leave the building, who says so, and why. Internal: a note may speak of what was seen."""

    choice: Choice
    """Approve, or hold."""
    reviewer: str
    """Who decided."""
    note: str = ""
    """Why, in their own words."""
    decided: datetime
    """When (UTC)."""
    releasable: Literal[False] = False
    """Never: it was made by looking at diagnostics."""

    def __post_init__(self) -> None:
        if self.choice not in ("approve", "hold"):
            raise ParameterError("choice", self.choice, allowed="approve, hold")
        if not self.reviewer.strip():
            raise ParameterError("reviewer", self.reviewer, allowed="a name", remedy="Say who decides.")
        for name, most in MOST_CHARACTERS.items():
            if len(getattr(self, name)) > most:
                raise ParameterError(name, "too long", allowed=f"text of up to {most:,} characters")
