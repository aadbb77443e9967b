"""The KD tree as printed: every leaf pays, every leaf must reach the threshold, nothing is made to agree."""

from __future__ import annotations

import numpy as np
import pandas as pd

import dpsynth_core as dp
from benchmarks.papers.published_kd_tree import PublishedKDTree
from dpsynth_core.privacy.budget import Budget

SCHEMA = dp.Schema.from_dict(
    {"columns": [{"name": n, "kind": "continuous", "lower": 0, "upper": 1, "public": True} for n in ("x", "y")]}
)


def clustered(rows: int) -> dp.PrivateTable:
    rng = np.random.default_rng(1)
    return dp.PrivateTable(pd.DataFrame(rng.normal(0.3, 0.02, (rows, 2)), columns=["x", "y"]), SCHEMA)


def test_it_spends_epsilon_once_on_each_level_and_on_the_leaves() -> None:
    release = dp.synthesize(clustered(5_000), PublishedKDTree(free_levels=4, max_levels=8), epsilon=1)
    assert release.guarantee.status == "proven"
    assert sum(charge.budget.epsilon for charge in release.charges) == Budget.of(1).epsilon
    assert [charge.label for charge in release.charges] == [
        *["which boxes to split"] * 4,
        "counts of the leaves",
    ]


def test_with_hardly_any_noise_only_boxes_with_rows_are_split_and_kept() -> None:
    table = clustered(5_000)
    model = dp.synthesize(table, PublishedKDTree(free_levels=4, max_levels=8), epsilon=1_000, seed=1).model
    leaves = model.leaves()  # type: ignore[attr-defined]
    inside = (table.rows()["x"].to_numpy()[:, None] >= leaves["x from"].to_numpy(dtype=float)) & (
        table.rows()["x"].to_numpy()[:, None] < leaves["x to"].to_numpy(dtype=float)
    )
    inside &= (table.rows()["y"].to_numpy()[:, None] >= leaves["y from"].to_numpy(dtype=float)) & (
        table.rows()["y"].to_numpy()[:, None] < leaves["y to"].to_numpy(dtype=float)
    )
    counts = inside.sum(axis=0)
    assert counts.sum() == table.n  # leaves do not overlap, and none that holds rows is missing
    np.testing.assert_allclose(leaves["rows"], counts, atol=1)


def test_at_lemma_10s_threshold_no_empty_box_is_split() -> None:
    """Up to a probability of 1e-4: leaves that are deeper than h hold rows or are the siblings of such."""
    table = clustered(2_000)
    model = dp.synthesize(table, PublishedKDTree(free_levels=2, max_levels=8), epsilon=1, seed=3).model
    assert len(model.leaves()) <= 2 + 6  # type: ignore[attr-defined]
