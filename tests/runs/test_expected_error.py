"""An estimate of a release's error that never sees the original, against the error that it has."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from benchmarks.utility.simulated import small, survey
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.marginals import MarginalsDiagnostic
from dpsynth_core.diagnostics.pairs import PairsDiagnostic
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.review import Publication, release_bundle
from dpsynth_core.runs import configuration
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.runs.expected_error import ExpectedError, error_of_release, expected_error, variation
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

COLUMN_FACTOR, PAIR_FACTOR = 3.0, 3.0
"""How far the true mean error may be from the estimate on these tables; docs/results/utility.md has measurements."""


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, Schema]:
    rows, facts = small()
    return rows, Schema.from_dict({"columns": facts})


@pytest.fixture(scope="module")
def result(table: tuple[pd.DataFrame, Schema]) -> RunResult:
    rows, schema = table
    return execute(rows, schema, RunConfig(mechanism=PrivatePGM(), epsilon="1", delta="1e-6"))


def test_figures_are_those_of_the_diagnostics(table: tuple[pd.DataFrame, Schema]) -> None:
    rows, schema = table
    original = PrivateTable(rows, schema)
    shuffled = rows.assign(age=rows["age"].to_numpy()[::-1], visits=rows["visits"] // 2)
    pair, rng = TablePair.of(original, shuffled), np.random.default_rng(0)
    other = PrivateTable(shuffled, schema)
    for diagnostic in (MarginalsDiagnostic(draws=20), PairsDiagnostic(draws=20)):
        for item in diagnostic.examine(pair, rng).items:
            assert variation(original, other, item.columns, diagnostic.bins) == pytest.approx(item.value, abs=1e-12)


@pytest.mark.parametrize(
    ("draw", "delta"), [(small, 0), (small, "1e-6"), pytest.param(survey, "1e-6", marks=pytest.mark.slow)]
)
def test_the_estimate_is_near_the_error(draw: object, delta: object) -> None:
    rows, facts = draw()  # type: ignore[operator]
    schema = Schema.from_dict({"columns": facts})
    original, budget = PrivateTable(rows, schema), Budget.of(1, delta)  # type: ignore[arg-type]
    result = execute(rows, schema, RunConfig(mechanism=PrivatePGM(), epsilon="1", delta=str(delta), seed=3))
    assert result.expected_error is not None
    released = PrivateTable(result.tables[0], schema)
    columns = np.mean([variation(original, released, (name,), 30) for name in schema.names])
    assert 1 / COLUMN_FACTOR < columns / result.expected_error.mean_column < COLUMN_FACTOR
    if budget.delta:  # without it no pair is measured here, and what is not measured is not covered
        pairs = np.mean([variation(original, released, names, 8) for names in combinations(schema.names, 2)])
        assert result.expected_error.mean_pair is not None
        assert 1 / PAIR_FACTOR < pairs / result.expected_error.mean_pair < PAIR_FACTOR


def test_more_noise_makes_a_larger_estimate(table: tuple[pd.DataFrame, Schema]) -> None:
    public = PrivateTable(*table)
    little, much = (
        expected_error(PrivatePGM(), public, Budget.of(epsilon), repetitions=2).mean_column for epsilon in (10, 0.1)
    )
    assert much > 3 * little


def test_it_follows_from_the_released_rows_alone(result: RunResult) -> None:
    again = error_of_release(result.config.mechanism, result.tables[0], result.schema, result.config.fitted)
    assert again == result.expected_error, "anybody who has the bundle can compute the same"


def test_it_is_for_as_many_rows_as_the_original_has(table: tuple[pd.DataFrame, Schema]) -> None:
    rows, schema = table
    made = execute(rows, schema, RunConfig(mechanism=PrivatePGM(rows=50), epsilon="1", seed=1))
    assert made.expected_error is not None
    assert len(made.tables[0]) == 50
    assert made.expected_error.mean_column < 0.2, "fifty rows alone would be further off"


def test_a_reference_without_privacy_has_no_noise_to_estimate(table: tuple[pd.DataFrame, Schema]) -> None:
    rows, schema = table
    few = schema.select(["group", "score"])
    made = execute(rows, few, RunConfig(mechanism=MECHANISMS["bayes"].suggest(few, len(rows), 1), epsilon="1"))
    assert made.expected_error is None


def test_a_slow_mechanism_is_not_run_again(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth_core.runs.expected_error.MAX_SECONDS", 0.0)
    assert error_of_release(result.config.mechanism, result.tables[0], result.schema, result.config.fitted) is None


def test_rows_that_were_paid_for_survive_a_failed_estimate(
    table: tuple[pd.DataFrame, Schema], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> ExpectedError:
        raise MemoryError

    monkeypatch.setattr(configuration, "error_of_release", fail)
    made = execute(*table, RunConfig(mechanism=PrivatePGM(), epsilon="1", seed=1))
    assert made.expected_error is None
    assert len(made.tables[0]) == len(table[0])


def test_one_column_has_no_pairs(table: tuple[pd.DataFrame, Schema]) -> None:
    rows, schema = table
    public = PrivateTable(rows, schema.select(["score"]))
    alone = expected_error(PrivatePGM(), public, Budget.of(1), repetitions=1)
    assert alone.mean_pair is alone.worst_pair is None
    assert alone.worst_column == ("score", alone.mean_column)


def test_the_card_states_it_and_what_it_leaves_out(result: RunResult) -> None:
    card = release_bundle(result, Publication(title="A table")).files["data_card.md"].decode()
    assert result.expected_error is not None
    assert "## How accurate the rows are" in card
    assert "The private table was not used for this estimate." in card
    assert "relations between columns that the release never measured" in card
    assert f"{result.expected_error.mean_column:.1%}" in card or f"{result.expected_error.mean_column:.0%}" in card
    without = release_bundle(replace(result, expected_error=None)).files["data_card.md"].decode()
    assert "How accurate" not in without


def test_names_in_the_card_are_not_markup() -> None:
    schema = Schema.from_dict({"columns": [{"name": "**<b>x</b>", "kind": "boolean", "public": True}]})
    made = execute(
        pd.DataFrame({"**<b>x</b>": [True, False] * 50}), schema, RunConfig(mechanism=PrivatePGM(), epsilon="1")
    )
    card = release_bundle(made).files["data_card.md"].decode()
    assert "<b>" not in card.replace("\\<", "")


def test_nothing_else_can_be_named_in_it(result: RunResult) -> None:
    assert result.expected_error is not None
    smuggled = replace(result.expected_error, columns=(("Ada has flu", 0.1), *result.expected_error.columns[1:]))
    with pytest.raises(Exception, match="schema's columns"):
        release_bundle(replace(result, expected_error=smuggled))
