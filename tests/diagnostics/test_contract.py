"""The contract that every diagnostic in the registry keeps; a new one is tested by being registered."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic, Result, TablePair
from dpsynth_core.diagnostics.base import VERDICTS, Measure
from tests.tables.schemas import mixed_schema, mixed_table
from tests.tables.strategies import schema_and_table

diagnostics = pytest.mark.parametrize("kind", DIAGNOSTICS.values(), ids=DIAGNOSTICS.keys())


def pair(original: pd.DataFrame, synthetic: pd.DataFrame, schema: dp.Schema | None = None) -> TablePair:
    return TablePair.of(dp.PrivateTable(original, schema or mixed_schema()), synthetic)


def telling_table(rows: int, seed: int = 0) -> pd.DataFrame:
    """With something to be lost between any two columns: groups differ, too."""
    table = mixed_table(rows, seed)
    return table.assign(sex=np.where(table["age"] > 45, "f", "m"))


def examined(kind: type[Diagnostic], compared: TablePair, seed: int = 0) -> Result:
    return kind().examine(compared, np.random.default_rng(seed))


def check_measure(measure: Measure, result: Result) -> None:
    assert measure.verdict in VERDICTS
    assert measure.reading
    if measure.value is None:
        assert measure.verdict == "unknown"
        return
    assert math.isfinite(measure.value)
    assert result.scale.low <= measure.value <= result.scale.high
    assert measure.low is not None
    assert measure.high is not None
    assert measure.low <= measure.high
    assert measure.reference is not None
    assert measure.reference_high is not None
    assert measure.reference <= measure.reference_high


def check_result(result: Result, kind: type[Diagnostic]) -> None:
    assert (result.key, result.title) == (kind.key, kind.title)
    assert result.releasable is False
    for measure in (result.headline, *result.items):
        check_measure(measure, result)


@diagnostics
def test_a_diagnostic_describes_itself(kind: type[Diagnostic]) -> None:
    assert DIAGNOSTICS[kind.key] is kind
    assert kind.question.endswith("?")
    assert len(kind.method) > 100
    assert kind.scale.better in ("lower", "higher")
    assert kind.scale.good
    with pytest.raises(FrozenInstanceError):
        kind().key = "other"  # type: ignore[misc]


@diagnostics
def test_results_carry_value_interval_reference_verdict_and_reading(kind: type[Diagnostic]) -> None:
    result = examined(kind, pair(mixed_table(400), mixed_table(300, seed=5)))
    check_result(result, kind)
    assert result.headline.value is not None


@diagnostics
def test_a_result_cannot_be_made_releasable(kind: type[Diagnostic]) -> None:
    result = kind().unable("for a test")
    with pytest.raises((FrozenInstanceError, TypeError)):
        result.releasable = True  # type: ignore[misc, assignment]
    with pytest.raises(TypeError):
        Result(key="x", title="x", scale=kind.scale, headline=result.headline, releasable=True)  # type: ignore[call-arg]


@diagnostics
def test_the_same_seed_gives_the_same_numbers(kind: type[Diagnostic]) -> None:
    compared = pair(mixed_table(200), mixed_table(200, seed=1))
    first, second = (examined(kind, compared, seed=3) for _ in range(2))
    assert first.headline == second.headline
    assert first.items == second.items


@diagnostics
def test_a_fresh_sample_is_not_called_bad_and_noise_is(kind: type[Diagnostic]) -> None:
    original = telling_table(800)
    fresh = examined(kind, pair(original, telling_table(800, seed=9)))
    assert fresh.verdict in ("excellent", "good")
    schema = mixed_schema()
    noise = dp.synthesize(
        dp.PrivateTable(original, schema), dp.MECHANISMS["smoothed_histogram"](), epsilon=0.001, seed=0
    ).sample()
    assert examined(kind, pair(original, noise)).verdict in ("fair", "poor")


EDGES: dict[str, tuple[Any, Any]] = {
    "one row each": (mixed_table(1), mixed_table(1, seed=1)),
    "two rows": (mixed_table(2), mixed_table(2, seed=1)),
    "unequal sizes": (mixed_table(300), mixed_table(17, seed=1)),
    "one synthetic row": (mixed_table(50), mixed_table(1, seed=1)),
    "all rows equal": (mixed_table(1).loc[[0] * 40], mixed_table(1).loc[[0] * 40]),
    "all missing": (mixed_table(40).assign(height=np.nan, pain=None), mixed_table(40, seed=1)),
    "all missing twice": (mixed_table(40).assign(height=np.nan), mixed_table(40).assign(height=np.nan)),
}


@diagnostics
@pytest.mark.parametrize("edge", EDGES)
def test_edge_tables_give_a_result(kind: type[Diagnostic], edge: str) -> None:
    check_result(examined(kind, pair(*EDGES[edge])), kind)


@diagnostics
@pytest.mark.parametrize("name", ["sex", "height"])
def test_one_column_is_enough(kind: type[Diagnostic], name: str) -> None:
    compared = pair(mixed_table(60), mixed_table(60, seed=1), mixed_schema().select([name]))
    check_result(examined(kind, compared), kind)


@diagnostics
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_schema_and_any_table(kind: type[Diagnostic], data: st.DataObject) -> None:
    schema, original = data.draw(schema_and_table())
    rows = data.draw(st.lists(st.integers(0, len(original) - 1), min_size=1, max_size=8))
    check_result(examined(kind, pair(original, original.iloc[rows].reset_index(drop=True), schema)), kind)


@diagnostics
def test_progress_is_reported_and_can_cancel(kind: type[Diagnostic]) -> None:
    seen: list[float] = []

    def watch(stage: str, done: float) -> None:
        assert stage
        seen.append(done)

    compared = pair(mixed_table(100), mixed_table(100, seed=1))
    kind().examine(compared, np.random.default_rng(0), watch)
    assert seen == sorted(seen)
    assert all(0 <= done <= 1 for done in seen)

    class StoppedError(Exception):
        """Raised by whoever watches."""

    def stop(stage: str, done: float) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        kind().examine(compared, np.random.default_rng(0), stop)


@diagnostics
def test_no_text_of_a_result_holds_a_cell(kind: type[Diagnostic]) -> None:
    """Sentences about results are shown in many places; only the tree's splits may tell of values."""
    original = mixed_table(60).assign(sex="f")
    original.loc[0, "income"] = 77_777.77
    result = examined(kind, pair(original, mixed_table(60, seed=1)))
    told = " ".join([m.reading for m in (result.headline, *result.items)] + list(result.notes))
    assert "77777" not in told.replace(",", "")
