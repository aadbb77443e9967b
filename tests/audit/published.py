"""What is published of a run: the files of its bundle. A layer above the audit, which is why the audit is handed it."""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth_core.review import Publication, release_bundle
from dpsynth_core.runs.configuration import RunResult


def published(result: RunResult) -> Mapping[str, bytes]:
    """By name, and the archive of them all."""
    bundle = release_bundle(result, Publication(title="Audited", original_rows=len(result.tables[0])))
    return {**bundle.files, "the archive": bundle.archive}
