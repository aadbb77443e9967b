"""One line of the reviewer's checklist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpsynth_core.charts.checklist import STATES, CheckState, MeasuredClaim

__all__ = ["STATES", "CheckGroup", "CheckState", "ChecklistItem"]

CheckGroup: TypeAlias = Literal["Privacy", "Quality", "Sanity check"]
GROUPS: tuple[CheckGroup, ...] = ("Privacy", "Quality", "Sanity check")


@dataclass(frozen=True, kw_only=True)
class ChecklistItem(MeasuredClaim):
    """A claim and what stands behind it. Private: what was measured may come from the original rows."""

    key: str
    """By which a decision records it."""
    group: CheckGroup
    """Where it stands."""
    evidence: str
    """Why, in a sentence or two. May hold names from a file."""
    details: tuple[str, ...] = ()
    """What stands behind it, one line each. May hold names from a file."""
    final: bool = False
    """Whether nobody can overrule a failure."""
    releasable: Literal[False] = False
    """Never."""
