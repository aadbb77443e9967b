from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations
from typing import Any, cast

import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats

from dpsynth_core.errors import BudgetError, ParameterError
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.privacy.noise import MAX_PREFETCHED, Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.prefetch import PrefetchedLaplace
from dpsynth_core.privacy.primitives import Laplace
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.privacy.samplers import COIN_BITS, reaches

PLENTY = Budget.of(10**9)
# The secure source cannot be seeded, so its tests run at a level at which a false alarm is not to be expected.
ALPHA = 1e-9

sources = pytest.mark.parametrize(
    "source", [SecureNoise, lambda budget: SeededNoise(budget, seed=1)], ids=["secure", "seeded"]
)
Source = Callable[[Budget], Noise]


def two_sided_geometric(scale: float, reach: int) -> np.ndarray[Any, Any]:
    """P(k) for |k| <= reach, by definition, with everything beyond at the two ends."""
    a = np.exp(-1 / scale)
    inside = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    inside[[0, -1]] = a**reach / (1 + a)
    return inside


def chi_square(draws: np.ndarray[Any, Any], scale: float) -> float:
    reach = max(1, int(5 * scale))
    observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    return float(stats.chisquare(observed, two_sided_geometric(scale, reach) * len(draws)).pvalue)


@sources
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 2), (2, 1), (2, 0.1)])
def test_laplace_follows_its_law(source: Source, sensitivity: int, epsilon: float) -> None:
    zeros = np.zeros(50_000, dtype=np.int64)
    draws = source(PLENTY).laplace(zeros, sensitivity=sensitivity, epsilon=epsilon, label="test")
    assert draws.dtype == np.int64
    assert chi_square(draws, sensitivity / epsilon) > ALPHA


@sources
def test_noise_that_was_prefetched_follows_the_same_law_and_is_used_once(source: Source) -> None:
    noise = source(PLENTY)
    noise.prefetch_laplace(20_000, sensitivity=2, epsilon=1)
    values = np.arange(30_000).reshape(2, 15_000)
    other = noise.laplace(values, sensitivity=2, epsilon=Fraction(1, 2), label="another scale") - values
    first, second = (noise.laplace(values, sensitivity=2, epsilon=1, label="test") - values for _ in range(2))
    assert first.shape == values.shape
    assert chi_square(other.ravel(), 4.0) > ALPHA
    for drawn in (first, second):
        assert chi_square(drawn.ravel(), 2.0) > ALPHA
    # Equal noise would agree everywhere, independent noise of this scale in about one place of eight.
    assert np.mean(first[0] == second[0]) < 0.2


def test_noise_is_added_to_every_value_even_if_nothing_was_drawn_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PrefetchedLaplace, "_fill", lambda _: None)
    noise = SecureNoise(PLENTY)
    noise.prefetch_laplace(20_000, sensitivity=2, epsilon=1)
    zeros = np.zeros(30_000, dtype=np.int64)
    assert chi_square(noise.laplace(zeros, sensitivity=2, epsilon=1, label="test"), 2.0) > ALPHA


@sources
def test_uniform_numbers_that_were_prefetched_follow_the_same_law_and_are_used_once(source: Source) -> None:
    noise, size = source(PLENTY), 250_000
    noise.prefetch_uniform(size, 2)
    drawn = [noise.uniform(size) for _ in range(5)]
    assert len(np.unique(np.concatenate(drawn))) > 5 * size - 10  # an equal pair is rare
    for numbers in drawn:
        assert numbers.shape == (size,)
        assert stats.kstest(numbers, "uniform").pvalue > ALPHA
    assert len(noise.uniform(7)) == 7


def test_what_is_prefetched_waits_within_bounds_and_changes_nothing_in_a_seeded_run() -> None:
    noise = SecureNoise(PLENTY)
    noise.prefetch_uniform(MAX_PREFETCHED + 1, 3)
    assert noise._uniforms is not None
    assert noise._uniforms.take() is None
    plain, told = (SeededNoise(PLENTY, seed=5) for _ in range(2))
    told.prefetch_uniform(300_000, 2)
    told.prefetch_laplace(30_000, sensitivity=2, epsilon=1)
    assert np.array_equal(plain.uniform(300_000), told.uniform(300_000))


def test_the_law_test_rejects_a_scale_ten_percent_off() -> None:
    draws = SeededNoise(PLENTY, seed=2).laplace(np.zeros(50_000, dtype=np.int64), sensitivity=2, epsilon=1, label="t")
    assert chi_square(draws, 2.0) > 1e-3
    assert chi_square(draws, 2.2) < 1e-6
    assert chi_square(draws, 1.8) < 1e-6


@sources
@pytest.mark.parametrize("scale", [0.3, 5.7, 400.0])
def test_coins_decide_as_noise_would(source: Source, scale: float) -> None:
    size = 40_000
    gaps = np.repeat([-2000, -3, -1, 0, 1, 2, 7, 10_000], size)
    generator = source(PLENTY)._generator  # type: ignore[attr-defined]
    heads = reaches(generator, gaps, scale).reshape(-1, size).sum(axis=1)
    a = np.exp(-1 / scale)
    for gap, found in zip(gaps[::size], heads, strict=True):
        bias = a**gap / (1 + a) if gap >= 1 else 1 - a ** (1 - gap) / (1 + a)
        assert stats.binomtest(int(found), size, min(1.0, bias)).pvalue > ALPHA


def test_the_free_generator_is_aes_in_counter_mode() -> None:
    # AES-128 under the key 00 01 ... 0f of the blocks 0 and 1, computed with another implementation.
    known = [0x825B8F87373BA1C6, 0x79D8C8A162814F6F, 0xA0877CDD63D37CE3, 0x829CE0603E0EFF9A]
    assert AESCounter(key=0x0F0E0D0C0B0A09080706050403020100).random_raw(4).tolist() == known
    assert isinstance(SecureNoise(PLENTY)._generator.bit_generator, AESCounter)


class Scripted:
    """A generator whose first bits are given, to reach what happens once in 2^45 coins."""

    def __init__(self, first: int, then: bytes) -> None:
        self.first, self.then = first, then

    def integers(self, low: int, high: int, size: int) -> np.ndarray[Any, Any]:
        assert low == 0 < high
        return np.full(size, self.first)

    def bytes(self, length: int) -> bytes:
        return self.then * length


@pytest.mark.parametrize("gap", [1, 5, -4, 0])
def test_a_coin_that_floats_cannot_settle_is_settled_by_longer_arithmetic(gap: int) -> None:
    scale = 5.7
    tail = gap if gap >= 1 else 1 - gap
    with localcontext(prec=80):
        rate = 1 / Decimal(scale)
        bias = (-tail * rate).exp() / (1 + (-rate).exp())
        bits = int(bias * 2**COIN_BITS)  # the number that starts with these bits may lie on either side of the bias
    low = reaches(cast("Any", Scripted(bits, b"\x00")), np.array([gap]), scale)[0]
    high = reaches(cast("Any", Scripted(bits, b"\xff")), np.array([gap]), scale)[0]
    assert low == (gap >= 1)
    assert high != low
    # One step to either side, the first bits say enough although floats do not.
    for step in (-1, 1):
        settled = {
            bool(reaches(cast("Any", Scripted(bits + step, b)), np.array([gap]), scale)[0]) for b in (b"\x00", b"\xff")
        }
        assert settled == {(step < 0) == (gap >= 1)}


@sources
def test_laplace_adds_to_the_values_and_keeps_their_shape(source: Source) -> None:
    values = np.arange(6).reshape(2, 3) * 10**12
    noisy = source(PLENTY).laplace(values, sensitivity=1, epsilon=50, label="test")
    assert noisy.shape == (2, 3)
    assert np.abs(noisy - values).max() < 10
    assert source(PLENTY).laplace(np.zeros(0, dtype=int), sensitivity=1, epsilon=1, label="none").shape == (0,)


def exponential_law(scores: np.ndarray[Any, Any], rate: float) -> np.ndarray[Any, Any]:
    weights = np.exp(rate * scores)
    return weights / weights.sum()


def permute_and_flip_law(scores: np.ndarray[Any, Any], rate: float) -> np.ndarray[Any, Any]:
    """By enumeration: visit the candidates in every order; accept the first whose coin shows heads."""
    heads = np.exp(rate * (scores - scores.max()))
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * heads[candidate] / len(orders)
            reached *= 1 - heads[candidate]
    return law


@sources
@pytest.mark.parametrize("primitive", ["exponential", "permute_and_flip"])
def test_selection_follows_the_law_it_is_named_for(source: Source, primitive: str) -> None:
    scores, sensitivity, epsilon, draws = np.array([0.0, 1.0, 1.5, 3.0]), 2, 1.6, 5_000
    law = {"exponential": exponential_law, "permute_and_flip": permute_and_flip_law}[primitive]
    expected = law(scores, epsilon / (2 * sensitivity)) * draws
    noise = source(PLENTY)
    select = getattr(noise, primitive)
    chosen = [select(scores, sensitivity=sensitivity, epsilon=epsilon, label="test") for _ in range(draws)]
    assert stats.chisquare(np.bincount(chosen, minlength=4), expected).pvalue > ALPHA


def test_the_two_selections_are_not_the_same() -> None:
    scores = np.array([0.0, 1.0, 1.5, 3.0])
    assert np.abs(exponential_law(scores, 0.4) - permute_and_flip_law(scores, 0.4)).max() > 0.02


@sources
def test_a_walk_is_charged_first_and_gets_its_scale_and_randomness(source: Source) -> None:
    noise = source(Budget.of(1))
    told: list[float] = []

    def walk(generator: np.random.Generator, scale: float) -> float:
        told.append(scale)
        return float(generator.random())

    scores = np.array([-0.1, -0.2])
    ended = noise.metropolis(walk, scores, sensitivity=Fraction(1, 200), epsilon=Fraction(1, 2), label="walk")
    assert 0 <= ended < 1
    assert told == [pytest.approx(2 / 200 / 0.5)]
    assert [(charge.label, charge.budget.epsilon) for charge in noise.charges] == [("walk", Fraction(1, 2))]
    with pytest.raises(BudgetError):
        noise.metropolis(walk, scores, sensitivity=1, epsilon=1, label="too much")
    assert len(told) == 1


def test_a_replayed_walk_ends_where_it_ended_and_its_scores_are_compared() -> None:
    recorder = Recorder(SeededNoise(Budget.of(1), seed=1))

    def run(noise: Noise, score: float) -> Any:
        return noise.metropolis(
            lambda generator, _: generator.random(),
            np.array([score]),
            sensitivity=Fraction(1, 10),
            epsilon=1,
            label="w",
        )

    ended = run(recorder, 0.5)
    replay = Replay(recorder)
    assert run(replay, 0.55) == ended
    assert replay.excess == pytest.approx(0.5)


@sources
@pytest.mark.parametrize("below", [7, 2**40, 2**63 - 1, 2**63, 2**80])
def test_uniform_integers_of_any_size(source: Source, below: int) -> None:
    draws = source(PLENTY).integers(below, 2_000)
    assert all(0 <= draw < below for draw in draws.tolist())
    eighths = np.bincount([draw * 7 // below for draw in draws.tolist()], minlength=7)
    assert stats.chisquare(eighths).pvalue > ALPHA


@sources
@pytest.mark.parametrize(("below", "size"), [(5, 5), (10**6, 1_000), (2**62, 1_000), (2**90, 100), (3, 0)])
def test_distinct_integers(source: Source, below: int, size: int) -> None:
    draws = source(PLENTY).distinct(below, size).tolist()
    assert len(set(draws)) == size
    assert all(0 <= draw < below for draw in draws)


@sources
def test_uniform_numbers_follow_their_law_and_cost_nothing(source: Source) -> None:
    noise = source(PLENTY)
    assert stats.kstest(noise.uniform(20_000), "uniform").pvalue > ALPHA
    assert noise.charges == ()


def test_many_uniform_numbers_come_from_generators_that_have_nothing_in_common() -> None:
    """Several cores draw at once; none of them may repeat what another has drawn."""
    drawn = SecureNoise(Budget.of(1)).uniform(1_000_000)
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    # Among a million numbers of 53 bits, two are equal by chance once in 18,000 runs.
    assert len(np.unique(drawn)) >= len(drawn) - 1
    first, second = np.array_split(drawn, 2)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(len(first))


@sources
def test_charges_are_added_up_exactly_and_never_exceed_the_budget(source: Source) -> None:
    noise = source(Budget.of(1))
    for _ in range(10):
        noise.laplace(np.zeros(1, dtype=int), sensitivity=2, epsilon=0.1, label="tenth")
    assert noise.spent == Budget.of(1)
    with pytest.raises(BudgetError, match=r"'one more'.*Nothing was drawn"):
        noise.laplace(np.zeros(1, dtype=int), sensitivity=2, epsilon="1e-9", label="one more")
    assert noise.spent == Budget.of(1)
    assert {charge.label for charge in noise.charges} == {"tenth"}


def test_delta_is_charged_too() -> None:
    noise = SecureNoise(Budget.of(1, 1e-6))
    with pytest.raises(BudgetError, match="delta"):
        noise.laplace(np.zeros(1, dtype=int), sensitivity=2, epsilon=1, delta=1e-5, label="labels")
    noise.laplace(np.zeros(1, dtype=int), sensitivity=2, epsilon=1, delta=1e-6, label="labels")
    assert noise.spent == Budget.of(1, 1e-6)


def test_the_scale_is_never_rounded_below_what_the_charge_needs() -> None:
    recorder = Recorder(SeededNoise(PLENTY, seed=0))
    for epsilon in (Fraction(1, 3), Fraction(7, 10), Fraction(10**9, 3)):
        recorder.laplace(np.zeros(1, dtype=int), sensitivity=2, epsilon=epsilon, label="t")
        call = recorder.draws[-1].call
        assert isinstance(call, Laplace)
        assert Fraction(call.scale) >= 2 / epsilon


def test_impossible_draws_are_refused_without_showing_values() -> None:
    noise = SecureNoise(PLENTY)
    for attempt in (
        lambda: noise.laplace(np.array([0.123456]), sensitivity=2, epsilon=1, label="t"),
        lambda: noise.laplace(np.zeros(1, dtype=int), sensitivity=0, epsilon=1, label="t"),
        lambda: noise.laplace(np.zeros(1, dtype=int), sensitivity=1, epsilon=0, label="t"),
        lambda: noise.exponential(np.array([]), sensitivity=1, epsilon=1, label="t"),
        lambda: noise.exponential(np.array([0.123456, np.nan]), sensitivity=1, epsilon=1, label="t"),
        lambda: noise.integers(0, 1),
        lambda: noise.distinct(2, 3),
    ):
        with pytest.raises(ParameterError) as caught:
            attempt()
        assert "0.123456" not in str(caught.value)
    assert noise.charges == ()


def test_seeds_repeat_and_security_does_not() -> None:
    def run(noise: Noise) -> list[int]:
        drawn = noise.laplace(np.zeros(20, dtype=int), sensitivity=2, epsilon=0.1, label="t")
        return [*drawn.tolist(), *noise.integers(10**9, 5).tolist()]

    assert run(SeededNoise(PLENTY, seed=3)) == run(SeededNoise(PLENTY, seed=3))
    assert run(SeededNoise(PLENTY, seed=3)) != run(SeededNoise(PLENTY, seed=4))
    np.random.seed(0)  # noqa: NPY002  seeding the global stream must have no effect
    first = run(SecureNoise(PLENTY))
    np.random.seed(0)  # noqa: NPY002
    assert first != run(SecureNoise(PLENTY))
    with pytest.raises(TypeError):
        SecureNoise(PLENTY, seed=1)  # type: ignore[call-arg]


def test_a_seeded_run_is_never_proven() -> None:
    proven = Guarantee(status="proven", budget=Budget.of(1))
    assert SecureNoise(PLENTY).judge(proven) == proven
    seeded = SeededNoise(PLENTY, seed=1)
    assert seeded.judge(proven).status == "none"
    assert Recorder(seeded).judge(proven).status == "none"
    assert Recorder(SecureNoise(PLENTY)).judge(proven) == proven


def histogram_run(noise: Noise, rows: list[int]) -> np.ndarray[Any, Any]:
    counts = np.bincount(rows, minlength=4)
    noisy = noise.laplace(counts, sensitivity=2, epsilon=0.5, label="counts")
    noise.exponential(counts.astype(float), sensitivity=1, epsilon=0.5, label="mode")
    return noisy + noise.integers(3, 4)


def test_a_replay_measures_how_far_a_neighbour_moves_each_draw() -> None:
    recorder = Recorder(SeededNoise(Budget.of(1), seed=5))
    first = histogram_run(recorder, [0, 1, 1, 3])
    replay = Replay(recorder)
    second = histogram_run(replay, [0, 1, 2, 3])
    assert (first == second).all()
    assert replay.distances == [2.0, 1.0, 0.0]
    assert replay.excess == 1.0
    assert replay.finished
    assert replay.spent == Budget.of(1)


def test_a_replay_shows_an_understated_sensitivity() -> None:
    def halved(noise: Noise, rows: list[int]) -> None:
        noise.laplace(np.bincount(rows, minlength=4), sensitivity=1, epsilon=1, label="counts")

    recorder = Recorder(SeededNoise(Budget.of(1), seed=5))
    halved(recorder, [0, 0])
    replay = Replay(recorder)
    halved(replay, [0, 1])
    assert replay.excess == 2.0


def test_a_replay_shows_control_flow_that_looks_at_private_values() -> None:
    def peeks(noise: Noise, rows: list[int]) -> None:
        occupied = np.unique(rows)  # empty cells skipped: the number of draws tells who is there
        noise.laplace(occupied * 0 + 1, sensitivity=2, epsilon=1, label="counts")

    recorder = Recorder(SeededNoise(Budget.of(1), seed=5))
    peeks(recorder, [0, 0])
    with pytest.raises(ReplayMismatchError):
        peeks(Replay(recorder), [0, 1])


def test_a_replay_notices_missing_and_additional_draws() -> None:
    recorder = Recorder(SeededNoise(Budget.of(1), seed=5))
    recorder.uniform(3)
    replay = Replay(recorder)
    assert not replay.finished
    replay.uniform(3)
    with pytest.raises(ReplayMismatchError):
        replay.uniform(3)
