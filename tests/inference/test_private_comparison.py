"""The private test on one's own table: sensitivities and privacy loss by enumeration, odd rows, and what it claims."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.errors import DPSynthError, ParameterError, SchemaError
from dpsynth_core.inference import private_comparison
from dpsynth_core.inference.dp_mann_whitney import doubled_u, release_test, size_bounds
from dpsynth_core.inference.null_law import smaller_u
from dpsynth_core.inference.private_comparison import ComparisonRequest, compare_privately, group_rows
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise
from dpsynth_core.table.estimate import estimate_bounds
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

FIRST, SECOND, OUT = range(3)
FACTS = {
    "columns": [
        {"name": "income", "kind": "continuous", "lower": 0, "upper": 10, "nullable": True, "public": True},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
        {"name": "town", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True, "public": True},
        {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True},
    ]
}
SCHEMA = Schema.from_dict(FACTS)


def table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = np.where(np.arange(n) < n // 2, "f", "m")
    income = np.clip(5 + rng.normal(size=n) + 2 * (sex == "f"), 0, 10)
    return pd.DataFrame(
        {
            "income": np.where(rng.random(n) < 0.1, np.nan, income),
            "sex": sex,
            "town": rng.choice(["a", "b", "c"], n),
            "age": rng.integers(20, 70, n) + 10 * (sex == "f"),
        }
    )


def sizes_and_u(rows: tuple[tuple[float, int], ...]) -> tuple[int, int, int]:
    values, where = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    kept = where != OUT
    u = doubled_u(values[kept], where[kept] == FIRST)
    return int((where == FIRST).sum()), int((where == SECOND).sum()), u


# Rows that belong to neither group


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_neighbour_changes_u_by_more_than_the_larger_group(n: int) -> None:
    row_kinds = list(itertools.product((0.0, 1.0, 2.0), (FIRST, SECOND, OUT)))
    known = {rows: sizes_and_u(rows) for rows in itertools.product(row_kinds, repeat=n)}
    reached = 0
    for rows, (n1, n2, u) in known.items():
        for row in row_kinds:
            other1, other2, other = known[(*rows[:-1], row)]
            assert abs(other1 - n1) + abs(other2 - n2) <= 2
            assert abs(other - u) <= 2 * max(n1, n2), "with the sizes of the first table"
            reached = max(reached, abs(other - u) - 2 * max(n1, n2))
    assert reached == 0, "the bound cannot be lowered"


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (3.0, 0.01)])
def test_the_privacy_loss_is_within_the_claim(epsilon: float, delta: float) -> None:
    """The exact chance of every outcome (both bounds, noisy U), for all pairs of neighbours of three rows."""
    n, reach, out_reach = 3, 45, 500
    for_size, for_u = Fraction(str(epsilon)) * 13 / 20, Fraction(str(epsilon)) * 7 / 20

    def laplace(scale: float, far: int) -> np.ndarray:
        a = math.exp(-1 / scale)
        return (1 - a) / (1 + a) * a ** np.abs(np.arange(-far, far + 1))

    sizes_law = laplace(float(2 / for_size), reach)

    @cache
    def bounds_of(first: int, second: int) -> tuple[int, int, int]:
        found = size_bounds((first, second), n, for_size, Fraction(str(delta)))
        return (*found.least, found.larger)

    def law(n1: int, n2: int, u: int) -> dict[tuple[int, ...], np.ndarray]:
        chance: dict[tuple[int, ...], float] = {}
        for (i, p), (j, q) in itertools.product(enumerate(sizes_law), repeat=2):
            key = bounds_of(n1 + i - reach, n2 + j - reach)
            chance[key] = chance.get(key, 0.0) + p * q
        return {key: c * np.roll(laplace(float(2 * key[2] / for_u), out_reach), u) for key, c in chance.items()}

    kinds = list(itertools.product((0.0, 1.0), (FIRST, SECOND, OUT)))
    summaries = {rows: sizes_and_u(rows) for rows in itertools.product(kinds, repeat=n)}
    pairs = {(s, summaries[(*rows[:-1], row)]) for rows, s in summaries.items() for row in kinds}
    laws = {s: law(*s) for s in set(summaries.values())}
    for one, two in pairs:
        excess = 0.0
        for key, chance in laws[one].items():
            other = laws[two].get(key, np.zeros_like(chance))
            excess += float(np.maximum(chance - math.exp(epsilon) * other, 0).sum())
        assert excess <= delta + 1e-6


@pytest.mark.parametrize("epsilon", ["0.05", "1", "20"])
def test_each_bound_fails_with_probability_delta_at_most(epsilon: str) -> None:
    rate, delta, sizes, n, reps = Fraction(epsilon), Fraction(1, 20), (40, 90), 200, 4000
    noise = np.random.default_rng(1).exponential(float(2 / rate), (reps, 2))
    noise = np.rint(noise * np.random.default_rng(2).choice([-1, 1], (reps, 2))).astype(int)
    found = [size_bounds((sizes[0] + int(a), sizes[1] + int(b)), n, rate, delta) for a, b in noise]
    tolerance = 4 * math.sqrt(0.05 * 0.95 / reps) + 0.01
    assert np.mean([bounds.least[0] > sizes[0] for bounds in found]) <= 0.05 + tolerance
    assert np.mean([bounds.larger < sizes[1] for bounds in found]) <= 0.05 + tolerance
    assert all(1 <= bounds.larger <= n and max(bounds.least) <= n for bounds in found)


def test_smaller_groups_have_a_smaller_u() -> None:
    """Bounds are at most the sizes, so the null is taken at a smaller U than the truth: low p-values stay rare."""
    for a, b in itertools.product(range(1, 8), repeat=2):
        points, chances = smaller_u(a, b)
        for more in ((a + 1, b), (a, b + 1)):
            later, likely = smaller_u(*more)
            for at in np.arange(0, a * b + 1):
                assert likely[later <= at].sum() <= chances[points <= at].sum() + 1e-12


@pytest.mark.parametrize("epsilon", ["0.3", "1", "10"])
@pytest.mark.parametrize("shares", [(0.3, 0.3), (0.05, 0.6)])
def test_type_one_error_is_at_most_alpha(epsilon: str, shares: tuple[float, float]) -> None:
    rng = np.random.default_rng(5)
    n, reps = 200, 600
    low = 0
    claim = Guarantee(status="proven", budget=Budget.of(epsilon))
    for seed in range(reps):
        where = rng.random(n)
        first, left_out = where < shares[0], where >= sum(shares)
        values = rng.integers(0, 12, n).astype(float)  # ties, too
        noise = SeededNoise(Budget.of(epsilon, "1e-6"), seed)
        low += release_test(values, first, noise, claim=claim, left_out=left_out).pvalue <= 0.05
    assert low / reps <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / reps)


def test_an_ample_budget_finds_a_clear_difference_among_others() -> None:
    private = PrivateTable(table(2000), SCHEMA)
    found = compare_privately(private, ComparisonRequest(value="income", group="sex", epsilon="5"))
    assert found.pvalue < 1e-6
    some = compare_privately(
        private, ComparisonRequest(value="age", group="town", levels=("a", "c"), epsilon="5", delta="1e-9")
    )
    assert 0 <= some.pvalue <= 1
    assert 400 < some.smaller <= 700


# Which rows count


def test_rows_without_a_value_or_of_another_group_are_left_out_and_nobody_learns_how_many() -> None:
    data = pd.DataFrame(
        {
            "income": [1.0, None, "x", 3.0, 99.0],
            "sex": ["f", "m", "f", "q", None],
            "town": ["a", "b", "c", None, "zz"],
            "age": [1, 2, 3, 4, 5],
        }
    )
    private = PrivateTable(data, SCHEMA)
    by_sex = ComparisonRequest(value="income", group="sex", epsilon="1").comparison(SCHEMA, 5)
    values, first, left_out = group_rows(private, by_sex)
    assert left_out is not None
    assert left_out.tolist() == [False, True, True, False, False]
    assert values[[0, 3, 4]].tolist() == [1.0, 3.0, 10.0], "clamped to the declared range"
    assert first.tolist() == [True, False, True, True, True], "an undeclared label joins the first, as in every run"
    by_town = ComparisonRequest(value="age", group="town", levels=("a", "c"), epsilon="1").comparison(SCHEMA, 5)
    _, _, left_out = group_rows(private, by_town)
    assert left_out is not None
    assert left_out.tolist() == [False, True, False, True, True]
    complete = ComparisonRequest(value="age", group="sex", epsilon="1").comparison(SCHEMA, 5)
    assert group_rows(private, complete)[2] is None, "declared facts decide, not the rows"


def test_what_is_drawn_depends_on_declared_facts_only() -> None:
    questions = (("age", "sex", None), ("income", "sex", None), ("age", "town", ("a", "b")))
    labels: list[str] = []
    for data in (table(50), table(50).assign(income=1.0, sex="f", town="a")):
        private = PrivateTable(data, SCHEMA)
        for value, group, levels in questions:
            request = ComparisonRequest(value=value, group=group, levels=levels, epsilon="1")
            compare_privately(private, request, watch=lambda charge: labels.append(charge.label))
    assert labels == 2 * ["size of the smaller group", "U", "sizes of the groups", "U", "sizes of the groups", "U"]


@pytest.mark.parametrize(
    "rows",
    [
        {"income": [None] * 3, "sex": ["f"] * 3},
        {"income": [1.0] * 3, "sex": ["m"] * 3},
        {"income": ["inf", "-inf", "x"], "sex": [None, "?", "f"]},
    ],
)
def test_no_row_can_make_it_fail(rows: dict[str, list[object]]) -> None:
    private = PrivateTable(pd.DataFrame(rows), SCHEMA.select(("income", "sex")))
    found = compare_privately(private, ComparisonRequest(value="income", group="sex", epsilon="1"))
    assert 0 <= found.pvalue <= 1
    assert math.isfinite(found.statistic)


# What it claims


def test_the_claim_is_for_the_person_and_names_the_test() -> None:
    request = ComparisonRequest(value="income", group="sex", epsilon="1", delta="1e-6")
    charged: list[Budget] = []
    private = PrivateTable(table(), replace(SCHEMA, rows_per_person=3))
    found = compare_privately(private, request, watch=lambda charge: charged.append(charge.budget))
    assert (found.guarantee.status, found.guarantee.budget) == ("proven", Budget.of(1, "1e-6"))
    assert found.cost.label == "Private test of column 'income' by 'sex'"
    assert found.guarantee.rows_per_person == 3
    spent = charged[0] + charged[1]
    assert spent == Budget.of(1, "1e-6").per_row(3)


def test_facts_read_from_the_data_void_it_and_only_those_of_its_two_columns() -> None:
    request = ComparisonRequest(value="income", group="sex", epsilon="1")
    column = replace(SCHEMA["town"], origin="read from the data")
    private = PrivateTable(table(), SCHEMA.with_column(column))
    assert compare_privately(private, request).guarantee.status == "proven"
    column = replace(SCHEMA["income"], origin="read from the data")
    private = PrivateTable(table(), SCHEMA.with_column(column))
    assert compare_privately(private, request).guarantee.status == "void"


def test_an_estimate_behind_a_column_is_part_of_the_claim_only_if_it_was_paid_for() -> None:
    data, tenth = table(5000), Budget.of("0.1")
    estimate = estimate_bounds(data["income"], epsilon=tenth.epsilon, noise=SecureNoise(tenth))
    schema = SCHEMA.with_column(estimate.declare(SCHEMA["income"], others_public=True))
    private, request = PrivateTable(data, schema), ComparisonRequest(value="income", group="sex", epsilon="1")
    assert compare_privately(private, request).guarantee.status == "void"
    found = compare_privately(private, request, estimates=(estimate,))
    assert (found.guarantee.status, found.guarantee.epsilon) == ("proven", 1.1)
    assert [part.label for part in found.guarantee.parts][1:] == ["Range of column 'income'"]


def test_a_seeded_test_is_not_private() -> None:
    private, request = PrivateTable(table(), SCHEMA), ComparisonRequest(value="age", group="sex", epsilon="1")
    one, two = (compare_privately(private, request, seed=3) for _ in range(2))
    assert one == two
    assert one.guarantee.status == "none"


def test_a_result_is_kept_as_json_and_read_back() -> None:
    private = PrivateTable(table(), SCHEMA)
    request = ComparisonRequest(value="age", group="town", levels=("a", "b"), epsilon="0.3")
    found = compare_privately(private, request)
    assert PaidComparison.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.schema.names == ("age", "town")
    assert "p-value" in found.finding


def test_rows_in_memory_are_sampled_as_those_of_any_other_table_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_comparison, "MAX_TEST_ROWS", 40)
    private, request = PrivateTable(table(), SCHEMA), ComparisonRequest(value="age", group="sex", epsilon="1")
    found = compare_privately(private, request)
    assert (found.n, found.rows_in_all, found.guarantee.status) == (40, len(table()), "proven")
    assert PaidComparison.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.published["drawnByPositionFrom"] == len(table())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"epsilon": "0"}, ParameterError),
        ({"epsilon": "1e9"}, ParameterError),
        ({"delta": "0"}, ParameterError),
        ({"delta": "0.5"}, ParameterError),
        ({"value": "sex"}, SchemaError),
        ({"value": "town"}, SchemaError),
        ({"group": "town"}, SchemaError),
        ({"group": "town", "levels": ("a", "z")}, SchemaError),
        ({"group": "income"}, SchemaError),
        ({"group": "nothing"}, DPSynthError),
    ],
)
def test_what_cannot_be_tested_is_refused_by_public_facts(change: dict[str, object], error: type[DPSynthError]) -> None:
    with pytest.raises(error):
        ComparisonRequest(**{"value": "age", "group": "sex", "epsilon": "1", **change}).comparison(SCHEMA, 100)  # type: ignore[arg-type]
