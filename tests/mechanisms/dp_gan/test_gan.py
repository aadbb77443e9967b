"""The GAN: what one row can move, what is released, and whether anything is learned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpsynth_core as dp
from dpsynth_core.mechanisms.dp_gan.mechanism import DPGAN
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout
from dpsynth_core.mechanisms.dp_gan.sanitise import STEPS, clip_to_lattice, clipped_sum, sampled_draw
from dpsynth_core.mechanisms.dp_gan.schedule import Schedule
from dpsynth_core.mechanisms.dp_gan.training import GAP, GRADIENTS, MOVEMENT, deal_rows
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay
from dpsynth_core.progress import Point
from dpsynth_core.table.schema import Schema
from tests.tables.strategies import schema_and_table

DELTA = "1/1000000"
QUICK: dict[str, Any] = {"rounds": 6, "batch": 3, "hidden": 8, "critic_steps": 2}
floats = st.floats(width=64, allow_nan=True, allow_infinity=True)


def small_schema() -> Schema:
    columns = [
        {"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "nullable": True, "public": True},
        {"name": "c", "kind": "categorical", "categories": ["a", "b", "c"], "public": True},
    ]
    return Schema.from_dict({"columns": columns})


def small_table(rows: int = 60, seed: int = 0) -> dp.PrivateTable:
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(rows) < 0.2, np.nan, rng.beta(2, 6, rows))
    return dp.PrivateTable(pd.DataFrame({"x": x, "c": rng.choice(["a", "b", "c"], rows)}), small_schema())


@given(gradients=arrays(np.float64, (2, 3, 4), elements=floats), other=arrays(np.float64, (3, 4), elements=floats))
@settings(max_examples=200)
def test_whatever_a_critic_says_a_row_moves_no_more_than_declared(gradients: np.ndarray, other: np.ndarray) -> None:
    draw = sampled_draw(batch=3, multiplier=1.0, chosen=2, parts=9)
    assert ((clip_to_lattice(gradients) ** 2).sum(axis=-1) <= STEPS**2).all()
    changed = gradients.copy()
    changed[1] = other
    assert ((clipped_sum(gradients) - clipped_sum(changed)) ** 2).sum() <= draw.squared


def test_a_critic_turned_around_moves_all_that_is_declared() -> None:
    one = np.zeros((1, 3, 4))
    one[0, :, 1] = 1e30
    draw = sampled_draw(batch=3, multiplier=1.0, chosen=1, parts=9)
    moved = ((clipped_sum(one) - clipped_sum(-one)) ** 2).sum() / draw.squared
    assert 0.99 < moved <= 1
    assert draw.mu <= 1


def test_small_gradients_keep_their_direction_and_size() -> None:
    rng = np.random.default_rng(1)
    given_ = rng.normal(0, 0.1, (1, 5, 6))
    kept = clip_to_lattice(given_) / STEPS
    assert np.abs(kept - given_).max() <= 1 / STEPS
    loud = clip_to_lattice(given_ * 1e6) / STEPS
    unit = given_ / np.linalg.norm(given_, axis=-1, keepdims=True)
    assert np.abs(loud - unit).max() <= 2 / STEPS


def test_every_row_belongs_to_one_critic_whatever_it_holds() -> None:
    noise = SeededNoise(Budget.of(1), 3)
    parts = deal_rows(47, 9, noise)
    assert sorted(np.concatenate(parts)) == list(range(47))
    assert {len(part) for part in parts} == {5, 6}


@given(drawn=schema_and_table())
@settings(max_examples=50)
def test_rows_survive_the_way_to_coordinates_and_back(drawn: tuple[Schema, pd.DataFrame]) -> None:
    schema, frame = drawn
    table = dp.PrivateTable(frame, schema)
    layout = PointLayout.of(schema)
    rows = layout.encode(table)
    assert rows.shape == (table.n, layout.width)
    assert np.abs(rows).max() <= 1
    assert not rows[:, layout.size :].any()
    for block in layout.blocks:
        codes = rows[:, block.labels].argmax(axis=1) if block.levels else np.zeros(table.n, dtype=np.int64)
        if block.levels:
            assert (rows[:, block.labels].sum(axis=1) == 1).all()
        back = block.positions(rows[:, block.start], codes)
        known = table.positions(block.column.name)
        if known.missing is not None:
            assert back.missing is not None
            assert (back.missing == known.missing).all()
        there = slice(None) if known.missing is None else ~known.missing
        width = float(np.ptp(known.values.astype(np.float64))) if block.number else 0.0
        assert np.allclose(
            back.values[there].astype(float), known.values[there].astype(float), atol=1e-6 + width * 1e-9
        )


def test_the_whole_budget_is_one_charge_of_as_many_draws_as_there_are_rounds() -> None:
    table, budget = small_table(), Budget.of(1, DELTA)
    recorder = Recorder(SeededNoise(budget, 1))
    DPGAN(rows_per_critic=10, **QUICK).fit(table, recorder)
    assert [charge.label for charge in recorder.charges] == [GRADIENTS]
    assert recorder.spent == budget
    assert sum(draw.call.name == "sampled_gaussian" for draw in recorder.draws) == QUICK["rounds"]


def test_a_round_depends_on_a_row_only_if_its_critic_is_heard() -> None:
    """Recorded, then replayed with one row replaced: in rounds without its part, not a bit changes."""
    budget, first = Budget.of(1, DELTA), small_table()
    frame = first.rows()
    frame.loc[7] = [0.99, "a"]
    second = dp.PrivateTable(frame, first.schema)
    mechanism = DPGAN(rows_per_critic=10, **QUICK)
    recorder = Recorder(SeededNoise(budget, 5))
    one = mechanism.fit(first, recorder)
    replay = Replay(recorder)
    other = mechanism.fit(second, replay)
    assert all((a == b).all() for x, y in zip(one.layers, other.layers, strict=True) for a, b in zip(x, y, strict=True))
    kinds = [draw.call.name for draw in recorder.draws]
    permutation = next(d.output for d in recorder.draws if d.call.name == "distinct" and len(d.output) == 60)
    own = next(k for k, part in enumerate(np.array_split(permutation, 6)) if 7 in part)
    heard = [d.output for d in recorder.draws if d.call.name == "distinct" and len(d.output) < 60]
    moved = [distance for kind, distance in zip(kinds, replay.distances, strict=True) if kind == "sampled_gaussian"]
    assert [distance > 0 for distance in moved] == [own in choice for choice in heard]
    assert any(moved)
    assert max(moved) <= 1


def test_a_release_shows_nothing_of_the_critics_loss() -> None:
    def series(seed: int | None) -> dict[str, bool]:
        seen: dict[str, bool] = {}

        def watch(stage: str, done: float, /, *points: Point) -> None:
            seen.update({point.series: point.releasable for point in points})

        dp.synthesize(small_table(), DPGAN(**QUICK), epsilon=1, delta=DELTA, seed=seed, progress=watch)
        return seen

    assert series(None) == {MOVEMENT: True}
    assert series(1) == {MOVEMENT: True, GAP: False}


def test_compiling_is_told_before_it_begins() -> None:
    heard: list[str] = []
    mechanism = DPGAN(**QUICK)
    dp.synthesize(
        small_table(), mechanism, epsilon=1, delta=DELTA, seed=1, progress=lambda stage, done, *_: heard.append(stage)
    )
    assert list(dict.fromkeys(heard)) == ["Planning the noise", "Compiling the networks", "Training"]


def test_more_rows_mean_less_noise_and_more_critics() -> None:
    budget = Budget.of(1, DELTA)
    found = [Schedule.of(n, budget, rows_per_critic=10, rounds=200, multiplier=1.07) for n in (100, 1_000, 10_000)]
    assert [each.parts for each in found] == [10, 100, 1_000]
    assert found[0].noise_std > found[1].noise_std > found[2].noise_std
    for each in found:
        exact = each.calibrated(budget)
        assert each.multiplier <= exact <= 1.4 * each.multiplier


def test_refusals_say_what_to_do() -> None:
    with pytest.raises(dp.ParameterError, match="delta"):
        dp.synthesize(small_table(), DPGAN(), epsilon=1)
    labels = [f"l{i}" for i in range(1_100)]
    wide = Schema.from_dict({"columns": [{"name": "c", "kind": "categorical", "categories": labels, "public": True}]})
    with pytest.raises(dp.ParameterError, match="private_pgm"):
        DPGAN.suggest(wide, 1_000, 1)
    assert "little but noise" in DPGAN.suggest(small_schema(), 100, 1).reason
    assert "little but noise" not in DPGAN.suggest(small_schema(), 100_000, 1).reason


def test_the_critics_gradients_are_those_of_automatic_differentiation() -> None:
    import jax

    from dpsynth_core.mechanisms.dp_gan import network

    critic = network.fresh(jax.random.key(3), (8, 16, 16, 1))
    rows = jax.random.normal(jax.random.key(4), (9, 8))
    reference = jax.vmap(jax.grad(lambda row: network.forward(critic, row)[0]))(rows)
    assert np.abs(np.asarray(network.slopes(critic, rows) - reference)).max() < 1e-5


@pytest.mark.slow
def test_with_many_rows_and_little_noise_shares_and_means_are_learned() -> None:
    rng = np.random.default_rng(2)
    n = 4_000
    c = rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1])
    x = np.where(rng.random(n) < 0.1, np.nan, np.clip(rng.normal(np.where(c == "a", 0.2, 0.6), 0.08), 0, 1))
    table = dp.PrivateTable(pd.DataFrame({"x": x, "c": c}), small_schema())
    synthetic = dp.synthesize(table, DPGAN(rounds=150), epsilon=50, delta=DELTA, seed=1).sample(4_000)
    shares = synthetic["c"].value_counts(normalize=True).reindex(["a", "b", "c"], fill_value=0).to_numpy()
    distance = 0.5 * np.abs(shares - [0.7, 0.2, 0.1]).sum()
    assert distance < 0.5 * (0.7 - 1 / 3), "no closer than half way from equal shares"
    assert abs(synthetic["x"].isna().mean() - 0.1) < 0.1
    means = [synthetic.loc[(synthetic["c"] == "a") == flag, "x"].mean() for flag in (True, False)]
    assert means[0] < means[1]
    assert abs(synthetic["x"].mean() - np.nanmean(x)) < 0.1
    assert math.isfinite(synthetic["x"].std())


def test_error_rates_can_be_simulated_through_it() -> None:
    from dpsynth_core.inference.experiments import error_rates

    rates = error_rates(DPGAN(**QUICK), epsilon=1, n=60, bins=10, reps=2, workers=1)
    assert rates.type_one.reps == rates.type_two.reps == 2
