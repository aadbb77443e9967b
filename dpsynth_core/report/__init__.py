"""What leaves the building, and what does not: the release bundle."""

from __future__ import annotations

from dpsynth_core.report.bundle import Bundle, release_bundle
from dpsynth_core.report.publication import Publication

__all__ = ["Bundle", "Publication", "release_bundle"]
