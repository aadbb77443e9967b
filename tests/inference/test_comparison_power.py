"""Power of the private test beside that of a release: dealt labels, simulation error, and both sides' sense."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.comparison_power import (
    ComparisonPower,
    LabelDeal,
    PowerEstimate,
    PowerQuestion,
    _power,
    comparison_power,
)
from dpsynth_core.inference.experiments import error_rates
from dpsynth_core.inference.mann_whitney import effect_size
from dpsynth_core.inference.private_comparison import ComparisonRequest
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "group", "kind": "categorical", "categories": ["a", "b", "c"], "public": True},
            {"name": "value", "kind": "continuous", "lower": 0, "upper": 100, "nullable": True, "public": True},
            {"name": "rank", "kind": "ordinal", "categories": [1, 2, 3, 4], "public": True},
        ]
    }
)


def rows(n: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    value = np.minimum(rng.exponential(10, n), 100)
    return pd.DataFrame(
        {
            "group": rng.choice(["a", "b", "c"], n, p=[0.2, 0.5, 0.3]),
            "value": np.where(rng.random(n) < 0.1, np.nan, value),
            "rank": np.clip(value // 4 + 1, 1, 4).astype(int),
        }
    )


def question(
    effect: float = 0.7,
    *,
    value: str = "value",
    epsilon: str = "1",
    n: int = 600,
    share: float | None = None,
    mechanism: str = "kd_grid",
) -> PowerQuestion:
    kind = MECHANISMS[mechanism]
    return PowerQuestion(
        request=ComparisonRequest(value=value, group="group", levels=("a", "b"), epsilon=epsilon),
        schema=SCHEMA,
        rows=rows(),
        n=n,
        mechanism=kind.suggest(SCHEMA, n, epsilon),
        budget=Budget.of(epsilon, "1e-6" if kind.needs_delta else 0),
        effect=effect,
        share=share,
    )


@pytest.mark.parametrize("value", ["value", "rank"])
@pytest.mark.parametrize("share", [None, 0.1, 0.6])
def test_labels_are_dealt_by_the_effect_and_nothing_else_changes(value: str, share: float | None) -> None:
    asked = question(0.7, value=value, share=share)
    deal, rng = LabelDeal.of(asked), np.random.default_rng(5)
    found = []
    for _ in range(60):
        table = deal.dealt(asked.comparison, rng, differ=True)
        pd.testing.assert_frame_equal(table.drop(columns="group"), deal.table.drop(columns="group"))
        assert (table["group"] == "c").equals(deal.table["group"] == "c")
        first, second = asked.comparison.split(table)
        assert (len(first), len(second)) == deal.sizes
        found.append(effect_size(first, second))
    error = float(np.std(found)) / np.sqrt(len(found))
    assert abs(np.mean(found) - 0.7) <= 4 * error + 0.01
    null = [effect_size(*asked.comparison.split(deal.dealt(asked.comparison, rng, differ=False))) for _ in range(60)]
    assert abs(np.mean(null) - 0.5) <= 4 * float(np.std(null)) / np.sqrt(len(null))


def test_an_effect_beyond_what_ties_allow_is_refused() -> None:
    tied = rows().assign(rank=lambda table: np.where(np.arange(len(table)) % 10, 1, 4))
    asked = question(0.95, value="rank", share=0.5)
    with pytest.raises(ParameterError, match="ties"):
        LabelDeal.of(PowerQuestion(**{**asked.__dict__, "rows": tied}))


def test_groups_without_rows_are_refused_in_words() -> None:
    asked = question()
    alone = asked.rows.assign(group="a")
    with pytest.raises(ParameterError, match="at least one row in each"):
        LabelDeal.of(PowerQuestion(**{**asked.__dict__, "rows": alone}))


def test_the_private_tests_power_is_that_of_the_experiment() -> None:
    """On a table of two columns and continuous values: one standard deviation between bell curves is 0.76."""
    rng = np.random.default_rng(1)
    schema = Schema.from_dict(
        {
            "columns": [
                {"name": "group", "kind": "boolean", "public": True},
                {"name": "value", "kind": "continuous", "lower": -9, "upper": 9, "public": True},
            ]
        }
    )
    table = pd.DataFrame({"group": np.arange(160) < 80, "value": rng.normal(size=160)})
    asked = PowerQuestion(
        request=ComparisonRequest(value="value", group="group", epsilon="1"),
        schema=schema,
        rows=table,
        n=160,
        mechanism=MECHANISMS["perturbed_histogram"](),
        budget=Budget.of(1),
        effect=0.7602,
    )
    power = comparison_power(asked)
    reference = error_rates(None, epsilon=1, n=160, effect=1, reps=2000, test="dp").power
    # The groups are dealt from one bell curve instead of two, which changes the power a little.
    assert abs(power.private.estimate - reference.estimate) <= 0.08
    assert power.released is not None
    assert power.released.estimate > 0.5


@pytest.mark.slow
def test_more_epsilon_finds_more_on_both_sides_and_the_sentence_says_which_is_better() -> None:
    little, much = comparison_power(question(epsilon="0.05")), comparison_power(question(epsilon="20"))
    assert little.private.estimate < 0.3
    assert much.private.estimate > 0.9
    assert much.released is not None
    assert little.released is not None
    assert little.released.estimate < much.released.estimate
    assert "Of 100 analysts with epsilon 0.05" in little.sentence
    assert much.enough is not None
    assert much.enough <= 20
    assert little.enough is None or little.enough <= 0.05
    for power in (little, much):
        assert power.private.low <= power.private.estimate <= power.private.high


def test_advice_follows_from_the_intervals() -> None:
    def power(private: tuple[float, float, float], released: tuple[float, float, float] | None) -> ComparisonPower:
        one, *other = (
            PowerEstimate(estimate=e, low=low, high=high, reps=100)
            for low, e, high in ([private] if released is None else [private, released])
        )
        return ComparisonPower(
            private=one,
            released=other[0] if other else None,
            problem="" if other else "Too slow.",
            mechanism="M",
            epsilon=1.0,
            sizes=(10, 20),
            effect=0.7,
        )

    cheaper = replace(power((0.9, 1, 1), (0.9, 1, 1)), enough=0.25)
    assert "as much as the synthetic table with epsilon 0.25" in cheaper.sentence
    assert "better use of epsilon" in power((0.8, 0.9, 0.95), (0.1, 0.2, 0.3)).sentence
    assert "finds more" in power((0.1, 0.2, 0.3), (0.8, 0.9, 0.95)).sentence
    assert "does not tell them apart" in power((0.1, 0.3, 0.5), (0.2, 0.4, 0.6)).sentence
    assert power((0.1, 0.3, 0.5), None).sentence.endswith("Too slow.")


def test_without_a_difference_about_one_in_twenty_is_found() -> None:
    rng = np.random.default_rng(3)
    found = _power(rng.normal(size=199), rng.normal(size=199), rng)
    assert found.low <= 0.05 <= found.high
    assert _power(rng.normal(size=199), 9 + rng.normal(size=199), rng).low > 0.95


def test_a_mechanism_that_takes_too_long_is_named() -> None:
    power = comparison_power(question(mechanism="dp_gan", n=5000))
    assert power.released is None
    assert "was not simulated" in power.problem
