"""What each column leans on, where it cannot lean on all columns before it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.mechanisms.pmse.column_models import column_models
from dpsynth_core.mechanisms.pmse.fit_steps import block_start, blocks_of_columns, small_groups
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.mechanisms.pmse.parents import DEPENDENCE_SENSITIVITY, candidates, choose_parents, dependence
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay

NAMES = ("a", "b", "c", "d")
SCHEMA = dp.Schema.from_dict(
    {"columns": [{"name": n, "kind": "continuous", "lower": -5, "upper": 5, "public": True} for n in NAMES]}
)


def chain(n: int, seed: int = 0) -> dp.PrivateTable:
    """Columns a and b are independent; c follows a; d follows c."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = 0.8 * a + 0.6 * rng.normal(size=n)
    d = 0.8 * c + 0.6 * rng.normal(size=n)
    return dp.PrivateTable(pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), SCHEMA)


@given(data=st.data(), n=st.integers(1, 30))
def test_no_row_moves_a_tie_further_than_declared(data: st.DataObject, n: int) -> None:
    codes = st.lists(st.integers(0, 3), min_size=n, max_size=n).map(lambda values: np.array([*values]))
    first, second = data.draw(codes), data.draw(codes)
    row, new = data.draw(st.integers(0, n - 1)), data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    other = [first.copy(), second.copy()]
    other[0][row], other[1][row] = new
    assert abs(dependence(first, second) - dependence(*other)) <= DEPENDENCE_SENSITIVITY / n + 1e-12


def test_the_bound_on_a_tie_is_approached() -> None:
    first = np.repeat([0, 1], 500)
    other = first.copy()
    other[0] = 1
    moved = abs(dependence(first, first) - dependence(other, first))
    assert 0.9 / 1000 < moved <= DEPENDENCE_SENSITIVITY / 1000


def test_with_epsilon_to_spare_the_strongest_ties_are_found() -> None:
    table = chain(2_000)
    noise = SeededNoise(Budget.of(100), seed=1)
    assert choose_parents(table, column_models(SCHEMA, "normal"), 1, noise, Fraction(100)) == ((), (0,), (0,), (2,))
    assert noise.spent == Budget.of(100)


def test_what_is_not_leaned_on_is_no_parameter() -> None:
    models = column_models(SCHEMA, "normal")
    parents = ((), (0,), (0,), (2,))
    for steps in (small_groups(models, parents), blocks_of_columns(models, 8, parents)):
        indices = sorted(np.concatenate([step.indices for step in steps if step.last == 3]).tolist())
        start = block_start(models, 3, 3, parents)
        assert indices == np.flatnonzero(~np.isnan(start)).tolist() == [0, 1, 4]
        assert {tuple(pair) for step in steps if step.last == 3 for pair in step.pairs.tolist()} <= {(3, 3), (2, 3)}


@pytest.mark.parametrize("sampler", ["lists", "metropolis"])
def test_ties_that_pass_through_another_column_are_kept(sampler: Any) -> None:
    """The last column leans on c only; its tie to a follows from c's, and to b there is none."""
    rows = dp.synthesize(chain(4_000), PMSE(sampler=sampler, parents=1, steps=600), epsilon=50, seed=2).sample(20_000)
    found = rows.corr()
    assert found.loc["c", "d"] == pytest.approx(0.8, abs=0.12)
    assert found.loc["a", "d"] == pytest.approx(0.64, abs=0.15)
    assert abs(found.loc["b", "d"]) < 0.12


def test_fewer_rows_or_epsilon_mean_fewer_columns_to_lean_on() -> None:
    labels = {
        name: {stage.label for stage in PMSE().plan(SCHEMA, n, Budget.of(1)).stages}
        for name, n in (("few", 2_000), ("many", 2_000_000))
    }
    assert "which columns go together" in labels["few"]
    assert "which columns go together" not in labels["many"]


def test_every_choice_is_charged_and_moves_no_further_than_declared() -> None:
    table = chain(60)
    other = table.rows().copy()
    other.iloc[0] = 5.0
    recorder = Recorder(SeededNoise(Budget.of(1), seed=1))
    PMSE(parents=1).fit(table, recorder)
    replay = Replay(recorder)
    PMSE(parents=1).fit(dp.PrivateTable(other, SCHEMA), replay)
    assert recorder.spent == Budget.of(1)
    assert replay.finished
    assert 0 < replay.excess <= 1


def test_a_column_of_one_value_is_nobodys_parent() -> None:
    facts = [{"name": "x", "kind": "categorical", "categories": ["only"], "public": True}]
    facts += [{"name": n, "kind": "continuous", "lower": 0, "upper": 1, "public": True} for n in "yz"]
    models = column_models(dp.Schema.from_dict({"columns": facts}), "normal")
    assert [candidates(models, j) for j in range(3)] == [[], [], [1]]
