"""A tree is the same whether its rows are counted in one pass or in many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.mechanisms.kd_tree.interleaving import Coding
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.kd_tree.ranked_codes import RankedCodes

SCHEMA = dp.Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "public": True, "nullable": True},
            {"name": "k", "kind": "integer", "lower": 0, "upper": 40, "public": True},
            {"name": "s", "kind": "categorical", "categories": ["a", "b", "c"], "public": True},
        ]
    }
)


def crowded(n: int = 900) -> dp.PrivateTable:
    rng = np.random.default_rng(3)
    x = np.where(rng.random(n) < 0.1, np.nan, rng.beta(1, 9, n))
    return dp.PrivateTable(pd.DataFrame({"x": x, "k": rng.integers(0, 41, n), "s": rng.choice(list("aab"), n)}), SCHEMA)


@pytest.mark.parametrize("mechanism", [KDTree(), KDTree(free_levels=0), KDTree(rule="levels"), KDTree(free_levels=6)])
@pytest.mark.parametrize("cells", [1, 4, 64])
def test_rows_are_the_same_in_one_pass_and_in_many(
    mechanism: KDTree, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = crowded()
    whole = dp.synthesize(table, mechanism, epsilon=8, seed=5).sample()
    passes = []
    count = dp.PrivateTable.histograms
    monkeypatch.setattr(dp.PrivateTable, "histograms", lambda self, sets: passes.append(1) or count(self, sets))
    in_stages = replace(mechanism, boxes_per_pass=cells)
    pd.testing.assert_frame_equal(dp.synthesize(table, in_stages, epsilon=8, seed=5).sample(), whole)
    assert len(passes) > 1


def test_ranks_agree_with_sorted_codes() -> None:
    table = crowded()
    coding = Coding.of(table.schema)
    codes = np.sort(coding.codes(table))
    ranked = RankedCodes(coding, table, 1, boxes_per_pass=8)
    prefix, start, end = ranked.occupied(1)
    for depth in range(1, coding.bits):
        kept = np.arange(len(prefix)) % 3 != 1  # some boxes are given up on the way
        prefix, start, end = prefix[kept], start[kept], end[kept]
        ranked.look_into(prefix, start, end, depth)
        right = (prefix << 1) | 1
        middle = np.clip(ranked.rank(right, depth + 1), start, end)
        assert middle.tolist() == np.searchsorted(codes, right << (coding.bits - depth - 1)).clip(start, end).tolist()
        prefix = np.concatenate([prefix << 1, right])
        start, end = np.concatenate([start, middle]), np.concatenate([middle, end])
        prefix, start, end = prefix[end > start], start[end > start], end[end > start]
        if not len(prefix):
            break
