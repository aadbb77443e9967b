"""The best of several runs, chosen privately: what it costs, what it finds, and what it keeps secret."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, sequential
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.progress import Progress, RunProgress, no_progress
from dpsynth_core.runs.configuration import RunConfig, SampledRows, execute
from dpsynth_core.runs.selection import COST, PairScore, PrivateSelection, best_run, noise_source, select_release
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from tests.tables.schemas import mixed_schema, mixed_table


@dataclass(frozen=True, kw_only=True)
class Constant(Mechanism):
    """Makes a table of one row, over and over, after one paid draw that it ignores."""

    key: ClassVar[str] = "constant"
    title: ClassVar[str] = "Constant"
    summary: ClassVar[str] = "For tests."
    good_for: ClassVar[str] = "Tests."
    paper: ClassVar[str] = ""

    value: str = "a"

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:
        return cls()

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        stage = Stage(label="nothing", epsilon=budget.epsilon, scale=None)
        return Plan(stages=(stage,), cuts=(2,), cells=2, draws=1, values=n)

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> SampledRows:
        progress("Fitting", 0.5)
        noise.laplace(np.zeros(1, dtype=np.int64), sensitivity=1, epsilon=noise.budget.epsilon, label="nothing")
        return SampledRows(table=pd.DataFrame({name: [self.value] * table.n for name in table.schema.names}))


def labels(*names: str) -> Schema:
    return Schema.from_dict(
        {"columns": [{"name": name, "kind": "categorical", "categories": ["a", "b"], "public": True} for name in names]}
    )


def table_of(rows: list[tuple[str, ...]]) -> PrivateTable:
    names = [f"c{i}" for i in range(len(rows[0]))]
    return PrivateTable(pd.DataFrame(rows, columns=names), labels(*names))


MOSTLY_A = table_of([("a", "a")] * 90 + [("b", "b")] * 10)


# ------------------------------------------------------------------------------------------------------------ the price


def test_every_run_gets_a_third_and_the_release_costs_the_whole() -> None:
    selection = PrivateSelection.of([Constant()], 4)
    fit, score = selection.shares(Budget.of("0.9"))
    assert fit.epsilon + score.epsilon == Fraction("0.9") / COST
    release = select_release(MOSTLY_A, [Constant(), Constant(value="b")], epsilon="0.9", max_runs=4)
    assert release.guarantee.budget == Budget.of("0.9")
    assert release.guarantee.status == "proven"
    assert sequential(charge.budget for charge in release.charges) == Budget.of("0.9")
    assert any("best of up to 4 runs" in caveat for caveat in release.guarantee.caveats)
    assert release.budget == fit


def test_a_person_with_several_rows_is_paid_for() -> None:
    schema = replace(MOSTLY_A.schema, rows_per_person=3)
    private = PrivateTable(MOSTLY_A.rows(), schema)
    release = select_release(private, [Constant()], epsilon=3, max_runs=2)
    assert sequential(charge.budget for charge in release.charges) == Budget.of(1)
    assert release.guarantee.rows_per_person == 3


def test_the_claim_is_as_weak_as_the_weakest_candidate() -> None:
    class Limit(Constant):
        status = "asymptotic"

    assert select_release(MOSTLY_A, [Constant(), Limit()], epsilon=1, max_runs=2).guarantee.status == "asymptotic"
    assert select_release(MOSTLY_A, [Constant()], epsilon=1, max_runs=2, seed=1).guarantee.status == "none"


@pytest.mark.parametrize("key", ["dp_gan", "bayes"])
def test_candidates_must_be_pure(key: str) -> None:
    with pytest.raises(dp.ParameterError, match="pure differential privacy"):
        select_release(MOSTLY_A, [MECHANISMS[key]()], epsilon=1)
    with pytest.raises(dp.ParameterError, match="pure epsilon"):
        PrivateSelection.of([Constant()]).shares(Budget.of(1, "1e-6"))


def test_what_does_not_fit_is_refused_before_anything_is_drawn() -> None:
    class Never(Constant):
        def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
            raise dp.ParameterError("cells", 10, allowed="at most 2")

    charges: list[Any] = []
    with pytest.raises(dp.ParameterError, match="cells"):
        select_release(MOSTLY_A, [Constant(), Never()], epsilon=1, watch=charges.append)
    assert not charges


# ----------------------------------------------------------------------------------------------------------- the choice


def test_a_better_configuration_wins_more_often() -> None:
    candidates = [Constant(value="b"), Constant(value="a")]
    chosen = Counter(
        str(select_release(MOSTLY_A, candidates, epsilon=6, max_runs=10, seed=seed).mechanism) for seed in range(300)
    )
    wins = chosen[str(candidates[1])]
    # Missed with probability f(1/2) < 1/10, and 80 rows apart at a noise of 2.5 rows: at least 0.9, four errors off.
    assert wins > 300 * 0.9 - 4 * np.sqrt(300 * 0.9 * 0.1)


def test_with_equal_candidates_neither_is_preferred() -> None:
    even = table_of([("a", "a"), ("b", "b")] * 50)
    candidates = [Constant(value="b"), Constant(value="a")]
    made = [select_release(even, candidates, epsilon=3, max_runs=4, seed=seed) for seed in range(400)]
    wins = sum(release.mechanism == candidates[0] for release in made)
    assert abs(wins - 200) < 5 * 10


@pytest.mark.parametrize("counted", [1, 2, 3])
def test_the_first_of_the_best_among_the_runs_that_count_is_released(counted: int) -> None:
    scores = [5, 9, 9]

    class Fixed(SeededNoise):
        """Scores as listed, and so many runs that count."""

        def integers(self, below: int, size: int) -> Any:
            return np.array([counted - 1]) if below == 3 else np.zeros(size, dtype=np.int64)

        def laplace(self, values: Any, **more: Any) -> Any:
            noisy = super().laplace(values, **more)
            return np.array([scores.pop(0)]) if more["label"] == "score of the run" else noisy

    made: list[Noise] = []

    def source(budget: Budget) -> Noise:
        made.append(Fixed(budget, seed=len(made)))
        return made[-1]

    best = best_run(MOSTLY_A, PrivateSelection.of([Constant()], 3), Budget.of(1), source)
    assert best.noise is made[1 if counted == 1 else 3]  # after the coins, two sources for each run
    assert not scores, "all runs are made, whichever count"


def test_the_number_of_runs_that_count_is_uniform_and_progress_does_not_show_it() -> None:
    stages: list[list[str]] = []
    for seed in range(30):
        shown: list[str] = []

        def note(stage: str, _: float, /, *__: Any, shown: list[str] = shown) -> None:
            shown.append(stage)

        select_release(MOSTLY_A, [Constant()], epsilon=1, max_runs=3, seed=seed, progress=note)
        stages.append(shown)
    assert all(shown == [f"Fitting (run {i} of 3)" for i in (1, 2, 3)] for shown in stages)
    below: list[int] = []

    class Watched(SeededNoise):
        def integers(self, below_: int, size: int) -> Any:
            below.append(below_)
            return super().integers(below_, size)

    best_run(MOSTLY_A, PrivateSelection.of([Constant()], 7), Budget.of(1), lambda budget: Watched(budget, seed=1))
    assert below[0] == 7


def test_seeded_runs_repeat_and_release_runs_do_not() -> None:
    candidates = [PerturbedHistogram(), MECHANISMS["kd_tree"]()]
    private = PrivateTable(mixed_table(), mixed_schema())
    first, second = (select_release(private, candidates, epsilon=1, max_runs=3, seed=4).sample(50) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert noise_source(None)(Budget.of(1)).secure


# ------------------------------------------------------------------------------------------------------------ the score


def overlap(original: list[tuple[str, ...]], synthetic: list[tuple[str, ...]]) -> int:
    return PairScore(table_of(original)).overlap(table_of(synthetic))


@pytest.mark.parametrize(("columns", "rows"), [(1, 3), (2, 3), (3, 2)])
def test_no_replaced_row_moves_the_score_further_than_its_sensitivity(columns: int, rows: int) -> None:
    every = list(product("ab", repeat=columns))
    sensitivity = PairScore(table_of([every[0]])).sensitivity
    largest = 0
    for synthetic in list(product(every, repeat=rows))[::3]:
        for rest in product(every, repeat=rows - 1):
            scores = [overlap([row, *rest], list(synthetic)) for row in every]
            largest = max(largest, max(scores) - min(scores))
    assert largest == sensitivity  # never more, and it is reached


rows_of = st.lists(st.tuples(*[st.sampled_from("ab")] * 3), min_size=5, max_size=5)


@given(rows_of, rows_of, st.tuples(*[st.sampled_from("ab")] * 3), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_the_sensitivity_of_the_score_holds_for_any_tables(
    original: list[tuple[str, ...]], synthetic: list[tuple[str, ...]], row: tuple[str, ...], at: int
) -> None:
    other = [*original[:at], row, *original[at + 1 :]]
    assert abs(overlap(original, synthetic) - overlap(other, synthetic)) <= 3


def test_the_score_is_the_number_of_rows_in_common() -> None:
    original = [("a", "a")] * 3 + [("b", "b")]
    assert overlap(original, original) == 4
    assert overlap(original, [("a", "a")] * 2 + [("b", "a")] * 2) == 2  # total variation one half
    assert overlap([("a", "a", "a")] * 4, [("a", "a", "b")] * 4) == 4  # one pair of three agrees


# ------------------------------------------------------------------------------------------------ as a run, with ledger


def order(**more: Any) -> RunConfig:
    candidates = (PerturbedHistogram(), MECHANISMS["kd_tree"]())
    return RunConfig(
        mechanism=candidates[0], epsilon="1", selection=PrivateSelection.of(candidates, more.pop("max_runs", 3)), **more
    )


def test_a_configuration_with_a_selection_survives_json() -> None:
    assert RunConfig.from_json(order().to_json()) == order()
    assert "selection" not in RunConfig(mechanism=PerturbedHistogram(), epsilon="1").to_json()
    for wrong in ('{"candidates": 3}', "[]", '"x"', '{"max_runs": 3}'):
        text = order().to_json()
        with pytest.raises(dp.ParameterError, match="selection"):
            RunConfig.from_json(text[: text.index('"selection"')] + f'"selection": {wrong}}}')
    with pytest.raises(dp.ParameterError, match="copies"):
        order(copies=2)


def test_a_run_says_what_was_chosen_and_what_it_was_given() -> None:
    result = execute(mixed_table(), mixed_schema(), order())
    assert result.config.mechanism in order().selection.candidates  # type: ignore[union-attr]
    assert result.config.total == result.guarantee.budget == Budget.of(1)
    assert result.config.fitted == Budget.of(Fraction(4, 15))
    assert result.release(10).budget == result.config.fitted


def test_the_ledger_is_charged_the_total_once_and_before_the_result(tmp_path: Any) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", key=b"k" * 32)
    name = "f" * 64
    ledger.open_account(name, total=Budget.of(2), label="table", rows_per_person=1)
    config = order()
    charge = ledger.reserve(name, config.total, purpose="Pick the best")
    seen: list[Fraction] = []

    class Watching(RunProgress):
        def drawn(self) -> None:
            account = ledger.account(name)
            assert account is not None
            seen.append(account.spent.epsilon)

    execute(mixed_table(), mixed_schema(), config, progress=Watching())
    charge.commit()
    account = ledger.account(name)
    assert account is not None
    assert set(seen) == {Fraction(1)}, "reserved before the first draw, and not again for any run"
    assert (account.spent.epsilon, account.spent.delta) == (1, 0)
    assert len(account.entries) == 1
