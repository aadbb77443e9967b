"""Counts of pairs that the model is too small for."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm import PrivatePGM, rounds
from dpsynth_core.mechanisms.private_pgm.estimation import Measurement
from dpsynth_core.mechanisms.private_pgm.junction_tree import Coarsening
from dpsynth_core.mechanisms.private_pgm.loose_pairs import corrected_pairs
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay

ROWS = 20_000
PAIR = (0, 1)


def independent(shares: FloatArray) -> FloatArray:
    return np.outer(shares, shares)


def counted(truth: FloatArray, std: float, *, coarser: Coarsening | None = None, seed: int = 0) -> Measurement:
    table = truth if coarser is None else coarser.gather(truth)
    noisy = ROWS * table + np.random.default_rng(seed).normal(0, std, table.shape)
    return Measurement(clique=PAIR, values=noisy, std=std, coarser=coarser)


SHARES = np.array([0.4, 0.3, 0.2, 0.1])
TRUTH = 0.5 * independent(SHARES) + 0.5 * np.diag(SHARES)


def test_a_clear_count_replaces_what_the_model_expects() -> None:
    found = corrected_pairs({PAIR: independent(SHARES)}, [counted(TRUTH, 1.0)], ROWS)[PAIR]
    assert np.abs(found - TRUTH).sum() / 2 < 1e-3


def test_what_is_all_noise_changes_nothing() -> None:
    expected = independent(SHARES)
    for seed in range(20):
        found = corrected_pairs({PAIR: expected}, [counted(expected, 500.0, seed=seed)], ROWS)[PAIR]
        noise = np.abs(counted(expected, 500.0, seed=seed).values / ROWS - expected).sum() / 2
        assert np.abs(found - expected).sum() / 2 < noise


def test_the_columns_keep_their_shares_and_probabilities_stay_probabilities() -> None:
    for std in (1.0, 100.0, 2_000.0):
        found = corrected_pairs({PAIR: independent(SHARES)}, [counted(TRUTH, std, seed=3)], ROWS)[PAIR]
        assert (found >= 0).all()
        assert found.sum(axis=0) == pytest.approx(SHARES, abs=1e-6)
        assert found.sum(axis=1) == pytest.approx(SHARES, abs=1e-3)


def test_a_coarser_count_moves_groups_and_keeps_what_is_within_them() -> None:
    halves = Coarsening(maps=(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])))
    found = corrected_pairs({PAIR: independent(SHARES)}, [counted(TRUTH, 1.0, coarser=halves)], ROWS)[PAIR]
    assert np.abs(halves.gather(found) - halves.gather(TRUTH)).max() < 1e-3
    assert found[0, 0] / found[0, 1] == pytest.approx(SHARES[0] / SHARES[1], rel=1e-3)


def test_a_count_that_agrees_exactly_is_no_obstacle() -> None:
    expected = independent(SHARES)
    exact = Measurement(clique=PAIR, values=ROWS * expected, std=1.0)
    assert corrected_pairs({PAIR: expected}, [exact], ROWS)[PAIR] == pytest.approx(expected, abs=1e-9)


def related(rows: int = 4_000) -> dp.PrivateTable:
    """Six columns that all follow one hidden number: no tree of pairs explains them."""
    rng = np.random.default_rng(6)
    hidden = rng.normal(size=rows)
    frame = pd.DataFrame({f"c{i}": np.digitize(hidden + rng.normal(0, 0.8, rows), [-1, 0, 1]) for i in range(6)})
    facts = [{"name": name, "kind": "integer", "lower": 0, "upper": 3, "public": True} for name in frame]
    return dp.PrivateTable(frame, dp.Schema.from_dict({"columns": facts}))


def pair_error(table: dp.PrivateTable, made: pd.DataFrame) -> float:
    other = dp.PrivateTable(made, table.schema)
    gaps = [
        np.abs(table.counts(pair).dense() - other.counts(pair).dense()).sum() / (2 * table.n)
        for pair in combinations(table.schema.names, 2)
    ]
    return float(np.mean(gaps))


def test_pairs_that_the_model_cannot_hold_are_kept_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model of a tree's size, the other pairs would follow from it, and be wrong by 0.14 on average."""
    monkeypatch.setattr(rounds, "MAX_MODEL_CELLS", 100)
    table = related()
    made = dp.synthesize(table, PrivatePGM(rounds=30), epsilon=50, delta="1e-6", seed=0).sample()
    assert pair_error(table, made) < 0.02


@pytest.mark.parametrize("mechanism", [PrivatePGM(rounds=12), PrivatePGM(rounds=4, last_counts="every")])
def test_neighbours_enter_every_draw_within_its_sensitivity_there_too(
    mechanism: PrivatePGM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "MAX_MODEL_CELLS", 100)
    table = related(200)
    recorder = Recorder(SeededNoise(Budget.of(2, "1e-6"), seed=0))
    mechanism.fit(table, recorder)
    changed = table.rows()
    changed.iloc[7] = 3 - changed.iloc[7]
    replay = Replay(recorder)
    mechanism.fit(dp.PrivateTable(changed, table.schema), replay)
    assert replay.finished
    assert replay.excess <= 1


def test_a_noisy_count_puts_next_to_nothing_where_the_model_expects_nothing() -> None:
    """Noise above zero in many empty cells would otherwise add up to rows that are nowhere."""
    crowded = np.full((20, 20), 1e-7)
    crowded[:4, :4] = 1.0
    crowded /= crowded.sum()
    for seed in range(5):
        found = corrected_pairs({PAIR: crowded}, [counted(crowded, 10.0, seed=seed)], ROWS)[PAIR]
        assert found[4:, 4:].sum() < 1e-4
        assert np.abs(found - crowded).sum() / 2 < 0.002, "chance and noise together would give 0.005"
