"""The checks on quality say what Diagnostics says: the same measure, number, verdict and sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.diagnostics.base import Measure, Result, judge, worst_verdict
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.mmd import diagnostic as mmd
from dpsynth_core.diagnostics.nearest_rows import NearestRows
from dpsynth_core.diagnostics.pmse import diagnostic as pmse
from dpsynth_core.diagnostics.total_variation import LIMITS
from dpsynth_core.diagnostics.wording import VERDICT_WORDS, measured, statement
from dpsynth_core.review.checklist_item import ChecklistItem
from dpsynth_core.review.evidence import Evidence
from dpsynth_core.review.quality_checks import quality_checks
from dpsynth_core.review.thresholds import Thresholds
from tests.tables.schemas import mixed_schema, mixed_table


def checked(evaluation: Evaluation, thresholds: Thresholds | None = None, **rest: object) -> dict[str, ChecklistItem]:
    evidence = Evidence(evaluation=evaluation, **{"nearest": None, "discoveries": None, "pair": None, **rest})  # type: ignore[arg-type]
    return {check.key: check for check in quality_checks(evidence, thresholds or Thresholds())}


def column(name: str, value: float | None, reference: float = 0.01) -> Measure:
    if value is None:
        return Measure.failed(name, "It cannot be computed.", (name,))
    return Measure(
        name=name,
        columns=(name,),
        value=value,
        low=value * 0.95,
        high=value * 1.05,
        reference=reference,
        reference_high=1.2 * reference,
        verdict=judge(value, 1.2 * reference, value - reference, LIMITS),
        reading="So it is.",
    )


def columns(*items: Measure) -> Evaluation:
    return Evaluation(results=(DIAGNOSTICS["marginals"]().result(items),))


def test_the_worst_column_is_the_largest_of_those_that_the_evidence_lists() -> None:
    """One column is further beyond chance, but two others differ more: the threshold is about the largest."""
    check = checked(columns(column("a", 0.0927), column("b", 0.121, 0.04), column("c", 0.105, 0.04)))["columns"]
    assert check.state == "fail"
    assert check.value == 0.121
    assert check.measured.startswith("0.12 (b)")
    assert [line.split(":")[0] for line in check.details] == ["b", "c", "a"]


def test_a_large_value_by_chance_hides_no_real_difference() -> None:
    by_chance, real = column("labels", 0.3, 0.28), column("sex", 0.2)
    result = DIAGNOSTICS["marginals"]().result([by_chance, real])
    assert (result.headline.name, result.verdict) == ("sex", "poor")
    check = checked(Evaluation(results=(result,)))["columns"]
    assert check.state == "fail"
    assert "The largest value is another: Total variation 0.3 for labels" in check.evidence
    alone = checked(columns(by_chance))["columns"]
    assert alone.state == "warn"
    assert "so would be a fresh sample" in alone.evidence


def test_one_item_that_is_not_known_is_not_left_out() -> None:
    check = checked(columns(column("a", 0.01), column("b", None)))["columns"]
    assert check.state == "fail"
    assert "1 could not be computed" in check.measured


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.001, 0.3)), min_size=1, max_size=6))
def test_a_passed_check_is_never_called_far_apart_and_a_failed_one_never_excellent(
    drawn: list[tuple[float, float]],
) -> None:
    result = DIAGNOSTICS["marginals"]().result([column(str(i), *pair) for i, pair in enumerate(drawn)])
    check = checked(Evaluation(results=(result,)))["columns"]
    assert (check.state, result.verdict) != ("pass", "poor")
    assert (check.state, result.verdict) != ("fail", "excellent")


def test_default_thresholds_are_no_laxer_than_the_verdicts() -> None:
    asked = Thresholds()
    assert asked.columns <= LIMITS[1]
    assert asked.pairs <= LIMITS[1]
    assert asked.pmse <= pmse.LIMITS[1]
    assert asked.mmd <= mmd.LIMITS[1]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    original, schema = mixed_table(500), mixed_schema()
    made = dp.synthesize(dp.PrivateTable(original, schema), dp.MECHANISMS["kd_tree"](), epsilon=1, seed=0).sample()
    return evaluate(dp.PrivateTable(original, schema), made, ["marginals", "pairs", "pmse", "mmd"])


@pytest.mark.parametrize(
    ("key", "diagnostic"), [("columns", "marginals"), ("pairs", "pairs"), ("pmse", "pmse"), ("mmd", "mmd")]
)
def test_both_pages_show_the_same_measure_number_verdict_and_sentence(
    evaluation: Evaluation, key: str, diagnostic: str
) -> None:
    result, check = evaluation[diagnostic], checked(evaluation)[key]
    items = result.items or (result.headline,)
    largest = max(item.value or 0.0 for item in items)
    assert check.value == largest
    assert check.measured.startswith(measured(largest))
    assert (
        check.asked.lower()
        .replace("worst column: ", "")
        .replace("worst pair of columns: ", "")
        .startswith(result.scale.name.lower())
    )
    assert check.evidence.find(f"{VERDICT_WORDS[result.verdict]}. {statement(result)}. {result.headline.reading}") >= 0


def test_the_headline_is_the_worst_verdict_and_of_equals_the_largest(evaluation: Evaluation) -> None:
    for result in evaluation.results:
        if result.items:
            assert result.headline == worst_verdict(result.items)


def test_mmd_is_on_one_scale_from_zero_to_pure_noise(evaluation: Evaluation) -> None:
    result: Result = evaluation["mmd"]
    scores = result.tables["scores"].set_index("score")["value"]
    assert result.headline.value == pytest.approx(scores["MMD"] / scores["pure noise"])
    assert result.headline.reference == pytest.approx(scores["two halves of the original"] / scores["pure noise"])


def test_a_uniform_original_does_not_make_a_perfect_release_fail() -> None:
    """Pure noise is then as close as a fresh sample, so the share is about one by chance."""
    rng = np.random.default_rng(0)
    schema = dp.Schema.from_dict(
        {"columns": [{"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "public": True}]}
    )
    original, fresh = (pd.DataFrame({"x": rng.random(400)}) for _ in range(2))
    result = evaluate(dp.PrivateTable(original, schema), fresh, ["mmd"])
    assert result.verdict == "excellent"
    assert checked(result)["mmd"].state in ("pass", "warn")


@pytest.mark.parametrize(("share", "said"), [(1.0, "100%"), (0.0, "0%"), (0.9999, "100%"), (0.031, "3.1%")])
def test_shares_of_copied_rows_are_percentages(evaluation: Evaluation, share: float, said: str) -> None:
    nearest = NearestRows(
        copies=share,
        copies_fresh=share,
        copies_usual=1.0,
        distance=0.1,
        distance_fresh=0.1,
        distance_random=0.4,
        closer=0.5,
        closer_usual=0.6,
        sampled=100,
    )
    check = checked(evaluation, nearest=nearest)["nearest"]
    assert check.measured == f"{said} equal an original row; fresh rows: {said}"
    assert "e+" not in check.evidence
