"""A short form of ``python -m tests.faults``, one server with each fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.run import FAULTS, POSTGRESQL_FAULTS, provoke
from tests.waiting.postgresql import MISSING, postgresql


@pytest.mark.slow
def test_no_charge_is_lost_or_doubled_and_nothing_is_shown_without_one(tmp_path: Path) -> None:
    report = provoke(tmp_path, runs=20, seed=1)
    assert report.clean, report
    assert report.shown > 5
    assert set(report.faults) <= set(FAULTS)


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_ledger_in_postgresql_that_is_restarted_now_and_then(tmp_path: Path) -> None:
    with postgresql() as database:
        report = provoke(tmp_path, runs=15, seed=1, database=database)
    assert report.clean, report
    assert report.shown > 5
    assert set(report.faults) <= set(POSTGRESQL_FAULTS)
