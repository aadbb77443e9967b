"""Shares, correlations and slopes on a release: the ordinary tests, their risk, and the calibrated p-value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.correlation_test import CorrelationTest, numbers_of
from dpsynth_core.inference.nuisance import rounded_sizes
from dpsynth_core.inference.null_simulators import count_simulator
from dpsynth_core.inference.question import OrdinaryFinding, Question
from dpsynth_core.inference.question_risk import QuestionRisk, question_risk
from dpsynth_core.inference.share_test import ShareTest
from dpsynth_core.inference.slope_test import SlopeTest
from dpsynth_core.inference.stated_risk import RiskVerdict
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0, "upper": 100, "bins": 12, "public": True},
            {"name": "y", "kind": "continuous", "lower": 0, "upper": 100, "bins": 12, "public": True},
            {"name": "cents", "kind": "continuous", "lower": 0, "upper": 10, "decimals": 2, "public": True},
            {"name": "age", "kind": "integer", "lower": 18, "upper": 90, "nullable": True, "public": True},
            {"name": "day", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "public": True},
            {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
            {"name": "town", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True, "public": True},
            {"name": "smokes", "kind": "boolean", "public": True},
        ]
    }
)
NUMBERS, LABELS = SCHEMA.select(["x", "y"]), SCHEMA.select(["sex", "smokes"])


def people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": np.minimum(rng.exponential(8, n), 100),
            "y": np.minimum(rng.exponential(8, n), 100),
            "cents": np.round(rng.random(n) * 10, 2),
            "age": pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(18, 90, n)), dtype="Int64"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D"),
            "sex": rng.choice(["f", "m"], n, p=[0.15, 0.85]),
            "town": rng.choice(["a", "b", None], n),
            "smokes": rng.random(n) < 0.1,
        }
    )


def released(table: pd.DataFrame, schema: Schema, key: str, epsilon: float = 1, seed: int = 1) -> Release:
    mechanism = dp.MECHANISMS[key].suggest(schema, len(table), epsilon)
    return dp.synthesize(dp.PrivateTable(table, schema), mechanism, epsilon=epsilon, seed=seed)


# The ordinary tests


def test_shares_are_compared_as_by_a_chi_square_without_correction() -> None:
    table, question = people(), ShareTest.of(SCHEMA, value="smokes", group="sex", outcome=True)
    (a, n1), (b, n2) = question.shares(table)
    found = question.finding(table)
    assert found is not None
    expected = stats.chi2_contingency([[a, n1 - a], [b, n2 - b]], correction=False).pvalue
    assert math.isclose(found.pvalue, expected, rel_tol=1e-9)
    assert (n1, n2) == tuple(int((table["sex"] == sex).sum()) for sex in "fm")
    assert "percentage points" in found.text


def test_rows_without_a_label_are_left_out_of_shares() -> None:
    table = people()
    question = ShareTest.of(SCHEMA, value="town", group="sex", outcome="a")
    (a, n1), _ = question.shares(table)
    known = table[table["town"].notna() & (table["sex"] == "f")]
    assert (a, n1) == (int((known["town"] == "a").sum()), len(known))
    pair = ShareTest.of(SCHEMA, value="smokes", group="town", levels=("a", "b"), outcome=False)
    assert [n for _, n in pair.shares(table)] == [int((table["town"] == town).sum()) for town in "ab"]


def test_counts_and_rows_give_the_same_shares() -> None:
    table, question = people(), ShareTest.of(LABELS, value="smokes", group="sex", outcome=True)
    release = released(table, LABELS, "perturbed_histogram")
    synthetic = release.sample()
    simulator = count_simulator(release, question, synthetic)
    assert simulator is not None
    by_counts = question.on_counts(simulator.observed[None], simulator.cells, np.random.default_rng(0))
    by_rows = question.on_rows(synthetic)
    assert by_counts is not None
    assert by_counts.pvalues[0] == pytest.approx(by_rows.pvalues)
    assert by_counts.statistics[0] == pytest.approx(by_rows.statistics)


@pytest.mark.parametrize(("value", "other"), [("y", "x"), ("cents", "age"), ("day", "smokes")])
def test_a_correlation_is_pearsons(value: str, other: str) -> None:
    table = people()
    found = CorrelationTest.of(SCHEMA, value=value, other=other).finding(table)
    columns = table[[value, other]].dropna()
    numbers = [
        pd.to_numeric(columns[name]) if name != "day" else columns[name].map(pd.Timestamp.toordinal) for name in columns
    ]
    expected = stats.pearsonr(*(np.asarray(column, dtype=float) for column in numbers))
    assert found is not None
    assert math.isclose(found.pvalue, expected.pvalue, rel_tol=1e-6)


def test_a_slope_is_least_squares_in_the_columns_own_units() -> None:
    table = people()
    table["cents"] = np.clip(np.round(0.05 * table["x"] + table["cents"] / 4, 2), 0, 10)
    found = SlopeTest.of(SCHEMA, value="cents", predictor="x").fit(table)
    expected = stats.linregress(table["x"], table["cents"])
    assert found is not None
    assert found.slope == pytest.approx(expected.slope)
    assert found.std == pytest.approx(expected.stderr)
    assert found.pvalue == pytest.approx(expected.pvalue)


def test_other_columns_are_held_fixed() -> None:
    table, rng = people(), np.random.default_rng(1)
    table["y"] = np.clip(table["x"] + rng.normal(size=len(table)), 0, 100)
    table["cents"] = np.clip(np.round(table["y"] / 10 + rng.normal(size=len(table)) / 10, 2), 0, 10)
    alone = SlopeTest.of(SCHEMA, value="cents", predictor="x").fit(table)
    given = SlopeTest.of(SCHEMA, value="cents", predictor="x", others=("y", "smokes")).fit(table)
    assert alone is not None
    assert given is not None
    assert alone.pvalue < 1e-20
    assert given.pvalue > 1e-3
    design = np.column_stack([np.ones(len(table)), table["x"], table["y"], table["smokes"].astype(float)])
    assert given.slope == pytest.approx(np.linalg.lstsq(design, table["cents"], rcond=None)[0][1], rel=1e-6)


@pytest.mark.parametrize(
    "question",
    [
        ShareTest.of(SCHEMA, value="smokes", group="sex", outcome=True),
        CorrelationTest.of(SCHEMA, value="y", other="x"),
        SlopeTest.of(SCHEMA, value="y", predictor="x", others=("cents",)),
    ],
)
def test_where_nothing_varies_there_is_nothing_to_test(question: Question) -> None:
    table = people().assign(x=3.0, smokes=False)
    assert question.finding(table) is None
    found = question.on_rows(table)
    assert np.isnan(found.pvalues).all()
    assert (found.statistics == 0).all()
    assert question.finding(people(2)) is None or isinstance(question, ShareTest)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ShareTest.of(SCHEMA, value="sex", group="sex", outcome="f"),
        lambda: ShareTest.of(SCHEMA, value="smokes", group="sex", outcome="yes"),
        lambda: ShareTest.of(SCHEMA, value="smokes", group="town", outcome=True),
        lambda: ShareTest.of(SCHEMA, value="smokes", group="town", levels=("a", "z"), outcome=True),
        lambda: ShareTest.of(SCHEMA, value="x", group="sex", outcome=1),
        lambda: CorrelationTest.of(SCHEMA, value="x", other="x"),
        lambda: CorrelationTest.of(SCHEMA, value="x", other="town"),
        lambda: SlopeTest.of(SCHEMA, value="x", predictor="y", others=("y",)),
        lambda: SlopeTest.of(SCHEMA, value="x", predictor="sex"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_public_facts(ask: Callable[[], Question]) -> None:
    with pytest.raises(DPSynthError):
        ask()


def test_numbers_come_in_the_columns_unit() -> None:
    table = people(20)
    assert np.allclose(np.diff(np.sort(numbers_of(SCHEMA["cents"], table))), np.diff(np.sort(table["cents"])))
    assert np.isnan(numbers_of(SCHEMA["age"], table)).sum() == int(table["age"].isna().sum())


# Their risk on a release


def test_an_inflated_correlation_is_seen_through() -> None:
    """Skewed, unrelated values: noise in empty cells makes them look related."""
    release = released(people()[["x", "y"]], NUMBERS, "perturbed_histogram", 0.5)
    risk = question_risk(release, CorrelationTest.of(NUMBERS, value="y", other="x"), table=release.sample(), stage=1)
    assert risk.verdict == "inflated"
    assert risk.high > 0.5
    assert risk.calibrated is None or risk.calibrated > 0.05
    assert "Of 100 analysts" in risk.sentences[0]
    assert "calibrated one is" in risk.tests_sentence or "no calibrated p-value" in risk.tests_sentence


def test_a_clear_relation_is_found_by_the_calibrated_test() -> None:
    table = people(800)
    table["y"] = table["x"]
    release = released(table[["x", "y"]], NUMBERS, "kd_grid", 5)
    risk = question_risk(release, SlopeTest.of(NUMBERS, value="y", predictor="x"), table=release.sample(), stage=1)
    assert risk.calibrated is not None
    assert risk.calibrated <= 0.05


def test_shares_with_ample_epsilon_are_sound() -> None:
    release = released(people(2000)[["sex", "smokes"]], LABELS, "perturbed_histogram", 100)
    question = ShareTest.of(LABELS, value="smokes", group="sex", outcome=True)
    risk = question_risk(release, question, table=release.sample())
    assert risk.verdict == "sound"
    assert risk.high < 0.08
    assert risk.ordinary is not None
    assert risk.calibrated == pytest.approx(risk.ordinary.pvalue, abs=0.15)


def test_what_cannot_be_told_is_said() -> None:
    release = released(people(60)[["x", "y"]], NUMBERS, "kd_grid")
    question = CorrelationTest.of(NUMBERS, value="y", other="x")
    risk = question_risk(release, question, table=release.sample(), stage=0)
    assert risk.calibrated is None
    assert risk.ordinary is None or "calibrated one comes with the next figure" in risk.tests_sentence
    risk = question_risk(release, question, table=release.sample(), max_seconds=0)
    assert (risk.verdict, risk.low, risk.high) == ("unknown", 0.0, 1.0)
    assert "not known" in risk.sentences[0]


def test_the_figures_can_be_repeated() -> None:
    release = released(people(100)[["sex", "smokes"]], LABELS, "smoothed_histogram")
    question, table = ShareTest.of(LABELS, value="smokes", group="sex", outcome=True), release.sample()
    one, two = (question_risk(release, question, table=table, stage=0) for _ in range(2))
    assert one == two


def test_words_follow_the_verdict() -> None:
    def risk(verdict: RiskVerdict, low: float, high: float) -> str:
        ordinary = OrdinaryFinding(text="The correlation is 0.1.", pvalue=0.03)
        return QuestionRisk(ordinary=ordinary, low=low, high=high, verdict=verdict, simulations=100).sentences[1]

    assert "means about what it says" in risk("sound", 0.03, 0.06)
    assert "no evidence of a relation" in risk("inflated", 0.4, 0.6)
    assert "too little" in risk("inflated", 0.04, 0.6)
    assert "until that is known" in risk("unknown", 0.02, 0.09)


def test_sizes_of_many_small_cells_are_never_negative() -> None:
    for n, cells in ((60, 32), (64, 32), (100, 33), (7, 4)):
        sizes = rounded_sizes(np.full((1, cells), n / cells), n)
        assert sizes.min() >= 0
        assert sizes.sum() == n


# The level of the calibrated p-values: true nulls of several shapes, released again and again


def skewed(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(np.minimum(rng.exponential(8, n), 100))


def spiky(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(n) < 0.6, 10.0, rng.random(n) * 100)


def bimodal(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.clip(rng.normal(np.where(rng.random(n) < 0.3, 25, 75), 6), 0, 100)


LEVEL_CELLS = [
    (kind, key, shape)
    for kind in ("shares", "correlation", "slope")
    for key in ("perturbed_histogram", "smoothed_histogram", "kd_tree")
    for shape in (skewed, spiky, bimodal)
]


def level_of(
    kind: str, key: str, shape: Callable[[int, np.random.Generator], np.ndarray], *, reps: int, n: int = 300
) -> tuple[int, int]:
    """Calibrated p-values of 0.05 or less on true nulls, and how many there were."""
    low = answered = 0
    for seed in range(reps):
        rng = np.random.default_rng([seed, 77])
        if kind == "shares":
            schema = LABELS
            share = {"skewed": 0.05, "spiky": 0.5, "bimodal": 0.25}[shape.__name__]
            table = pd.DataFrame({"sex": rng.choice(["f", "m"], n, p=[0.1, 0.9]), "smokes": rng.random(n) < share})
            question: Question = ShareTest.of(schema, value="smokes", group="sex", outcome=True)
        else:
            schema = NUMBERS
            table = pd.DataFrame({"x": shape(n, rng), "y": shape(n, rng)})
            question = CorrelationTest.of(schema, value="y", other="x")
            if kind == "slope":
                question = SlopeTest.of(schema, value="y", predictor="x")
        release = released(table, schema, key, 1, seed)
        risk = question_risk(release, question, table=release.sample(), stage=1, seed=seed)
        answered += risk.calibrated is not None
        low += risk.calibrated is not None and risk.calibrated <= 0.05
    return low, answered


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "key", "shape"), LEVEL_CELLS)
def test_calibrated_pvalues_keep_their_level(
    kind: str, key: str, shape: Callable[[int, np.random.Generator], np.ndarray]
) -> None:
    low, answered = level_of(kind, key, shape, reps=40)
    assert low / max(answered, 1) <= 0.07 + 3 * math.sqrt(0.07 * 0.93 / max(answered, 1))
