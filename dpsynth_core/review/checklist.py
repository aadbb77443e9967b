"""The reviewer's checklist: what is claimed, what is asked, what was measured, and what follows.

A failed claim about privacy is final: no reviewer can overrule it. A failed threshold is the reviewer's own, so it can
be overruled with a reason, which is recorded. A claim that nobody has looked at is open, and nothing open can be
approved.

A review can also do without private evidence altogether. Then only public facts and the synthetic rows themselves are
checked, the questions about quality are listed as unanswered, and nothing that is seen depends on a private row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dpsynth_core.charts.checklist import WORDS
from dpsynth_core.ledger.accounts import Account, Entry
from dpsynth_core.review.checklist_item import STATES, ChecklistItem, CheckState
from dpsynth_core.review.evidence import Evidence
from dpsynth_core.review.privacy_checks import privacy_checks
from dpsynth_core.review.public_checks import rows_check
from dpsynth_core.review.quality_checks import quality_checks
from dpsynth_core.review.thresholds import Thresholds
from dpsynth_core.runs.configuration import RunResult

__all__ = ["Checklist", "ChecklistItem", "checklist"]


@dataclass(frozen=True, kw_only=True)
class Checklist:
    """Every check of one release, and what a reviewer may do about it."""

    checks: tuple[ChecklistItem, ...]
    public_only: bool = False
    """Whether it consists of public facts and synthetic rows only."""
    unanswered: tuple[str, ...] = ()
    """What nobody has looked at in a review on public facts only."""
    releasable: Literal[False] = False

    def __getitem__(self, key: str) -> ChecklistItem:
        return next(check for check in self.checks if check.key == key)

    def of(self, *states: CheckState) -> tuple[ChecklistItem, ...]:
        """Checks in one of these states."""
        return tuple(check for check in self.checks if check.state in states)

    @property
    def final(self) -> tuple[ChecklistItem, ...]:
        """Failures that nobody can overrule."""
        return tuple(check for check in self.of("fail") if check.final)

    @property
    def overrulable(self) -> tuple[ChecklistItem, ...]:
        """Failures that a reviewer can overrule with a reason."""
        return tuple(check for check in self.of("fail") if not check.final)

    @property
    def state(self) -> CheckState:
        """The worst of all items."""
        return max((check.state for check in self.checks), key=STATES.index)

    @property
    def answer(self) -> str:
        """May this be released? In a few words."""
        if self.final:
            return "No. This cannot be released as private."
        if self.of("open"):
            return "Not yet. Evidence is missing."
        if self.overrulable:
            return "Not yet. At least one of your thresholds is missed."
        if self.of("warn"):
            return "Yes, but weigh the warnings."
        return "Yes, as far as public facts tell." if self.public_only else "Yes. All your requirements are met."


def side_by_side(named: Mapping[str, Checklist]) -> list[dict[str, str]]:
    """Several releases' checks, aligned: one row for each check, one column for each release."""
    titles = {check.key: check.title for found in named.values() for check in found.checks}
    rows = [{"check": "May it be released?"} | {name: found.answer for name, found in named.items()}]
    for key, title in titles.items():
        row = {"check": title}
        for name, found in named.items():
            check = next((check for check in found.checks if check.key == key), None)
            if check is None or check.state == "open":
                row[name] = "" if check is None else WORDS["open"].capitalize()
            else:
                row[name] = f"{WORDS[check.state].capitalize()}: {check.measured}"
        rows.append(row)
    return rows


def checklist(
    outcome: RunResult,
    n: int,
    thresholds: Thresholds,
    *,
    evidence: Evidence | None = None,
    account: Account | None = None,
    charge: Entry | None = None,
    public: bool = False,
    public_only: bool = False,
) -> Checklist:
    """Every check of a release.

    Args:
        outcome: The release.
        n: Rows of the original, which are public.
        thresholds: What the reviewer asks.
        evidence: What comparing it with the original showed; None: nobody has looked.
        account: The data set's account.
        charge: The ledger's entry for this run.
        public: Whether the data are public or simulated, so that nothing is charged (teaching).
        public_only: Whether to check public facts and the synthetic rows only; any evidence is ignored.
    """
    privacy = privacy_checks(outcome, n, thresholds, account, charge, public=public)
    if public_only:
        unanswered = tuple(check.title for check in quality_checks(None, thresholds))
        return Checklist(checks=(*privacy, rows_check(outcome)), public_only=True, unanswered=unanswered)
    return Checklist(checks=(*privacy, *quality_checks(evidence, thresholds)))
