"""Private-PGM: what is spent and on what, that neighbours are hidden, and that structure is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.errors import BudgetError
from dpsynth_core.mechanisms.private_pgm.allocation import COUNT_COLUMNS, COUNT_SETS, FIND_BINS, allocate
from dpsynth_core.mechanisms.private_pgm.binned_columns import count_slots, find_bins, measure_column
from dpsynth_core.mechanisms.private_pgm.graphical_model import GraphicalModel, marginal
from dpsynth_core.mechanisms.private_pgm.measuring import GaussianMeasurer, LaplaceMeasurer, measurer_for
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.mechanisms.private_pgm.rounds import GroupedRows, Rounds, water_filling
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay
from tests.tables.schemas import mixed_schema, mixed_table

STRATEGIES: dict[str, PrivatePGM] = {
    "as suggested": PrivatePGM(),
    "rounds": PrivatePGM(rounds=4),
    "target": PrivatePGM(rounds=4, target="sex"),
    "every pair": PrivatePGM(rounds=4, last_counts="every"),
    "given": PrivatePGM(strategy="given", bins=3, marginals="age, income; age, sex; pain; income, sex"),
}
strategies = pytest.mark.parametrize("mechanism", STRATEGIES.values(), ids=STRATEGIES.keys())
budgets = pytest.mark.parametrize("delta", ["0", "1e-6"], ids=["pure", "approximate"])


def dependent(rows: int = 4_000, seed: int = 0) -> pd.DataFrame:
    """A chain a - b - c, and d and e that go with nothing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 4, rows))
    c = np.where(rng.random(rows) < 0.8, b, rng.integers(0, 4, rows))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.integers(0, 4, rows), "e": rng.integers(0, 2, rows)})


CHAIN = dp.Schema.from_dict(
    {
        "columns": [
            *({"name": name, "kind": "integer", "lower": 0, "upper": 3, "public": True} for name in "abcd"),
            {"name": "e", "kind": "integer", "lower": 0, "upper": 1, "public": True},
        ]
    }
)


@strategies
@budgets
def test_what_is_spent_is_what_was_granted_to_the_last_fraction(mechanism: PrivatePGM, delta: str) -> None:
    table = dp.PrivateTable(mixed_table(), mixed_schema())
    release = dp.synthesize(table, mechanism, epsilon="2/7", delta=delta, seed=1)
    spent = [charge.budget for charge in release.charges]
    assert sum((each.epsilon for each in spent), Fraction(0)) == Fraction(2, 7)
    assert sum((each.delta for each in spent), Fraction(0)) == Budget.of(1, delta).delta
    assert release.guarantee.kind == ("pure" if delta == "0" else "approximate")
    planned = mechanism.plan(table.schema, table.n, Budget.of("2/7", delta)).stages
    by_label: dict[str, Fraction] = {}
    for charge in release.charges:
        by_label[charge.label] = by_label.get(charge.label, Fraction(0)) + charge.budget.epsilon
    assert list(by_label.items()) == [(stage.label, stage.epsilon) for stage in planned]


@strategies
@budgets
def test_neighbours_enter_every_draw_within_the_declared_sensitivity(mechanism: PrivatePGM, delta: str) -> None:
    rows = mixed_table(120)
    recorder = Recorder(SeededNoise(Budget.of(1, delta), seed=0))
    mechanism.fit(dp.PrivateTable(rows, mixed_schema()), recorder)
    for seed in range(4):
        other = rows.copy()
        other.loc[int(np.random.default_rng(seed).integers(len(rows)))] = mixed_table(1, seed + 50).iloc[0]
        replay = Replay(recorder)
        mechanism.fit(dp.PrivateTable(other, mixed_schema()), replay)
        assert replay.finished
        assert replay.excess <= 1


def test_named_marginals_get_laplace_noise_of_two_over_their_share() -> None:
    charges = dp.synthesize(
        dp.PrivateTable(mixed_table(), mixed_schema()), STRATEGIES["given"], epsilon=1, seed=1
    ).charges
    assert [charge.primitive for charge in charges] == ["laplace"] * 4
    assert {charge.budget.epsilon for charge in charges} == {Fraction(1, 4)}
    assert {charge.sensitivity for charge in charges} == {2}


def test_of_two_counts_with_a_known_sum_only_one_gets_noise() -> None:
    table = dp.PrivateTable(dependent(), CHAIN.select(["e"]))
    (charge,) = dp.synthesize(table, PrivatePGM(), epsilon=1, seed=1).charges
    assert charge.sensitivity == 1


def selected(table: dp.PrivateTable, budget: Budget, seed: int, target: int | None = None, **given: Any) -> list[Any]:
    """What the rounds of a run select."""
    allocation = allocate(table.schema, table.n, budget, **given)
    measurer = measurer_for(SeededNoise(budget, seed), budget)
    slots = count_slots(table, allocation.bins)
    found = [find_bins(column, slots[column.name], table.n, measurer, allocation) for column in table.schema]
    columns = [measure_column(each, slots[each.bins.axis.column.name], table.n, measurer, allocation) for each in found]
    measured = [column.measurement(variable) for variable, column in enumerate(columns)]
    rounds = Rounds(GroupedRows.of(table, columns), measured, measurer, allocation, budget=budget, target=target)
    rounds.run(lambda _: None)
    return [each.clique for each in rounds.selected]


@budgets
def test_the_pairs_that_belong_together_are_found(delta: str) -> None:
    table = dp.PrivateTable(dependent(), CHAIN)
    for seed in range(5):
        assert {(0, 1), (1, 2)} <= set(selected(table, Budget.of(1, delta), seed, rounds=4))


def test_what_the_model_explains_already_is_not_selected() -> None:
    """The ends of a chain go together, but only through its middle."""
    table = dp.PrivateTable(dependent(20_000), CHAIN)
    for seed in range(3):
        assert selected(table, Budget.of(20, "1e-6"), seed, rounds=2) in ([(0, 1), (1, 2)], [(1, 2), (0, 1)])


def test_relations_with_the_column_to_predict_come_first() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, (2, 8_000))
    c = np.where(rng.random(8_000) < 0.75, a, rng.integers(0, 2, 8_000))
    d = np.where(rng.random(8_000) < 0.6, b, rng.integers(0, 2, 8_000))
    facts = [{"name": name, "kind": "integer", "lower": 0, "upper": 1, "public": True} for name in "abcd"]
    table = dp.PrivateTable(pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), dp.Schema.from_dict({"columns": facts}))
    budget = Budget.of(5, "1e-6")
    assert selected(table, budget, 0, rounds=2)[0] == (0, 2)
    assert selected(table, budget, 0, target=3, rounds=2)[0] == (1, 3)


def two_way(rows: pd.DataFrame, made: pd.DataFrame, schema: dp.Schema) -> float:
    original, synthetic = dp.PrivateTable(rows, schema), dp.PrivateTable(made, schema)
    gaps = [
        original.counts(pair).dense() / original.n - synthetic.counts(pair).dense() / synthetic.n
        for pair in combinations(schema.names, 2)
    ]
    return float(np.mean([np.abs(gap).sum() / 2 for gap in gaps]))


@strategies
def test_more_epsilon_gives_a_better_table(mechanism: PrivatePGM) -> None:
    rows = dependent()
    table = dp.PrivateTable(rows, CHAIN)
    kind = replace(mechanism, target="c") if mechanism.target else mechanism
    if mechanism.strategy == "given":
        kind = PrivatePGM(strategy="given", marginals="a, b; b, c; d; e")
    errors = [
        np.mean([two_way(rows, dp.synthesize(table, kind, epsilon=e, seed=s).sample(), CHAIN) for s in range(3)])
        for e in (0.01, 0.3, 20)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_gaussian_noise_beats_laplace_noise_on_many_columns() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.choice(6, 3_000, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05]) for i in range(14)})
    facts = [{"name": name, "kind": "integer", "lower": 0, "upper": 5, "public": True} for name in frame]
    schema = dp.Schema.from_dict({"columns": facts})
    table = dp.PrivateTable(frame, schema)

    def error(delta: str) -> float:
        made = [dp.synthesize(table, PrivatePGM(), epsilon=0.5, delta=delta, seed=s).sample() for s in (0, 1)]
        return float(np.mean([two_way(frame, each, schema) for each in made]))

    assert error("1e-6") < error("0")


def bin_probabilities(model: GraphicalModel, schema: dp.Schema, names: Sequence[str]) -> np.ndarray[Any, Any]:
    """The model's own probabilities of the bins of some columns."""
    return marginal(model.tables, [model.variables[schema.names.index(name)] for name in names])


def wide() -> tuple[pd.DataFrame, dp.Schema]:
    """Twenty-two mixed columns, one with 240 categories, one whose rows crowd into a hundredth of its range."""
    rng = np.random.default_rng(2)
    rows = 1_500
    codes = rng.geometric(0.03, rows).clip(max=240)
    frame = pd.DataFrame({"code": [f"k{c}" for c in codes], "income": rng.lognormal(3, 0.5, rows)})
    facts: list[dict[str, Any]] = [
        {"name": "code", "kind": "categorical", "categories": [f"k{c}" for c in range(1, 241)], "public": True},
        {"name": "income", "kind": "continuous", "lower": 0, "upper": 10_000, "public": True, "nullable": True},
    ]
    for i in range(20):
        frame[f"c{i}"] = np.where(rng.random(rows) < 0.7, codes % (2 + i % 5), rng.integers(0, 2 + i % 5, rows))
        facts.append({"name": f"c{i}", "kind": "integer", "lower": 0, "upper": 1 + i % 5, "public": True})
    return frame, dp.Schema.from_dict({"columns": facts})


@budgets
def test_many_columns_and_a_column_of_many_categories(delta: str) -> None:
    frame, schema = wide()
    release = dp.synthesize(dp.PrivateTable(frame, schema), PrivatePGM(), epsilon=3, delta=delta, seed=1)
    made = release.sample()
    assert made.shape == frame.shape
    # Almost all incomes lie below 100 of 10,000: found by looking closer where rows are.
    assert made["income"].median() < 100
    model: Any = release.model
    for pair in [("code", "c0"), ("c0", "c1"), ("income", "c3"), ("c4", "c9")]:
        expected = bin_probabilities(model, schema, pair)
        index = [schema.names.index(name) for name in pair]
        first, second = (model.bins[i].codes(dp.PrivateTable(made, schema)) for i in index)
        seen = np.bincount(first * expected.shape[1] + second, minlength=expected.size).reshape(expected.shape) / 1_500
        # Rows that are drawn independently from the model would be this far from it, on average.
        random = np.sqrt(expected * (1 - expected) / 1_500).sum() * np.sqrt(2 / np.pi) / 2
        assert np.abs(seen - expected).sum() / 2 < 1.3 * random


def test_shares_that_were_planned_are_public_and_add_up() -> None:
    for budget in (Budget.of("1/3"), Budget.of("1/3", "1e-6")):
        for rounds in (None, 3):
            allocation = allocate(mixed_schema(), 1_000, budget, rounds=rounds)
            assert sum(allocation.stages.values()) == 1
            assert {FIND_BINS, COUNT_COLUMNS} <= allocation.stages.keys()
            assert sum(sum(shares) for shares in allocation.looks.values()) == allocation.stages[FIND_BINS]
            assert sum(allocation.columns.values()) == allocation.stages[COUNT_COLUMNS]
            assert (COUNT_SETS in allocation.stages) == bool(budget.delta or rounds)


def test_with_a_delta_too_pairs_that_would_drown_are_left_to_single_columns() -> None:
    budget = Budget.of("1/3", "1e-6")
    allocations = [allocate(mixed_schema(), n, budget) for n in (100, 1_000, 10**5)]
    assert [bool(allocation.first) for allocation in allocations] == [False, True, True]
    rounds = [allocation.rounds for allocation in allocations]
    assert rounds == sorted(rounds), "the clearer pairs are, the more they get"


@pytest.mark.parametrize("columns", [3, 8, 24])
def test_pairs_are_counted_where_noise_leaves_something_of_them_and_else_paid_to_single_columns(columns: int) -> None:
    facts = [{"name": f"c{i}", "kind": "integer", "lower": 0, "upper": 3, "public": True} for i in range(columns)]
    schema, budget = dp.Schema.from_dict({"columns": facts}), Budget.of(1)
    allocations = [allocate(schema, n, budget) for n in (10, 100, 10**6)]
    assert [bool(allocation.first) for allocation in allocations] == [False, False, True]
    for allocation in allocations:
        assert sum(allocation.stages.values()) == 1
        assert (set(allocation.stages) == {COUNT_COLUMNS}) == (allocation.first == 0)
    # The rule turns once as rows grow, and rounds that were asked for are made whatever it says.
    pays = [bool(allocate(schema, 2**k, budget).first) for k in range(4, 24)]
    assert pays == sorted(pays)
    assert allocate(schema, 10, budget, rounds=2).first == 2


def test_where_no_pairs_are_counted_the_suggestion_says_so_and_columns_are_independent() -> None:
    rows = dependent(200)
    assert "independently" in (PrivatePGM.suggest(CHAIN, 200, 1).reason or "")
    assert "independently" not in (PrivatePGM.suggest(CHAIN, 10**6, 1).reason or "")
    model: Any = dp.synthesize(dp.PrivateTable(rows, CHAIN), PrivatePGM(), epsilon=1, seed=0).model
    joint = bin_probabilities(model, CHAIN, ("a", "b"))
    np.testing.assert_allclose(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0)), atol=1e-9)


def test_shares_beyond_the_whole_are_refused() -> None:
    for kind, budget in ((LaplaceMeasurer, Budget.of(1)), (GaussianMeasurer, Budget.of(1, "1e-6"))):
        measurer = kind(SeededNoise(budget, 0))
        measurer.histogram(np.array([1, 2, 3]), Fraction(2, 3), "most of it")
        with pytest.raises(BudgetError, match="Nothing was drawn"):
            measurer.histogram(np.array([1, 2, 3]), Fraction(1, 2), "more")
        with pytest.raises(BudgetError, match="Nothing was drawn"):
            measurer.select(np.array([1, 2, 3]), Fraction(1, 2), "more", sensitivity=2)


def test_a_column_to_predict_that_is_not_there_is_refused_before_anything_is_drawn() -> None:
    noise = SeededNoise(Budget.of(1), 0)
    with pytest.raises(dp.ParameterError, match="target"):
        PrivatePGM(target="nobody").fit(dp.PrivateTable(dependent(50), CHAIN), noise)
    assert noise.charges == ()


def test_gaussian_noise_without_delta_is_refused_by_name() -> None:
    table = dp.PrivateTable(dependent(50), CHAIN)
    with pytest.raises(dp.ParameterError, match="delta"):
        dp.synthesize(table, PrivatePGM(kind_of_noise="gaussian"), epsilon=1)


@pytest.mark.parametrize(
    ("marginals", "bins", "words"),
    [
        ("income, height, age", 200, ["8,040,000 cells", "'rounds'"]),
        ("nobody", None, ["'nobody'"]),
    ],
)
def test_marginals_that_cannot_be_counted_are_refused(marginals: str, bins: int | None, words: Sequence[str]) -> None:
    facts = mixed_schema().to_dict()
    facts["columns"][0]["upper"] = 1_000
    table = dp.PrivateTable(mixed_table(20), dp.Schema.from_dict(facts))
    noise = SeededNoise(Budget.of(1), 0)
    with pytest.raises(dp.ParameterError) as caught:
        PrivatePGM(strategy="given", marginals=marginals, bins=bins).fit(table, noise)
    assert all(word in str(caught.value) for word in words)
    assert noise.charges == ()


def test_a_suggestion_follows_the_budget() -> None:
    pure, granted = PrivatePGM.suggest(CHAIN, 400, 1).reason, PrivatePGM.suggest(CHAIN, 400, 1, "1e-6").reason
    assert "independently" in pure
    assert "A delta of 1e-6 would allow" in pure
    assert "independently" not in granted
    assert "A delta" not in granted


def test_a_suggestion_says_when_little_but_noise_is_to_be_expected() -> None:
    assert "little but noise" in PrivatePGM.suggest(CHAIN, 50, 0.1).reason
    assert "little but noise" not in PrivatePGM.suggest(CHAIN, 5_000, 1).reason


@given(
    had=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=6),
    weight=st.floats(0.5, 20.0),
    left=st.floats(0.01, 3.0),
)
def test_what_is_left_goes_where_it_lowers_the_noise_most(had: list[float], weight: float, left: float) -> None:
    before, weights = np.array(had), weight ** np.arange(len(had), dtype=float)
    added = water_filling(before, weights, left)
    assert (added >= 0).all()
    assert added.sum() == pytest.approx(left)
    totals, raised = (before + added) / weights, added > 1e-9
    assert totals[raised] == pytest.approx(np.full(raised.sum(), totals[raised].max()))
    assert (totals[~raised] >= totals[raised].max() * (1 - 1e-6)).all()


def test_labels_keep_their_own_group_in_a_pair_while_there_are_sixteen_at_most() -> None:
    """Joined labels cannot be told apart afterwards."""
    labels = [f"label {i}" for i in range(9)]
    facts = {"kind": "categorical", "categories": labels, "public": True}
    schema = dp.Schema.from_dict({"columns": [{"name": "a", **facts}, {"name": "b", **facts}]})
    index = np.random.default_rng(3).integers(0, 9, 600)
    rows = pd.DataFrame({"a": np.array(labels)[index], "b": np.array(labels)[8 - index]})
    mechanism = dp.MECHANISMS["private_pgm"].suggest(schema, len(rows), 2, "1e-6")
    made = dp.synthesize(dp.PrivateTable(rows, schema), mechanism, epsilon=2, delta="1e-6", seed=1).sample()
    codes = [made[name].str.removeprefix("label ").astype(int) for name in ("a", "b")]
    assert (codes[0] + codes[1] == 8).mean() > 0.9


def test_relations_of_rare_labels_are_kept_where_the_budget_allows() -> None:
    """Sixty labels, of which the sixteen largest hold a quarter of the rows."""
    labels = [f"label {i}" for i in range(60)]
    facts = [
        {"name": "many", "kind": "categorical", "categories": labels, "public": True},
        {"name": "few", "kind": "categorical", "categories": ["0", "1", "2"], "public": True},
        {"name": "coin", "kind": "boolean", "public": True},
    ]
    rng = np.random.default_rng(5)
    index = rng.integers(0, 60, 20_000)
    columns = {"many": np.array(labels)[index], "few": (index % 3).astype(str), "coin": rng.random(20_000) < 0.5}
    table = dp.PrivateTable(pd.DataFrame(columns), dp.Schema.from_dict({"columns": facts}))
    made = dp.synthesize(table, PrivatePGM(), epsilon=5, delta="1e-6", seed=1).sample()
    assert (made["many"].str.removeprefix("label ").astype(int) % 3 == made["few"].astype(int)).mean() > 0.95


def test_with_many_columns_labels_share_groups_so_that_all_pairs_fit_into_memory() -> None:
    labels = [f"label {i}" for i in range(1_000)]
    facts = [{"name": f"c{i}", "kind": "categorical", "categories": labels, "public": True} for i in range(300)]
    allocation = allocate(dp.Schema.from_dict({"columns": facts}), 10**6, Budget.of(10, "1e-6"))
    assert allocation.label_groups == 16
    assert allocate(dp.Schema.from_dict({"columns": facts[:10]}), 10**6, Budget.of(10, "1e-6")).label_groups == 128


def test_a_table_may_have_more_columns_than_numpy_has_letters() -> None:
    """Noise is drawn by the time that the model is put together: whatever failed there would have been paid for."""
    names = [f"c{i}" for i in range(60)]
    facts = [{"name": name, "kind": "boolean", "public": True} for name in names]
    schema = dp.Schema.from_dict({"columns": facts})
    rows = pd.DataFrame(np.random.default_rng(0).random((200, 60)) < 0.3, columns=names)
    mechanism = PrivatePGM.suggest(schema, 200, 1)
    made = dp.synthesize(dp.PrivateTable(rows, schema), mechanism, epsilon=1, seed=1).sample()
    assert list(made.columns) == names
    assert len(made) == 200
