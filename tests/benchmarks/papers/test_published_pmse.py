"""The pMSE mechanism as published: what it draws from, and that it says what it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from benchmarks.papers import published_pmse
from benchmarks.papers.published_pmse import PublishedPMSE, RegressionChain
from dpsynth_core.mechanisms.pmse import metropolis
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise

SCHEMA = dp.EXAMPLES["bivariate_normal"].schema
SHORT = PublishedPMSE(steps=200, chains=2, cp=0.05, depth=2)


def bivariate(rows: int) -> dp.PrivateTable:
    rng = np.random.default_rng(0)
    x1 = rng.normal(2, 10, rows)
    return dp.PrivateTable(pd.DataFrame({"x1": x1, "x2": rng.normal(-2.5 + 0.5 * x1, 3)}), SCHEMA)


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short walks count as draws."""
    monkeypatch.setattr(metropolis, "MAX_RHAT", np.inf)
    monkeypatch.setattr(metropolis, "MIN_ESS", 0)


@pytest.mark.usefixtures("lenient")
def test_it_claims_no_more_than_a_heuristic_and_pays_by_the_papers_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_pmse, "FLAT_TAIL", 1.0)
    release = dp.synthesize(bivariate(100), SHORT, epsilon=5)
    assert release.guarantee.status == "heuristic"
    (charge,) = release.charges
    assert charge.sensitivity == Budget.of("1/100").epsilon
    assert len(release.sample()) == 100


@pytest.mark.usefixtures("lenient")
def test_a_walk_that_has_left_for_the_flat_tail_is_refused() -> None:
    """At epsilon 0.001 the density is the prior's, hundreds of units wide: rows from there overlap with none."""
    with pytest.raises(dp.DPSynthError, match="flat tail of the prior"):
        dp.synthesize(bivariate(300), PublishedPMSE(steps=1_000, chains=2), epsilon=0.001, seed=1)


def test_walks_that_do_not_agree_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metropolis, "MIN_ESS", np.inf)
    with pytest.raises(dp.DPSynthError, match="do not agree"):
        dp.synthesize(bivariate(300), SHORT, epsilon=50, seed=1)


def test_rows_follow_the_regressions() -> None:
    """x1 = N(theta1, theta2), x2 = N(theta3 + theta4 x1, theta5)."""
    chain = RegressionChain(columns=("x1", "x2"), theta=np.array([2.0, 10.0, -2.5, 0.5, 3.0]))
    rows = chain.sample(40_000, SeededNoise(Budget.of(1), 1))
    slope, intercept = np.polyfit(rows["x1"], rows["x2"], 1)
    residual = rows["x2"] - intercept - slope * rows["x1"]
    # Five standard errors each.
    assert rows["x1"].mean() == pytest.approx(2.0, abs=5 * 10 / 200)
    assert rows["x1"].std() == pytest.approx(10.0, abs=5 * 10 / np.sqrt(80_000))
    assert slope == pytest.approx(0.5, abs=5 * 3 / 10 / 200)
    assert intercept == pytest.approx(-2.5, abs=5 * 3 * np.sqrt(1.04) / 200)
    assert residual.std() == pytest.approx(3.0, abs=5 * 3 / np.sqrt(80_000))


def test_a_table_with_labels_is_refused() -> None:
    facts = {"columns": [{"name": "town", "kind": "categorical", "categories": ["a", "b"], "public": True}]}
    table = dp.PrivateTable(pd.DataFrame({"town": ["a", "b"]}), dp.Schema.from_dict(facts))
    with pytest.raises(dp.ParameterError, match="continuous numbers"):
        dp.synthesize(table, PublishedPMSE(), epsilon=1, seed=1)
