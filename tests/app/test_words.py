from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.shared.formatting import big_number, rows_per_cell


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (999, "999"),
        (4096, "4,096"),
        (999_999, "999,999"),
        (10**6, "1 million"),
        (999_999_999, "1 billion"),
        (2_500_000_000, "2.5 billion"),
        (2_199_023_255_552, "2.2 trillion"),
        (10**15, "10^15"),
        (25 * 10**20, "2.5 × 10^21"),
        (10**40, "10^40"),
        (997 * 10**37, "10^40"),
    ],
)
def test_counts_of_any_size_can_be_read(value: int, text: str) -> None:
    assert big_number(value) == text


@given(st.integers(0, 400) | st.integers(0, 6000).map(lambda digits: 10**digits - 1))
def test_no_count_is_too_large_to_be_named(value: int) -> None:
    assert 0 < len(big_number(value)) <= 16


@pytest.mark.parametrize(
    ("rows", "cells", "text"),
    [
        (100, 10, "10"),
        (100, 100, "1"),
        (10, 3, "3.33"),
        (100, 250, "0.4"),
        (569, 2_199_023_255_552, "below 0.001"),
        (1, 10**40, "below 0.001"),
        (12_345_678, 2, "6.17 million"),
        (123_456, 1, "123,456"),
    ],
)
def test_crowding_is_told_from_either_side(rows: int, cells: int, text: str) -> None:
    assert rows_per_cell(rows, cells) == text
