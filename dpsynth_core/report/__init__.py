"""What leaves the building, and what does not: the release bundle and the internal review report, never mixed."""

from __future__ import annotations

from dpsynth_core.report.bundle import Bundle, release_bundle
from dpsynth_core.report.decision import Decision
from dpsynth_core.report.publication import Publication
from dpsynth_core.report.review import review_report

__all__ = ["Bundle", "Decision", "Publication", "release_bundle", "review_report"]
