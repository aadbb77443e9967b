"""Simulated tables of counts have the law of the registered mechanisms; estimates for the null undo its distortion."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth_core.inference.histograms import HISTOGRAMS, law_of
from dpsynth_core.inference.mann_whitney import mann_whitney_counts
from dpsynth_core.inference.nuisance import from_noisy_counts, from_shares, from_smoothed_counts
from dpsynth_core.inference.u_statistics import ordinary_pvalues
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

COUNTS = np.array([[6, 9, 3, 0, 0, 2], [1, 2, 9, 5, 0, 3]])
GROUP = {"name": "group", "kind": "boolean", "public": True}
VALUE = {"name": "value", "kind": "continuous", "lower": 0, "upper": 6, "bins": 6, "public": True}


def schema(*, group_first: bool) -> Schema:
    return Schema.from_dict({"columns": [GROUP, VALUE] if group_first else [VALUE, GROUP]})


def rows() -> pd.DataFrame:
    group, value = np.divmod(np.repeat(np.arange(12), COUNTS.ravel()), 6)
    return pd.DataFrame({"group": group == 1, "value": value + 0.5})


MECHANISM_CASES = {
    "perturbed": (PerturbedHistogram(placement="centre"), 0.5),
    "perturbed, nearly exact": (PerturbedHistogram(placement="centre"), 6.0),
    "perturbed, hardly any cell": (PerturbedHistogram(placement="centre", bins=1), 0.5),
    "perturbed, more rows": (PerturbedHistogram(placement="centre", rows=101), 1.0),
    "grid": (KDGrid(placement="centre"), 1.0),
    "grid, threshold": (KDGrid(placement="centre", threshold=5), 1.0),
    "smoothed": (SmoothedHistogram(placement="centre", rows=20), 5.0),
    "smoothed, paper": (SmoothedHistogram(placement="centre", smoothing="paper"), 50.0),
}


@pytest.mark.parametrize("name", MECHANISM_CASES)
@pytest.mark.parametrize("group_first", [True, False], ids=["group first", "value first"])
def test_counts_have_the_law_of_the_mechanism(name: str, group_first: bool) -> None:
    mechanism, epsilon = MECHANISM_CASES[name]
    facts = schema(group_first=group_first)
    private, runs, bins = PrivateTable(rows(), facts), 200, mechanism.bins or 6
    own = np.empty((runs, 2, bins))
    for seed in range(runs):
        table = synthesize(private, mechanism, epsilon=epsilon, seed=seed).sample()
        cell = np.minimum((table["value"].to_numpy() / 6 * bins).astype(int), bins - 1)
        own[seed] = np.bincount(table["group"].to_numpy() * bins + cell, minlength=2 * bins).reshape(2, bins)
    law = law_of(mechanism, (2, bins), 40, Fraction(str(epsilon)), group_first=group_first)
    assert law is not None
    counts = COUNTS.reshape(2, bins, -1).sum(axis=2)
    other = law.run(np.repeat(counts[None], 4 * runs, axis=0), np.random.default_rng(1))
    assert (other.sum(axis=(1, 2)) == (mechanism.rows or 40)).all()
    np.testing.assert_array_equal(other, other.round())
    for statistic in (
        lambda c: mann_whitney_counts(c[:, 0], c[:, 1], degenerate="one").statistic,
        lambda c: c[:, 0].sum(axis=1),
        lambda c: c[:, :, 0].sum(axis=1),
        lambda c: (c**2).sum(axis=(1, 2)),
    ):
        assert stats.ks_2samp(statistic(own), statistic(other)).pvalue > 1e-4


@pytest.mark.parametrize("kind", [PerturbedHistogram, SmoothedHistogram, KDGrid])
def test_pvalues_of_scattered_rows_have_the_law_of_the_mechanism(kind: type[Mechanism]) -> None:
    mechanism, private = kind(), PrivateTable(rows(), schema(group_first=True))
    own = []
    for seed in range(200):
        table = synthesize(private, mechanism, epsilon=2, seed=seed).sample()
        first, second = (table.loc[table["group"] == label, "value"] for label in (False, True))
        if len(first) and len(second):
            own.append(stats.mannwhitneyu(first, second, method="asymptotic").pvalue)
    law = law_of(mechanism, (2, 6), 40, Fraction(2))
    assert law is not None
    assert not law.centre
    rng = np.random.default_rng(2)
    other = ordinary_pvalues(law.run(np.repeat(COUNTS[None], 2000, axis=0), rng), rng, centre=False)
    # Rounded, so that what two programs compute for the same U is equal.
    own, other = (np.log(values).round(6) for values in (np.array(own), other[~np.isnan(other)]))
    assert stats.ks_2samp(own, other).pvalue > 1e-4


def test_only_histograms_have_a_law_of_counts() -> None:
    assert law_of(KDTree(), (2, 6), 40, Fraction(1)) is None
    for kind in MECHANISMS.values():
        assert (law_of(kind(), (2, 6), 40, Fraction(1)) is not None) == issubclass(kind, HISTOGRAMS)


def test_estimates_undo_the_mechanisms_distortion() -> None:
    """Given exactly what a mechanism releases on average, sizes and shares of the original come back."""
    chances = np.array([0.5, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    original = np.array([100, 900])[:, None] * chances
    scale = 10.0
    a = math.exp(-1 / scale)
    expected = original + a / (1 - a * a) * a**original
    released = expected * 1000 / expected.sum()
    found = from_noisy_counts(released[None], 1000, scale)
    assert abs(found.sizes[0, 0] - 100) <= 6, "taken at face value, the small group would have 120 rows"
    assert from_shares(released[None], 1000).sizes[0, 0] > 115
    np.testing.assert_allclose(found.chances[0], chances, atol=0.03)
    smoothed = (original + 20.0) * 50 / (1000 + 16 * 20)
    again = from_smoothed_counts(smoothed[None], 1000, 20.0)
    assert again.sizes.tolist() == [[100, 900]]
    np.testing.assert_allclose(again.chances[0], chances, atol=1e-9)


@given(st.lists(st.integers(0, 40), min_size=6, max_size=6), st.sampled_from([0.5, 10.0, 200.0]))
@settings(max_examples=60, deadline=None)
def test_estimates_are_always_a_table(cells: list[int], scale: float) -> None:
    released = np.array(cells, dtype=float).reshape(1, 2, 3)
    if not released.sum():
        return
    for found in (
        from_noisy_counts(released, 50, scale),
        from_shares(released, 50),
        from_smoothed_counts(released, 50, scale),
    ):
        assert found.sizes.sum() == 50
        assert found.sizes.min() >= 1
        assert found.chances.sum() == pytest.approx(1)
        drawn = found.draw(3, np.random.default_rng(0))
        assert drawn.sum(axis=2).tolist() == [found.sizes[0].tolist()] * 3
