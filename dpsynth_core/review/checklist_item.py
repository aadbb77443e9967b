"""One line of the reviewer's checklist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from dpsynth_core.charts.checklist import STATES, CheckState, MeasuredClaim

__all__ = ["GROUPS", "STATES", "CheckGroup", "CheckState", "ChecklistItem"]

CheckGroup: TypeAlias = Literal["Privacy", "Synthetic rows", "Quality", "Sanity check"]
GROUPS: tuple[CheckGroup, ...] = get_args(CheckGroup)


@dataclass(frozen=True, kw_only=True)
class ChecklistItem(MeasuredClaim):
    """A claim and the evidence for it. Private: what was measured may come from the original rows.

    Evidence and details may hold names from a file.
    """

    key: str
    """By which a decision records it."""
    group: CheckGroup
    evidence: str
    details: tuple[str, ...] = ()
    final: bool = False
    """Whether nobody can overrule a failure."""
    releasable: Literal[False] = False
