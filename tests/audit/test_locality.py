"""A cell means what it means whatever stands in the cells beside it; if it did not, it would be noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.audit.checks import failures
from dpsynth_core.audit.locality import locality_checks
from dpsynth_core.table import encoding, estimate
from tests.audit.mutation.slips import guessed


def test_no_cell_moves_another() -> None:
    checks = list(locality_checks())
    assert len(checks) > 20
    assert not failures(checks)


@pytest.mark.parametrize("module", [encoding, estimate])
def test_a_kind_that_is_guessed_from_the_column_is_noticed(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.column_numbers
    monkeypatch.setattr(module, "column_numbers", lambda series, *layout: right(guessed(series), *layout))
    assert failures(locality_checks())


def test_gaps_filled_by_the_mean_of_the_others_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = encoding.column_numbers

    def filled(series: pd.Series[Any], *layout: Any) -> Any:
        numbers = right(series, *layout)
        return np.where(np.isnan(numbers), np.nanmean(np.append(numbers[np.isfinite(numbers)], 0.0)), numbers)

    monkeypatch.setattr(encoding, "column_numbers", filled)
    assert failures(locality_checks())
