"""What a table is good for: each line from one measure, with its figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.diagnostics.base import Measure
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.purposes import PURPOSES, change, changes, fitness_lines, overall
from dpsynth_core.diagnostics.regression import RegressionDiagnostic
from dpsynth_core.diagnostics.wording import measured
from tests.tables.schemas import mixed_schema, mixed_table

LOOKED = ["marginals", "mann_whitney", "regression"]


def told(synthetic: pd.DataFrame, original: pd.DataFrame | None = None) -> Evaluation:
    private = dp.PrivateTable(mixed_table(600) if original is None else original, mixed_schema())
    return evaluate(private, synthetic, LOOKED)


def permuted(table: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: table[name].to_numpy()[rng.permutation(len(table))] for name in table})


def test_a_fresh_sample_is_good_for_everything() -> None:
    lines = fitness_lines(told(mixed_table(600, seed=5)))
    assert [line.purpose for line in lines] == list(PURPOSES)
    assert {line.fitness for line in lines} == {"good"}
    assert overall(lines).startswith("Good for teaching, software tests, totals and shares")


def test_permuted_columns_are_good_for_totals_and_not_for_what_needs_relations() -> None:
    """The worst of six calls this table far apart, like one of pure noise; the lines tell them apart."""
    original = mixed_table(600).assign(sex=lambda t: np.where(t["age"] > 45, "f", "m"))
    lines = {line.purpose: line for line in fitness_lines(told(permuted(original), original))}
    assert lines["totals"].fitness == lines["software"].fitness == lines["teaching"].fitness == "good"
    assert lines["groups"].fitness == "not"
    sentence = overall(tuple(lines.values()))
    assert sentence.startswith("Good for teaching")
    assert "not for comparing groups" in sentence


def test_a_line_names_its_measure_and_shows_its_figure() -> None:
    evaluation = told(mixed_table(600, seed=5).assign(age=20))
    lines = {line.purpose: line for line in fitness_lines(evaluation, ["totals", "groups"])}
    headline = evaluation["marginals"].headline
    assert lines["totals"].text.startswith(
        f"Not for totals and shares: total variation {measured(headline.value)} for age."
    )
    assert set(lines) == {"totals", "groups"}


def test_a_lost_label_counts_for_software_tests() -> None:
    original = mixed_table(600)
    common = original["pain"].mode()[0]
    line = fitness_lines(told(original.assign(pain=common), original), ["software"])[0]
    assert line.fitness == "not"
    assert "kinds of values of pain" in line.text


def test_the_line_on_a_model_names_the_outcome_that_was_explained() -> None:
    private = dp.PrivateTable(mixed_table(600), mixed_schema())
    evaluation = evaluate(private, mixed_table(600, seed=5), [RegressionDiagnostic(outcome="age")])
    assert fitness_lines(evaluation, ["model"])[0].text.startswith(
        "Good for a model for a target: explaining age, interval gap"
    )
    assert fitness_lines(evaluation, ["groups"])[0].fitness == "unknown"


@pytest.mark.parametrize(
    ("after", "said"),
    [((0.1, 0.05, 0.15), "better"), ((0.35, 0.3, 0.4), "about the same"), ((0.9, 0.8, 1.0), "worse")],
)
def test_a_change_is_named_only_beyond_both_intervals(after: tuple[float, float, float], said: str) -> None:
    before = Measure(name="x", value=0.3, low=0.25, high=0.36)
    assert change(before, Measure(name="x", value=after[0], low=after[1], high=after[2])) == said
    assert change(before, Measure.failed("x", "why")) == "not known"


def test_improvement_between_two_releases_is_visible() -> None:
    noisy, close = told(mixed_table(600, seed=5).assign(age=20)), told(mixed_table(600, seed=6))
    rows = changes({"1": noisy, "2": close})
    assert {row["measure"].split(":")[0]: row["change"] for row in rows}["Marginal distributions"] == "better"
    assert rows[0]["1"] == measured(noisy["marginals"].headline.value)
