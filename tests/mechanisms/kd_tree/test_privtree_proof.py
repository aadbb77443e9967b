"""Exact privacy losses of split decisions: the probability of every tree on a table and on each of its neighbours."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.mechanisms.kd_tree.split_rules import PRIVTREE_LOSS, PrivTreeRule
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from tests.tables.boxes import (
    Chain,
    PlainRule,
    Row,
    Side,
    neighbours,
    paper_rule,
    privtree_rule,
    stretched,
    tail,
    tree_law,
    worst_chain,
    worst_loss,
)

EPSILONS = [0.1, 0.5, 1.0, 4.0]
ROUNDING = 1e-9
ERDOS_BORWEIN = sum(1 / (2**k - 1) for k in range(1, 60))
"""1.6067: what the split boxes above the bias can cost, in units of 1/scale, where the noise is wide."""


def losses(rows: list[Row], sides: list[Side], rule: PlainRule, *, free: int, stop: int) -> float:
    """The worst loss against every neighbour, in both directions."""
    return max(
        worst_loss(first, second, sides, free=free, stop=stop, rule=rule)
        for other in neighbours(rows, sides)
        for first, second in ((rows, other), (other, rows))
    )


def enumerated_loss(rows: list[Row], sides: list[Side], rule: PlainRule, *, free: int, stop: int) -> float:
    """The same from the probabilities of all trees, without the recursion's shortcut."""
    here = tree_law(rows, sides, free=free, stop=stop, rule=rule)
    assert math.isclose(sum(here.values()), 1, rel_tol=1e-9)
    worst = 0.0
    for other in neighbours(rows, sides):
        there = tree_law(other, sides, free=free, stop=stop, rule=rule)
        assert there.keys() == here.keys()
        worst = max(worst, *(abs(math.log(here[tree] / there[tree])) for tree in here))
    return worst


def one_path(rule: PlainRule, depth: int) -> int:
    """Rows that, all in one path of ``depth`` decisions, stand at 1, D + 1, 2 D + 1, ... above nothing."""
    assert rule.bias is not None
    return -(-(1 + rule.bias * (depth - 1)) // rule.steps) + rule.theta


def test_the_rule_under_test_is_the_rule_that_runs() -> None:
    for epsilon in EPSILONS:
        noise = SeededNoise(Budget.of(epsilon), seed=0)
        ours = PrivTreeRule.open(noise, epsilon=noise.budget.epsilon, threshold=2)
        plain = privtree_rule(epsilon, theta=2, loss=PRIVTREE_LOSS)
        assert math.isclose(ours.scale, plain.scale)
        assert (ours.bias, ours.threshold, ours.bias + 1) == (plain.bias, plain.theta, plain.least)
        assert ours.steps == plain.steps
        assert noise.spent == noise.budget


def test_the_bias_halves_the_tail_and_no_scale_or_bias_is_rounded_down() -> None:
    for epsilon in [Fraction(k, 997) for k in range(1, 4000, 7)]:
        noise = SeededNoise(Budget(epsilon=epsilon), seed=0)
        rule = PrivTreeRule.open(noise, epsilon=epsilon, threshold=0)
        assert Fraction(rule.scale) >= rule.steps * PRIVTREE_LOSS / epsilon
        # ln 2 to thirty digits: the bias must reach scale * ln 2 in exact arithmetic.
        assert rule.bias >= Fraction(rule.scale) * Fraction("0.693147180559945309417232121458")


def test_tails_are_those_of_the_two_sided_geometric_law() -> None:
    for scale in (0.3, 1.0, 7.0):
        k = np.arange(-400, 401)
        law = np.exp(-np.abs(k) / scale)
        law /= law.sum()
        for least in range(-20, 21):
            assert math.isclose(tail(scale, least), law[k >= least].sum(), rel_tol=1e-9)


TABLES: dict[str, tuple[list[Side], int, int]] = {
    "two axes": ([Side(4), Side(4)], 0, 4),
    "free levels": ([Side(4), Side(4)], 1, 4),
    "uneven axes that are passed on": ([Side(3), Side(5)], 0, 4),
    "uneven axes behind a free level": ([Side(3), Side(3)], 1, 4),
    "label, missing and a single value": ([Side(3, label=True), Side(2, nullable=True), Side(1)], 0, 4),
}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("table", TABLES)
def test_no_tree_tells_neighbours_apart_by_more_than_epsilon(table: str, epsilon: float) -> None:
    sides, free, stop = TABLES[table]
    generator = np.random.default_rng(7)
    for theta in (0, 2):
        rule = privtree_rule(epsilon, theta)
        assert rule.bias is not None
        corner = tuple(0 for _ in sides)
        far = tuple(side.size - 1 for side in sides)
        for size in {1, 2, rule.bias, rule.bias + 1, one_path(rule, 2), one_path(rule, 3), one_path(rule, stop - free)}:
            for second in (0, 2 * rule.bias, 3 * rule.bias):
                assert losses([corner] * size + [far] * second, sides, rule, free=free, stop=stop) <= epsilon + ROUNDING
        for _ in range(3):
            spread = [
                tuple(int(generator.integers(s.size)) for s in sides) for _ in range(int(generator.integers(2, 9)))
            ]
            spread = [row for row in spread for _ in range(int(generator.integers(1, rule.bias + 2)))]
            assert losses(spread, sides, rule, free=free, stop=stop) <= epsilon + ROUNDING


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_worst_tree_found_by_recursion_is_the_worst_of_all_enumerated(epsilon: float) -> None:
    rule = privtree_rule(epsilon)
    assert rule.bias is not None
    for sides, free, stop in ([Side(4), Side(2)], 0, 3), ([Side(3), Side(3)], 1, 4), ([Side(5)], 0, 3):
        rows = [tuple(0 for _ in sides)] * one_path(rule, 3) + [tuple(s.size - 1 for s in sides)] * 2 * rule.bias
        by_recursion = losses(rows, sides, rule, free=free, stop=stop)
        assert math.isclose(by_recursion, enumerated_loss(rows, sides, rule, free=free, stop=stop), rel_tol=1e-6)
        assert by_recursion <= epsilon + ROUNDING


@settings(max_examples=80)
@given(
    data=st.data(),
    epsilon=st.sampled_from([0.3, *EPSILONS, 9.0]),
    theta=st.integers(0, 3),
    free=st.integers(0, 3),
)
def test_no_table_is_told_from_its_neighbours_by_more_than_epsilon(
    data: st.DataObject, epsilon: float, theta: int, free: int
) -> None:
    sides = data.draw(
        st.lists(st.builds(Side, st.integers(1, 5), st.booleans(), st.booleans()), min_size=1, max_size=3),
        label="sides",
    )
    row = st.tuples(*(st.integers(0, side.size - 1) for side in sides))
    rule = privtree_rule(epsilon, theta)
    assert rule.bias is not None
    groups = data.draw(
        st.lists(st.tuples(row, st.integers(1, 3 * rule.bias + 3)), min_size=1, max_size=4), label="rows"
    )
    rows = [r for r, times in groups for _ in range(times)]
    from_row, to = data.draw(st.sampled_from(rows)), data.draw(row)
    other = list(rows)
    other.remove(from_row)
    other.append(to)
    depth = len([q for side in sides for q in range(side.questions(side.whole))])
    free = min(free, depth)
    assert worst_loss(rows, other, sides, free=free, stop=depth, rule=rule) <= epsilon + ROUNDING


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("theta", [0, 3])
def test_a_path_that_loses_a_row_costs_at_most_three_and_one_that_gains_it_at_most_one(
    epsilon: float, theta: int
) -> None:
    rule = privtree_rule(epsilon, theta)
    depth = 8
    # All non-increasing sequences of counts, by dynamic programming.
    assert worst_chain(rule, depth, one_path(rule, depth) + 5) * rule.row_scale <= 3 + ROUNDING
    for c in range(one_path(rule, depth) + 5):
        for length in range(1, 6):
            assert Chain((c,) * length).gaining(rule) * rule.row_scale <= 1 + ROUNDING


@settings(max_examples=100)
@given(
    scale=st.floats(0.05, 1e4),
    start=st.integers(0, 10**5),
    drops=st.lists(st.integers(0, 10**4), max_size=60),
    theta=st.integers(0, 100),
)
def test_no_sequence_of_counts_along_a_path_costs_more(scale: float, start: int, drops: list[int], theta: int) -> None:
    rule = privtree_rule(4 / scale, theta)
    counts = [start + 1]
    for drop in drops:
        counts.append(max(1, counts[-1] - drop))
    assert Chain(tuple(counts)).losing(rule) * rule.row_scale <= 3 + 1e-6
    assert Chain(tuple(counts)).gaining(rule) * rule.row_scale <= 1 + 1e-6


@settings(max_examples=100)
@given(scale=st.floats(0.02, 1e4), m=st.integers(1, 10**4))
def test_the_step_of_the_proof_that_bounds_a_split_box_holds(scale: float, m: int) -> None:
    a = math.exp(-1 / scale)
    # ln (1 + a - a^m) / (1 + a - a^(m-1)), without cancellation; at m = 1 it is ln 1/a.
    above = a ** (m - 1) * -math.expm1(-1 / scale)
    f = 1 / scale if m == 1 else math.log1p(above / (1 + a - a ** (m - 1)))
    assert f <= a ** (m - 1) / scale * (1 + 1e-9)
    assert a ** math.ceil(scale * math.log(2)) <= 0.5 * (1 + 1e-9)


def test_the_bound_of_four_is_reached_to_nine_tenths_and_never_more() -> None:
    """The supremum over scales is 2 + Σ 1/(2^k - 1) = 3.6067 (Erdős–Borwein), approached as the noise widens."""
    tightness = {}
    for scale in [*np.linspace(0.05, 60, 200).tolist(), *np.geomspace(60, 1e5, 60).tolist()]:
        rule = privtree_rule(4 / scale)
        worst = Chain((one_path(rule, 50),) * 50).losing(rule) + Chain((10 * rule.least,)).gaining(rule)
        tightness[scale] = worst * scale / 4
    assert max(tightness.values()) <= (2 + ERDOS_BORWEIN) / 4 + 1e-9
    assert max(tightness.values()) > 0.9015


def test_whole_trees_reach_nine_tenths_of_the_bound() -> None:
    """Not only chains: a tree, its table and a neighbour, with both paths at their worst at once."""
    epsilon, sides = 0.1, [Side(256)]
    rule = privtree_rule(epsilon)
    assert rule.bias is not None
    rows = [(0,)] * one_path(rule, 8) + [(255,)] * 20 * rule.bias
    other = [*rows[1:], (255,)]
    worst = worst_loss(rows, other, sides, free=0, stop=8, rule=rule)
    assert 0.88 * epsilon < worst <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_half_the_noise_is_found_out(epsilon: float) -> None:
    sides = [Side(64)]
    # Where there is little noise one row is a large step, and the bound of four is not tight enough to refute three.
    for loss in (2.0, 3.0) if epsilon <= 0.5 else (2.0,):
        rule = privtree_rule(epsilon, loss=loss)
        assert rule.bias is not None
        found = 0.0
        for more in range(-3, 4):
            rows = [(0,)] * (one_path(rule, 6) + more) + [(63,)] * 9 * rule.bias
            found = max(found, worst_loss(rows, [*rows[1:], (63,)], sides, free=0, stop=6, rule=rule))
        assert found > 1.05 * epsilon, (loss, found)


def test_half_the_bias_is_found_out() -> None:
    rule = privtree_rule(0.1)
    assert rule.bias is not None
    bias = rule.bias // 2
    weak = replace(rule, bias=bias, least=bias + 1)
    rows = [(0,)] * one_path(weak, 8) + [(255,)] * 20 * rule.bias
    assert worst_loss(rows, [*rows[1:], (255,)], [Side(256)], free=0, stop=8, rule=weak) > 0.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_papers_rule_costs_what_it_says_with_counts_and_about_half_without(epsilon: float) -> None:
    """Noisy counts that are used again cost 2 L / scale; the decisions alone cost (L + 1) / scale."""
    for levels in (1, 2, 3, 4):
        sides = [Side(4), Side(4)]
        for tau in (0, 20):
            rule = paper_rule(epsilon, levels, tau)
            worst = 0.0
            for size, second in (1, 0), (tau + 1, tau + 2), (tau, 40), (3, 2):
                rows = [(0, 0)] * size + [(3, 3)] * second
                for free in range(5 - levels):
                    worst = max(worst, losses(rows, sides, rule, free=free, stop=free + levels))
            assert worst <= (levels + 1) / rule.scale + ROUNDING
            assert worst <= epsilon + ROUNDING
    # Behind a free level the two paths are apart from the first decision on, and the bound for decisions is reached.
    rows = [(0, 0)] + [(3, 3)] * int(20 + 40 / epsilon)
    worst = losses(rows, sides, paper_rule(epsilon, 3, 20), free=1, stop=4)
    assert math.isclose(worst, 4 / 6 * epsilon, rel_tol=1e-6)


def test_the_papers_rule_at_a_third_of_its_noise_is_found_out() -> None:
    rule = stretched(paper_rule(1.0, 3, 20), 1 / 3)
    assert losses([(0, 0)] + [(3, 3)] * 60, [Side(4), Side(4)], rule, free=1, stop=4) > 1.5
