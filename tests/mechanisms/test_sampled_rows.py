"""Mechanisms that need rows at hand work on a random sample of stated size; the others on every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise

SCHEMA = dp.Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "public": True},
            {"name": "s", "kind": "categorical", "categories": ["a", "b"], "public": True},
        ]
    }
)
QUICK: dict[str, dict[str, Any]] = {
    "pmse": {},
    "dp_gan": {"rows_per_critic": 5, "rounds": 2, "batch": 2, "hidden": 4, "critic_steps": 1},
    "balog_points": {"points": 4},
    "balog_features": {"points": 2, "features": 8},
    "dp_merf": {"features": 8, "training_steps": 2, "batch": 4, "hidden": 4},
}


def frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": rng.random(n), "s": rng.choice(["a", "b"], n)})


def test_exactly_these_mechanisms_sample() -> None:
    assert {key for key in MECHANISMS if MECHANISMS[key].max_rows is not None} == set(QUICK)


@pytest.mark.parametrize("key", ["pmse", pytest.param("dp_gan", marks=pytest.mark.slow), "balog_features"])
def test_a_longer_table_is_sampled_and_the_release_says_so(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = MECHANISMS[key]
    monkeypatch.setattr(kind, "max_rows", 120)
    seen = []
    take = dp.PrivateTable.sample
    monkeypatch.setattr(
        dp.PrivateTable, "sample", lambda self, size, noise: seen.append(size) or take(self, size, noise)
    )
    table, mechanism, delta = dp.PrivateTable(frame(), SCHEMA), kind(**QUICK[key]), "1e-6" if kind.needs_delta else 0
    release = dp.synthesize(table, mechanism, epsilon=1, delta=delta)
    assert seen == [120]
    assert "Fitted to a random sample of 120 of the 300 rows" in " ".join(release.guarantee.caveats)
    assert release.guarantee.epsilon == 1
    assert release.n == len(release.sample()) == 300
    few = dp.synthesize(dp.PrivateTable(frame(100), SCHEMA), mechanism, epsilon=1, delta=delta)
    assert not any("sample" in caveat for caveat in few.guarantee.caveats)


def test_a_sample_is_drawn_by_position_whatever_the_rows_hold() -> None:
    """Neighbours get samples of the same positions, which differ in the replaced row at most."""
    rows, other = frame(), frame()
    other.loc[17, ["x", "s"]] = [0.99, "b"]
    first, second = (
        dp.PrivateTable(each, SCHEMA).sample(200, SeededNoise(Budget.of(1), seed=4)).rows() for each in (rows, other)
    )
    assert len(first) == 200
    changed = (first != second).any(axis=1)
    assert changed.sum() <= 1
    position = np.flatnonzero(np.isin(rows["x"], first["x"]))
    assert first["x"].tolist() == rows["x"].iloc[position].tolist(), "in the order of the table"
