"""What leaves the building, and what does not: the release bundle and the internal review report, never mixed."""

from __future__ import annotations

from dpsynth_core.report.bundle import Bundle, release_bundle, release_digest
from dpsynth_core.report.checklist import Check, Checklist, checklist
from dpsynth_core.report.decision import Decision, approval, decide
from dpsynth_core.report.docket import Docket
from dpsynth_core.report.evidence import Evidence, gather
from dpsynth_core.report.publication import Publication
from dpsynth_core.report.review import review_report
from dpsynth_core.report.thresholds import Thresholds

__all__ = [
    "Bundle",
    "Check",
    "Checklist",
    "Decision",
    "Docket",
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
