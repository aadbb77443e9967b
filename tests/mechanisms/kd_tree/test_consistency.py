"""Counts brought into agreement: plain least squares by a design matrix, and what ``stand_out`` must keep."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.mechanisms.kd_tree.consistency import consistent_counts
from dpsynth_core.mechanisms.kd_tree.growth import Leaves, Level, grow
from dpsynth_core.mechanisms.kd_tree.interleaving import Coding
from dpsynth_core.mechanisms.kd_tree.ranked_codes import RankedCodes
from dpsynth_core.mechanisms.kd_tree.split_rules import LevelRule
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from tests.tables.boxes import Side, table_of

Measured = tuple[Leaves, list[Level], np.ndarray, float]

sides = st.lists(
    st.builds(Side, st.integers(1, 6), nullable=st.booleans(), label=st.booleans()), min_size=1, max_size=3
).filter(lambda given: sum(side.questions(side.whole) for side in given) >= 1)


@st.composite
def measured_trees(draw: st.DrawFn) -> Measured:
    """A tree grown on a small table, with measurements of very different precision, some boxes not measured at all."""
    chosen = draw(sides)
    row = st.tuples(*(st.integers(0, side.size - 1) for side in chosen))
    table = table_of(draw(st.lists(row, min_size=1, max_size=12)), chosen)
    coding = Coding.of(table.schema)
    free = draw(st.integers(0, min(3, coding.bits)))
    stop = draw(st.integers(free, min(coding.bits, free + 5)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    noise = SeededNoise(Budget.of(10**6), seed=draw(st.integers(0, 2**32)))
    rule = LevelRule(epsilon=Fraction(2), threshold=0) if stop > free else None
    leaves = grow(coding, RankedCodes(coding, table, free), free=free, stop=stop, rule=rule, noise=noise)
    levels = []
    for level in leaves.levels:
        variance = generator.choice([0.5, 1.0, 7.0, 40.0, np.inf], size=len(level.prefix))
        noisy = np.where(np.isfinite(variance), level.counts + generator.integers(-9, 10, len(level.prefix)), 0.0)
        levels.append(replace(level, variance=variance, noisy=noisy))
    measured = leaves.counts + generator.integers(-9, 10, len(leaves.counts))
    return leaves, levels, measured, draw(st.sampled_from([0.3, 2.0, 30.0]))


def inside(leaves: Leaves, depth: int, prefix: int) -> np.ndarray:
    """Which leaves lie in a box: those whose bits begin with its bits."""
    deeper = leaves.depth >= depth
    return deeper & (leaves.prefix >> np.where(deeper, leaves.depth - depth, 0) == prefix)


def least_squares(leaves: Leaves, levels: list[Level], measured: np.ndarray, leaf_variance: float) -> np.ndarray:
    """Every measurement is one row of a design matrix over the leaves."""
    leaf = np.full(len(measured), 1 / leaf_variance)
    rows, values, weights = [np.eye(len(measured))], [measured.astype(float)], [leaf]
    for level in levels:
        for prefix, noisy, variance in zip(level.prefix, level.noisy, level.variance, strict=True):
            if np.isfinite(variance):
                rows.append(inside(leaves, level.depth, prefix)[None].astype(float))
                values.append([noisy])
                weights.append([1 / variance])
    root = np.sqrt(np.concatenate(weights))
    return np.linalg.lstsq(np.vstack(rows) * root[:, None], np.concatenate(values) * root, rcond=None)[0]


@settings(max_examples=60)
@given(measured_trees())
def test_without_stand_out_it_is_weighted_least_squares(tree: Measured) -> None:
    leaves, levels, measured, variance = tree
    counts = consistent_counts(levels, measured, leaf_variance=variance)
    assert np.allclose(counts, least_squares(leaves, levels, measured, variance), atol=1e-6)


@settings(max_examples=60)
@given(measured_trees(), st.sampled_from([0.0, 0.7, 1.5, 8.0]))
def test_with_stand_out_rows_are_moved_between_halves_and_never_lost_or_negative(
    tree: Measured, stand_out: float
) -> None:
    leaves, levels, measured, variance = tree
    plain = consistent_counts(levels, measured, leaf_variance=variance)
    counts = consistent_counts(levels, measured, leaf_variance=variance, stand_out=stand_out)
    assert np.isfinite(counts).all()
    free = leaves.hidden.depth
    top = leaves.prefix >> (leaves.depth - free)
    for box in np.unique(top):
        here = top == box
        if here.sum() == 1:  # never split: nothing to agree with
            assert counts[here] == pytest.approx(plain[here])
        else:
            assert (counts[here] >= 0).all()
            assert counts[here].sum() == pytest.approx(max(plain[here].sum(), 0), abs=1e-6)


@settings(max_examples=30)
@given(measured_trees())
def test_a_half_that_stands_out_keeps_its_least_squares_count(tree: Measured) -> None:
    _, levels, measured, variance = tree
    far = measured + 10_000
    lifted = [replace(level, variance=np.full(len(level.prefix), np.inf), noisy=level.noisy * 0) for level in levels]
    plain = consistent_counts(lifted, far, leaf_variance=variance)
    counts = consistent_counts(lifted, far, leaf_variance=variance, stand_out=1.5)
    assert np.allclose(plain, far)
    assert np.allclose(counts, plain)
