"""What leaves the building, and what does not: the release bundle and the internal review report, never mixed."""

from __future__ import annotations

from dpsynth_core.review.bundle import Bundle, release_bundle, release_digest
from dpsynth_core.review.checklist import Checklist, ChecklistItem, checklist
from dpsynth_core.review.decision import Decision, approval, decide
from dpsynth_core.review.evidence import Evidence, gather
from dpsynth_core.review.publication import Publication
from dpsynth_core.review.report import review_report
from dpsynth_core.review.thresholds import Thresholds

__all__ = [
    "Bundle",
    "Checklist",
    "ChecklistItem",
    "Decision",
    "Evidence",
    "Publication",
    "Thresholds",
    "approval",
    "checklist",
    "decide",
    "gather",
    "release_bundle",
    "release_digest",
    "review_report",
]
