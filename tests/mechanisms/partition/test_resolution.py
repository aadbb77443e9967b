"""The paid choice of a grid: one row moves its scores by two at most, it costs its share, and it pays off."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.inference.histograms import law_of
from dpsynth_core.mechanisms import kd_grid
from dpsynth_core.mechanisms.kd_grid import MOST_CELLS, KDGrid, balanced_bins
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.mechanisms.partition.resolution import LOSS_SENSITIVITY, resolutions, rows_at_risk, with_lost_rows
from dpsynth_core.mechanisms.partition.thresholds import invented_rows, spurious_threshold
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise

PLANE = dp.Schema.from_dict(
    {"columns": [{"name": x, "kind": "continuous", "lower": 0.0, "upper": 1.0, "public": True} for x in ("x", "y")]}
)


def clusters(rows: int, seed: int, std: float = 0.01) -> dp.PrivateTable:
    """Four tight clusters, which fill little of the square."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.2, 0.3], [0.7, 0.6], [0.35, 0.8], [0.8, 0.15]])
    points = centres[rng.integers(0, 4, rows)] + std * rng.normal(size=(rows, 2))
    return dp.PrivateTable(pd.DataFrame(points, columns=["x", "y"]), PLANE)


def test_one_replaced_row_moves_the_loss_by_two_at_most_and_that_is_reached() -> None:
    """Every table of six rows over four cells, every replaced row, every threshold."""
    largest = 0
    for counts in itertools.product(range(7), repeat=4):
        if sum(counts) != 6:
            continue
        for source, target in itertools.permutations(range(4), 2):
            if not counts[source]:
                continue
            moved = np.array(counts)
            moved[source] -= 1
            moved[target] += 1
            for threshold in range(1, 8):
                change = abs(rows_at_risk(np.array(counts), threshold) - rows_at_risk(moved, threshold))
                largest = max(largest, change)
    assert largest == LOSS_SENSITIVITY


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), st.integers(1, 30))
def test_the_loss_covers_what_the_threshold_would_drop(counts: list[int], threshold: int) -> None:
    below = sum(count for count in counts if count < threshold)
    assert below <= rows_at_risk(np.array(counts), threshold) <= sum(counts)


def test_what_is_chosen_from_follows_from_public_facts() -> None:
    """No threshold lets more than one row in 400 be invented; the finest grid has 32 times the bins of the coarsest."""
    scale = Fraction(2)
    found = resolutions(PLANE, 10_000, around=40, scale=scale, threshold=None, most=2**62)
    assert {candidate.bins for candidate in found} >= {10, 20, 40, 80, 160, 320}
    for candidate in found:
        assert invented_rows(candidate.bins**2, candidate.threshold, scale) <= 25
    only = resolutions(PLANE, 10_000, around=40, scale=scale, threshold=7, most=2**62)
    assert {candidate.threshold for candidate in only} == {7}
    assert max(c.bins for c in resolutions(PLANE, 10_000, around=40, scale=scale, threshold=None, most=2_000)) <= 44


def test_a_smaller_share_of_invented_rows_needs_a_higher_threshold() -> None:
    thresholds = [spurious_threshold(10_000, 1_000, Fraction(2), share=share) for share in (0.01, 0.005, 0.0025)]
    assert thresholds == sorted(set(thresholds))


def test_choice_and_counts_add_up_to_the_budget() -> None:
    mechanism = KDGrid(choice_share=0.25)
    stages = mechanism.plan(PLANE, 1_000, Budget.of(1)).stages
    assert [stage.epsilon for stage in stages] == [Fraction(1, 4), Fraction(3, 4)]
    noise = SeededNoise(Budget.of(1), 3)
    mechanism.fit(clusters(1_000, 1), noise)
    assert noise.spent == noise.budget
    release = dp.synthesize(clusters(1_000, 1), mechanism, epsilon=1)
    assert release.guarantee.status == "proven"
    assert [charge.budget.epsilon for charge in release.charges] == [Fraction(1, 4), Fraction(3, 4)]


@given(
    columns=st.integers(1, 24),
    n=st.integers(1, 40),
    share=st.sampled_from([0.0, 0.05, 0.5]),
    bins=st.sampled_from([None, 2, 40, 5_000]),
    threshold=st.sampled_from([None, 1, 30]),
    epsilon=st.sampled_from(["0.01", "1", "50"]),
)
@settings(max_examples=40, deadline=None)
def test_a_plan_refuses_exactly_where_a_run_does(  # noqa: PLR0917
    columns: int, n: int, share: float, bins: int | None, threshold: int | None, epsilon: str
) -> None:
    facts = [{"name": f"c{i}", "kind": "continuous", "lower": 0, "upper": 1, "public": True} for i in range(columns)]
    schema = dp.Schema.from_dict({"columns": facts})
    table = dp.PrivateTable(pd.DataFrame({f"c{i}": [0.5] * n for i in range(columns)}), schema)
    mechanism = KDGrid(bins=bins, choice_share=share, threshold=threshold)
    noise = SeededNoise(Budget.of(epsilon), 1)
    planned = run = ""
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(kd_grid, "MOST_INVENTED", 2_000)  # as in the mechanism, but quicker
        try:
            mechanism.plan(schema, n, Budget.of(epsilon))
        except dp.ParameterError as refusal:
            planned = str(refusal)
        try:
            mechanism.fit(table, noise)
        except dp.ParameterError as refusal:
            run = str(refusal)
    assert run == planned
    assert noise.charges == () if run else noise.spent == noise.budget, "nothing is paid for a refusal"


def test_a_grid_that_is_too_fine_all_over_leaves_the_coarser_ones_to_choose_from() -> None:
    """Sixteen columns: the balanced grid is refused, a quarter of its bins is not."""
    facts = [{"name": f"c{i}", "kind": "continuous", "lower": 0, "upper": 1, "public": True} for i in range(16)]
    schema, mechanism = dp.Schema.from_dict({"columns": facts}), KDGrid(choice_share=0.05)
    n = next(10**k for k in range(2, 19) if balanced_bins(schema, 10**k, 1) ** 16 > MOST_CELLS)
    assert mechanism.plan(schema, n, Budget.of(1)).cells <= MOST_CELLS


def test_given_bins_are_used_and_nothing_is_paid_for_choosing() -> None:
    mechanism = KDGrid(bins=7, choice_share=0.25)
    release = dp.synthesize(clusters(500, 1), mechanism, epsilon=1, seed=1)
    assert len(release.charges) == 1
    assert release.model.axes[0].size == 7  # type: ignore[attr-defined]


def test_rows_that_fill_little_of_the_domain_get_smaller_cells() -> None:
    """At this size the noise of the choice is below a thousandth of the rows, so every run must do so."""
    rows = 100_000
    tight, broad = (
        KDGrid(choice_share=0.05).fit(table, SeededNoise(Budget.of(1), 5)).axes[0].size
        for table in (clusters(rows, 2), clusters(rows, 2, std=0.3))
    )
    assert tight > 1.5 * balanced_bins(PLANE, rows, 1) > broad


def test_lost_rows_go_beside_kept_cells_and_nowhere_else() -> None:
    """Two kept cells side by side: of the dropped cells only those with both as neighbours get rows."""
    grid = Grid.of(PLANE, 6)
    kept, counts = np.array([[2, 2], [2, 3]]), np.array([10, 10])
    cells, weights = with_lost_rows(grid, kept, counts, rows=24, threshold=5)
    assert cells.tolist() == [[2, 2], [2, 3], [1, 2], [1, 3], [3, 2], [3, 3]]
    assert weights.tolist() == [10, 10, 1, 1, 1, 1]
    _, capped = with_lost_rows(grid, kept, counts, rows=1_000, threshold=5)
    assert capped.tolist() == [10, 10, 5, 5, 5, 5]
    for full in (20, 15):  # nothing is missing
        assert len(with_lost_rows(grid, kept, counts, rows=full, threshold=5)[0]) == 2


def test_a_missing_value_has_no_neighbours_and_labels_do_not_mix() -> None:
    facts = [
        {"name": "g", "kind": "categorical", "categories": ["a", "b"], "public": True},
        {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0, "nullable": True, "public": True},
    ]
    grid = Grid.of(dp.Schema.from_dict({"columns": facts}), 5)
    kept = np.array([[0, 1], [0, 3], [0, 5], [1, 4]])  # 5 is the missing slot
    cells, weights = with_lost_rows(grid, kept, np.array([4, 4, 4, 4]), rows=20, threshold=9)
    assert cells[4:].tolist() == [[0, 2]]
    assert weights[4:].tolist() == [4]


def test_returning_lost_rows_brings_the_edges_back() -> None:
    """Against the true shares of a fixed grid, over a few runs: the tails of clusters are kept."""
    table, grid = clusters(20_000, 4, std=0.03), Grid.of(PLANE, 40)
    true = grid.full_counts(table) / 20_000

    def error(mechanism: KDGrid) -> float:
        found = []
        for seed in range(5):
            model, shares = mechanism.fit(table, SeededNoise(Budget.of("0.2"), seed)), np.zeros(grid.shape)
            shares[tuple(model.low.T)] = model.weights / model.weights.sum()
            found.append(0.5 * float(np.abs(shares - true).sum()))
        return float(np.mean(found))

    assert error(KDGrid(bins=40, spread_lost=True)) < 0.9 * error(KDGrid(bins=40))


def test_labels_keep_the_rule_and_few_rows_too() -> None:
    """A table of groups is tested by the law of its counts, which a choice would change; one column needs none."""
    labels = {"name": "g", "kind": "categorical", "categories": ["a", "b"], "public": True}
    mixed = dp.Schema.from_dict({"columns": [labels, PLANE.to_dict()["columns"][0]]})
    assert not KDGrid.suggest(mixed, 100_000, 1).chooses_bins
    assert not KDGrid.suggest(PLANE.select(["x"]), 100_000, 1).chooses_bins
    assert not KDGrid.suggest(PLANE, 4_000, 1).chooses_bins
    assert KDGrid.suggest(PLANE, 10_000, 1).chooses_bins


def test_a_grid_whose_cells_were_chosen_has_no_law_of_counts() -> None:
    for changed in (KDGrid(choice_share=0.1), KDGrid(spread_lost=True)):
        assert law_of(changed, (2, 10), 100, Fraction(1)) is None
    assert law_of(KDGrid(), (2, 10), 100, Fraction(1)) is not None


@pytest.mark.parametrize("share", [-0.1, 0.9, 2, "much"])
def test_a_share_out_of_range_is_refused(share: object) -> None:
    with pytest.raises(dp.ParameterError, match="choice_share"):
        KDGrid(choice_share=share)  # type: ignore[arg-type]
