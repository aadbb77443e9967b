"""What a draw says about itself: what must not depend on a row, and how far a neighbour moves it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsynth_core.privacy.accounting import GaussianDraw, SampledDraw, SelectionDraw
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.primitives import (
    Call,
    Charge,
    Decisions,
    Exponential,
    Gaussian,
    Laplace,
    Metropolis,
    PaidCall,
    SampledGaussian,
    SharedExponential,
    Smoothed,
    SparseLaplace,
    UniformIntegers,
)

CHARGE = Charge(label="t", primitive="t", sensitivity=Fraction(2), budget=Budget.of(1))
PLAN = GaussianDraw(scale=3.0, values=2, shift=2)
SAMPLED = SampledDraw(scale=50.0, squared=25, chosen=1, parts=4)


def sparse(keys: list[int], values: list[int], kind: type[Any] = SparseLaplace, zeros: int | None = None) -> Any:
    return kind(
        keys=np.array(keys),
        values=np.array(values),
        zeros=10 - len(keys) if zeros is None else zeros,
        threshold=3,
        pick=np.arange,
        scale=2.0,
        charge=CHARGE,
    )


def smoothed(cells: list[list[int]], counts: list[int], draws: int = 5) -> Smoothed:
    alpha, charge = Fraction(1, 2), CHARGE
    return Smoothed(
        keys=np.array(cells), values=np.array(counts), shape=(4, 4), draws=draws, alpha=alpha, charge=charge
    )


def laplace(*values: int, scale: float = 2.0) -> Laplace:
    return Laplace(values=np.array(values), scale=scale, charge=CHARGE)


def gaussian(*values: int) -> Gaussian:
    return Gaussian(values=np.array(values), draw=PLAN, charge=CHARGE)


def sampled(*values: int) -> SampledGaussian:
    return SampledGaussian(values=np.array(values), draw=SAMPLED, charge=CHARGE)


def scored(*scores: float) -> Exponential:
    return Exponential(scores=np.array(scores), scale=1.0, charge=CHARGE)


def shared(*scores: float) -> SharedExponential:
    draw = SelectionDraw(scale=3.0, sensitivity=2)
    return SharedExponential(scores=np.array(scores), scale=draw.scale, draw=draw, charge=CHARGE)


def walk(score: float) -> Metropolis:
    return Metropolis(scores=np.array([score]), scale=1.0, walk=lambda *_: score, charge=CHARGE)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        (laplace(3, 0, 1), laplace(2, 1, 1), 2.0),
        (gaussian(5, 5, 5), gaussian(4, 6, 5), 1.0),  # as many values as planned, half as far
        (gaussian(5, 5, 5), gaussian(1, 5, 5), 2.0),  # twice as far as planned
        (sampled(0, 0), sampled(3, 4), 1.0),  # Euclidean distance 5, as planned
        (sparse([1, 4], [2, 1]), sparse([1], [3]), 2.0),  # a cell that is not listed holds nothing
        (sparse([1, 4], [2, 1], Decisions), sparse([1, 2], [2, 1], Decisions), 2.0),
        (smoothed([[0, 1], [2, 2]], [3, 1]), smoothed([[0, 1], [3, 3]], [3, 1]), 2.0),
        (scored(1.0, 2.0), scored(1.5, 1.75), 0.5),
        (shared(1.0, 2.0), shared(3.0, 1.0), 1.0),  # as far as its draw declares
        (walk(1.0), walk(1.25), 0.25),
        (UniformIntegers(below=5, size=2), UniformIntegers(below=5, size=2), 0.0),
    ],
)
def test_a_neighbour_has_the_same_form_and_a_distance(first: Call[Any], second: Call[Any], distance: float) -> None:
    assert first.public_form() == second.public_form()
    assert first.distance(second) == second.distance(first) == pytest.approx(distance)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (laplace(1, 2), laplace(1, 2, 3)),
        (laplace(1), laplace(1, scale=2.5)),
        (sparse([1], [2]), sparse([1], [2], zeros=3)),
        (sparse([1], [2]), sparse([1], [2], Decisions)),
        (smoothed([[0, 0]], [1]), smoothed([[0, 0]], [1], draws=6)),
        (scored(1.0), scored(1.0, 2.0)),
        (UniformIntegers(below=5, size=2), UniformIntegers(below=5, size=3)),
    ],
)
def test_what_a_row_must_not_change_shows_in_the_form(first: Call[Any], second: Call[Any]) -> None:
    assert first.public_form() != second.public_form()


def test_forms_show_no_private_value() -> None:
    for call in (
        laplace(123456),
        gaussian(123456),
        sparse([7], [123456]),
        smoothed([[3, 3]], [123456]),
        walk(123456.0),
    ):
        assert "123456" not in str(call.public_form())


def test_a_score_that_is_not_a_number_is_infinitely_far() -> None:
    assert scored(1.0, math.nan).distance(scored(1.0, 2.0)) == math.inf


def test_a_draw_on_private_values_cannot_be_made_without_a_charge() -> None:
    with pytest.raises(TypeError, match="charge"):
        Laplace(values=np.array([1]), scale=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        PaidCall(charge=CHARGE)  # type: ignore[abstract]
