"""A few of the damaged files of ``python -m tests.fuzz``."""

from __future__ import annotations

import pytest

from tests.fuzz.mutation import CANARY, seeds
from tests.fuzz.run import fuzz


def test_the_good_files_are_read_and_hold_the_canary() -> None:
    from dpsynth_core.table.readers.read import read_table

    for files in seeds().values():
        for content in files:
            assert (read_table(content).astype(str) == CANARY).to_numpy().any()


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_damaged_files_are_read_or_refused(first: int) -> None:
    report = fuzz(100, first)
    assert report.clean, report
    assert report.outcomes["refused"] > 20
    assert report.outcomes["read"] > 5
