"""Values that many rows share keep their exact value; smooth columns stay smooth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.private_pgm.spikes import roundest
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

ROWS = 20_000


def released(values: Any, epsilon: str = "3", **facts: Any) -> pd.Series[Any]:
    """The column as Private-PGM releases it beside another one."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"value": values, "other": rng.choice(["a", "b"], len(values))})
    columns = [
        {"name": "value", "kind": "continuous", "public": True, **facts},
        {"name": "other", "kind": "categorical", "categories": ["a", "b"], "public": True},
    ]
    private = PrivateTable(table, Schema.from_dict({"columns": columns}))
    mechanism = MECHANISMS["private_pgm"].suggest(private.schema, private.n, epsilon)
    return synthesize(private, mechanism, epsilon=epsilon, seed=5).sample()["value"]


def share(values: pd.Series[Any], value: float) -> float:
    return float((values == value).mean())


def mixed(spikes: dict[float, float], rest: Any) -> Any:
    """So large shares of some values, and the rest from what is given."""
    rng = np.random.default_rng(2)
    chosen = rng.choice([*spikes, np.nan], ROWS, p=[*spikes.values(), 1 - sum(spikes.values())])
    return np.where(np.isnan(chosen), rest(rng), chosen)


def test_values_that_many_rows_share_come_out_as_they_are() -> None:
    hours = mixed({0.0: 0.3, 40.0: 0.25, 37.5: 0.1}, lambda rng: rng.uniform(0, 80, ROWS))
    made = released(hours, lower=0, upper=168)
    for value in (0.0, 40.0, 37.5):
        assert share(made, value) == pytest.approx(share(pd.Series(hours), value), abs=0.02)
    assert made.nunique() > 0.25 * ROWS  # the others are spread as before


def test_missing_values_do_not_take_part() -> None:
    gain = mixed({0.0: 0.7}, lambda rng: rng.exponential(9_000, ROWS).clip(0, 100_000))
    gain[::10] = np.nan
    made = released(gain, lower=0, upper=100_000, nullable=True)
    assert made.isna().mean() == pytest.approx(0.1, abs=0.02)
    assert share(made, 0.0) == pytest.approx(0.63, abs=0.02)


@pytest.mark.parametrize(
    "facts",
    [
        {"kind": "integer", "lower": -1_000_000, "upper": 1_000_000},
        {"lower": -1_000_000.0, "upper": 1_000_000.0, "decimals": 2},
    ],
)
def test_so_do_whole_numbers_and_decimals_of_which_there_are_more_than_slots(facts: dict[str, Any]) -> None:
    income = mixed({12_000.0: 0.3, -5_000.0: 0.2}, lambda rng: np.round(rng.normal(0, 200_000, ROWS)))
    made = released(income.clip(-1e6, 1e6).round().astype(int), **facts)
    assert share(made, 12_000) == pytest.approx(0.3, abs=0.02)
    assert share(made, -5_000) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("shape", ["normal", "uniform", "exponential"])
def test_smooth_columns_hold_no_value_twice(shape: str) -> None:
    rng = np.random.default_rng(3)
    values = {
        "normal": rng.normal(50, 8, ROWS),
        "uniform": rng.uniform(0, 100, ROWS),
        "exponential": rng.exponential(5, ROWS),
    }[shape]
    made = released(values.clip(0.001, 99.999), lower=0, upper=100)
    assert made.value_counts().iloc[0] < 5


@pytest.mark.parametrize("most", [5, 90])
def test_a_crowd_in_a_small_part_of_a_range_that_is_too_wide_is_not_one_value(most: float) -> None:
    """One slot of 65,536 holds all rows, or six do."""
    made = released(np.random.default_rng(4).uniform(0, most, ROWS), lower=0, upper=1_000_000)
    assert made.nunique() > 0.9 * ROWS


def test_nor_is_a_long_tail_that_begins_in_one() -> None:
    made = released(np.random.default_rng(4).lognormal(1, 1, ROWS).clip(0, 1e6), lower=0, upper=1_000_000)
    assert made.nunique() > 0.9 * ROWS


@given(st.fractions(-1_000, 1_000, max_denominator=1_000), st.fractions(0, 20, max_denominator=1_000))
def test_the_roundest_number_lies_in_the_range_and_none_in_it_is_rounder(low: Fraction, width: Fraction) -> None:
    high = low + width + Fraction(1, 1_000)
    found = roundest(low, high)
    assert low <= found < high
    rounder = (digit * Fraction(10) ** power for power in range(4, -5, -1) for digit in (5, 2, 1))
    first = next(step for step in rounder if -((-low) // step) * step < high)
    assert found % first == 0


def test_the_roundest_number_of_the_smallest_ranges_is_found() -> None:
    assert roundest(Fraction(0), Fraction(1, 10**9)) == 0
    assert roundest(Fraction("9.9951"), Fraction("10.0104")) == 10
    assert roundest(Fraction("-0.0303"), Fraction("-0.0297")) == Fraction("-0.03")
