"""Private tests published with a release: one statement for both, and nothing that was not paid for."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.private_comparison import ComparisonRequest, compare_privately
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.review import release_bundle, release_digest
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.table.schema import Schema

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {"income": RNG.normal(50, 10, 4000), "sex": RNG.choice(["f", "m"], 4000), "age": RNG.integers(18, 90, 4000)}
)
SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "income", "kind": "continuous", "lower": 0, "upper": 100, "public": True},
            {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
            {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "public": True},
        ]
    }
)
REQUEST = ComparisonRequest(value="income", group="sex", epsilon="0.5")


@cache
def made(schema: Schema = SCHEMA) -> RunResult:
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"].suggest(schema, len(ROWS), 1), epsilon="1")
    return execute(ROWS, schema, config)


@cache
def paid_test() -> PaidComparison:
    return compare_privately(dp.PrivateTable(ROWS, SCHEMA), REQUEST)


def test_the_statement_is_the_sum_and_names_the_test() -> None:
    both = made().with_comparisons([paid_test()])
    assert both.guarantee.status == "proven"
    assert both.guarantee.budget == Budget.of("1.5", "1e-6")
    assert [part.label for part in both.guarantee.parts] == [
        "Synthetic rows",
        "Private test of column 'income' by 'sex'",
    ]
    files = release_bundle(both).files
    card = files["data_card.md"].decode()
    assert "epsilon 1.5, delta 1e-6" in card
    assert "## Private tests" in card
    (published,) = json.loads(files["private_tests.json"])
    assert published["pvalue"] == paid_test().pvalue
    assert (published["epsilon"], published["delta"]) == ("0.5", "1e-6")
    assert b"private_tests.json" in files["SHA256SUMS"]
    assert "private_tests.json" in files["croissant.json"].decode()


def test_without_tests_nothing_changes() -> None:
    assert made().with_comparisons([]) == made()
    assert "private_tests.json" not in release_bundle(made()).files
    assert release_digest(made()) != release_digest(made().with_comparisons([paid_test()]))


def test_an_estimate_behind_both_counts_once() -> None:
    tenth = Budget.of("0.1")
    estimate = dp.estimate_bounds(ROWS["income"], epsilon=tenth.epsilon, noise=SecureNoise(tenth))
    schema = SCHEMA.with_column(estimate.declare(SCHEMA["income"], others_public=True))
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"].suggest(schema, len(ROWS), 1), epsilon="1")
    result = execute(ROWS, schema, config, [estimate])
    test = compare_privately(dp.PrivateTable(ROWS, schema), REQUEST, estimates=[estimate])
    assert test.guarantee.budget == Budget.of("0.6", "1e-6")
    both = result.with_comparisons([test])
    assert both.guarantee.budget == Budget.of("1.6", "1e-6")
    release_bundle(both)


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA.with_column(replace(SCHEMA["income"], upper=200)),
        SCHEMA.select(["income", "age"]),
        replace(SCHEMA, rows_per_person=2),
    ],
)
def test_a_test_with_other_facts_cannot_share_the_statement(schema: Schema) -> None:
    with pytest.raises(DPSynthError, match="other public facts"):
        made(schema).with_comparisons([paid_test()])


def test_a_test_that_is_not_in_the_claim_is_refused() -> None:
    with pytest.raises(DPSynthError, match="does not name the budgets"):
        release_bundle(replace(made(), comparisons=(paid_test(),)))
    both = made().with_comparisons([paid_test()])
    with pytest.raises(DPSynthError, match="does not name the budgets"):
        release_bundle(replace(both, comparisons=()))


def test_a_seeded_or_void_test_cannot_be_published() -> None:
    private = dp.PrivateTable(ROWS, SCHEMA)
    seeded = compare_privately(private, REQUEST, seed=1)
    with pytest.raises(DPSynthError, match="cannot be published"):
        release_bundle(made().with_comparisons([seeded]))
