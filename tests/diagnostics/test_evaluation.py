from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.diagnostics import Diagnostic, Result, TablePair
from dpsynth_core.diagnostics.base import Scale
from dpsynth_core.diagnostics.evaluation import evaluate
from dpsynth_core.diagnostics.marginals import MarginalsDiagnostic
from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.progress import Progress, no_progress
from tests.tables.schemas import mixed_schema, mixed_table


def original(rows: int = 600) -> dp.PrivateTable:
    return dp.PrivateTable(mixed_table(rows), mixed_schema())


def test_a_table_with_permuted_columns_does_not_look_good() -> None:
    """Every column is perfect and every pair is broken: a headline over columns alone would call this excellent."""
    rng = np.random.default_rng(4)
    table = mixed_table(2000)
    shuffled = pd.DataFrame({name: rng.permutation(table[name].to_numpy()) for name in table})
    found = evaluate(dp.PrivateTable(table, mixed_schema()), shuffled)
    assert found["marginals"].verdict == "excellent"
    assert found["pairs"].headline.columns == ("age", "income")
    assert found["pairs"].verdict == "poor"
    assert found.verdict == "poor"
    assert found.culprits[0].verdict == "poor"


def test_a_bootstrap_of_the_original_is_excellent() -> None:
    table = original()
    again = table.rows().sample(table.n, replace=True, random_state=1)
    assert evaluate(table, again).verdict == "excellent"


def test_diagnostics_are_chosen_by_name_or_with_parameters() -> None:
    found = evaluate(
        original(), mixed_table(100, seed=2), ["pairs", MarginalsDiagnostic(bins=4)], columns=["age", "sex"]
    )
    assert list(found) == ["pairs", "marginals"]
    assert {item.name for item in found["marginals"].items} == {"age", "sex"}
    with pytest.raises(ParameterError, match="marginals, pairs"):
        evaluate(original(), mixed_table(10), ["nonsense"])
    with pytest.raises(ParameterError):
        evaluate(original(), mixed_table(10), [])


@dataclass(frozen=True, kw_only=True)
class Failing(Diagnostic):
    """Always refuses."""

    key: ClassVar[str] = "failing"
    title: ClassVar[str] = "Failing"
    question: ClassVar[str] = "Does it fail?"
    method: ClassVar[str] = "By refusing."
    scale: ClassVar[Scale] = Scale(name="none", low=0, high=1, better="lower", good="none")

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        raise DPSynthError("This cannot be computed here.")


def test_one_failing_diagnostic_does_not_sink_the_others_and_is_not_averaged_away() -> None:
    table = original()
    found = evaluate(table, table.rows(), ["marginals", Failing()])
    assert found["marginals"].verdict == "excellent"
    assert found["failing"].headline.value is None
    assert found["failing"].headline.reading == "This cannot be computed here."
    assert found.verdict == "unknown"


def test_progress_runs_from_nothing_to_all() -> None:
    seen: list[float] = []
    evaluate(original(100), mixed_table(100, seed=1), progress=lambda stage, done: seen.append(done))
    assert seen[0] == 0
    assert seen == sorted(seen)
    assert seen[-1] <= 1


def test_an_evaluation_is_never_releasable() -> None:
    found = evaluate(original(50), mixed_table(50), ["marginals"])
    assert found.releasable is False
    assert all(result.releasable is False for result in found.values())


def test_results_are_handed_over_as_they_come() -> None:
    table, early = mixed_table(), []
    private = dp.PrivateTable(table, mixed_schema())
    found = evaluate(private, table, ["marginals", "pairs"], ready=lambda result: early.append(result.key))
    assert early == ["marginals"]
    assert list(found) == ["marginals", "pairs"]
