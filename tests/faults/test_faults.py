"""A short form of ``python -m tests.faults``, one server with each fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.run import FAULTS, provoke


@pytest.mark.slow
def test_no_charge_is_lost_or_doubled_and_nothing_is_shown_without_one(tmp_path: Path) -> None:
    report = provoke(tmp_path, runs=20, seed=1)
    assert report.clean, report
    assert report.shown > 5
    assert set(report.faults) <= set(FAULTS)
