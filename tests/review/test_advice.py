"""Advice follows the forecast's figures, and says so when nothing helps."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsynth_core.diagnostics.causes import Causes
from dpsynth_core.review.advice import advice, advice_rows, cause_lines, ways_in_words
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.runs.forecast import AS_IT_IS, FEWER_BINS, FEWER_COLUMNS, WITH_DELTA, WITH_MORE, Forecast

WORDS = ways_in_words(Fraction(1), Fraction(1, 10**6), 11)


def expect(pair: float | None, column: float = 0.1) -> Forecast:
    pairs = () if pair is None else (("a", "b", pair),)
    return Forecast(rows=10, errors=(ExpectedError(columns=(("a", column),), pairs=pairs, repetitions=1),))


def test_the_best_change_is_named_with_figures() -> None:
    found = {AS_IT_IS: expect(0.30), WITH_DELTA: expect(0.12), WITH_MORE: expect(0.18), FEWER_BINS: expect(0.2)}
    assert advice(found, WORDS) == (
        "A delta of 1e-6 would help most: the forecast for pairs of columns is 12% on average, instead of 30%."
    )
    assert [row["change"] for row in advice_rows(found, WORDS)] == [
        "As it is",
        "A delta of 1e-6",
        "Epsilon 2 instead of 1",
        "At most 8 bins for each number",
    ]


@pytest.mark.parametrize(("way", "begins"), [(WITH_MORE, "Epsilon 2 instead of 1"), (FEWER_COLUMNS, "5 columns")])
def test_every_change_can_be_the_best(way: str, begins: str) -> None:
    assert advice({AS_IT_IS: expect(0.3), way: expect(0.1)}, WORDS).startswith(begins)


def test_a_change_that_hardly_helps_is_not_praised() -> None:
    assert advice({AS_IT_IS: expect(0.30), WITH_MORE: expect(0.28)}, WORDS).startswith("None of these changes")
    assert advice({AS_IT_IS: expect(0.30)}, WORDS).startswith("None of these changes")
    assert advice({}, WORDS) == ""


def test_one_column_is_judged_by_itself() -> None:
    said = advice({AS_IT_IS: expect(None, 0.2), WITH_MORE: expect(None, 0.1)}, WORDS)
    assert "single columns is 10% on average, instead of 20%" in said
    assert advice_rows({AS_IT_IS: expect(None)}, WORDS)[0]["pairs"] == ""


def test_a_verdict_on_single_columns_gets_advice_on_single_columns() -> None:
    found = {AS_IT_IS: expect(0.4, 0.2), WITH_DELTA: expect(0.1, 0.18), WITH_MORE: expect(0.3, 0.1)}
    assert advice(found, WORDS).startswith("A delta of 1e-6 would help most: the forecast for pairs of columns is 10%")
    assert advice(found, WORDS, single=True) == (
        "Epsilon 2 instead of 1 would help most: the forecast for single columns is 10% on average, instead of 20%."
    )


def test_a_part_too_small_to_count_is_said_in_english() -> None:
    lines = cause_lines(Causes(names=("a", "b"), total=0.2, noise=0.2, columns=0.0, relation=0.0))
    assert lines[2].startswith("Less than 0.1% comes from the single columns")


def test_causes_in_words() -> None:
    column = cause_lines(Causes(names=("age",), total=0.2, noise=0.05, columns=0.15, relation=0.0))
    assert "bins that are too coarse for this column" in column[2]
    assert "Coarse bins are the largest part" in column[-1]
    unknown = cause_lines(Causes(names=("a", "b"), total=0.2, noise=None, columns=0.1, relation=0.1))
    assert not any("noise" in line.lower() for line in unknown), "nothing is said about what nobody knows"
