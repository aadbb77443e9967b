"""Classifiers trained on synthetic rows, tested on original ones that were held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import dpsynth_core as dp
from dpsynth_core.diagnostics import Result, TablePair
from dpsynth_core.diagnostics.classification import (
    MIN_LABEL_ROWS,
    ClassificationDiagnostic,
    _fewer,
    _LabelTask,
    _like,
    can_be_label,
)
from dpsynth_core.diagnostics.classifiers import CLASSIFIERS, QUICK, LabelledRows, mean_area, roc_areas
from dpsynth_core.diagnostics.evaluation import evaluate_each
from dpsynth_core.errors import ParameterError

NUMBERS = [{"name": f"x{i}", "kind": "continuous", "lower": -6, "upper": 6, "public": True} for i in range(3)]
SCHEMA = dp.Schema.from_dict({"columns": [{"name": "ill", "kind": "boolean", "public": True}, *NUMBERS]})


def table(n: int, seed: int, *, share: float = 0.4, effect: float = 1.5) -> pd.DataFrame:
    """A label that the first number tells, more or less."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < share
    values = rng.normal(size=(n, 3))
    values[:, 0] += effect * ill
    return pd.DataFrame({"ill": ill, **{f"x{i}": values[:, i] for i in range(3)}})


def examined(original: pd.DataFrame, synthetic: pd.DataFrame, schema: dp.Schema = SCHEMA, **options: Any) -> Result:
    pair = TablePair.of(dp.PrivateTable(original, schema), synthetic)
    return ClassificationDiagnostic(**options).examine(pair, np.random.default_rng(0))


def areas(result: Result, source: str, kind: str = "scores") -> pd.Series[float]:
    found = result.tables["classifiers"]
    return found[found["trained on"] == source].set_index("classifier")[f"AUC from {kind}"]


# The area under the curve


def test_areas_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        y = rng.integers(0, 2, 60)
        score = np.round(rng.normal(size=60) + y, 1)  # with ties
        two = np.column_stack([-score, score])
        assert mean_area(two, y) == pytest.approx(roc_auc_score(y, score))
        predicted = rng.integers(0, 2, 60)
        hits = (predicted[:, None] == np.arange(2)).astype(float)
        assert mean_area(hits, y) == pytest.approx(balanced_accuracy_score(y, predicted))
        three, many = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
        assert mean_area(many, three) == pytest.approx(roc_auc_score(three, many, multi_class="ovr"))


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("labels", [2, 3])
def test_every_classifier_learns_scores_and_labels(name: str, labels: int) -> None:
    rng = np.random.default_rng(2)

    def some(n: int) -> LabelledRows:
        y = rng.integers(0, labels, n)
        X = rng.normal(size=(n, 4))
        X[np.arange(n), y] += 3
        return LabelledRows(X=X, y=y)

    found = roc_areas(name, some(200), some(300), labels, seed=0)
    assert found.scores > 0.85
    assert 0.75 < found.labels <= found.scores + 0.05


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_rare_label_is_not_given_up(name: str) -> None:
    """Without weights most classifiers would call every row healthy, and the area from labels would be one half."""
    rng = np.random.default_rng(3)

    def some(n: int) -> LabelledRows:
        y = (rng.random(n) < 0.06).astype(np.int64)
        return LabelledRows(X=rng.normal(size=(n, 3)) + 1.3 * y[:, None], y=y)

    found = roc_areas(name, some(1_500), some(2_000), 2, seed=0)
    assert found.scores > 0.6
    if name not in ("Decision tree", "Bagging", "Random forest"):  # which know their training rows by heart
        assert found.labels > 0.6


def test_a_label_that_was_not_learned_is_a_guess() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 2))
    y = np.repeat([0, 1, 2], 30)
    X[:, 0] += 4 * y
    two = LabelledRows(X=X[y < 2], y=y[y < 2])
    found = roc_areas("Logistic regression", two, LabelledRows(X=X, y=y), 3, seed=0)
    assert found.scores < 0.95
    constant = LabelledRows(X=X[y == 1], y=y[y == 1])
    assert roc_areas("Random forest", constant, LabelledRows(X=X, y=y), 3, seed=0).scores == 0.5


# What is trained and tested on


def test_parts_are_disjoint_and_labels_keep_their_shares() -> None:
    pair = TablePair.of(dp.PrivateTable(table(400, 0), SCHEMA), table(400, 1))
    task = _LabelTask.of(pair, None)
    assert isinstance(task, _LabelTask)
    parts = task.split(1_000, np.random.default_rng(0))
    together = np.concatenate([parts.first.X, parts.second.X, parts.test.X])
    assert len(together) == 400
    assert len(np.unique(together, axis=0)) == 400, "no row is in two parts"
    for part in (parts.first, parts.second, parts.test):
        assert part.y.mean() == pytest.approx(task.original.y.mean(), abs=0.02)
    assert np.bincount(parts.synthetic.y).tolist() == np.bincount(parts.first.y).tolist()


def test_where_rows_are_too_many_rare_labels_stay() -> None:
    rows = [np.arange(size) for size in (5_000, 20, 300)]
    assert [len(some) for some in _fewer(rows, 700)] == [380, 20, 300]
    assert [len(some) for some in _fewer(rows, 60)] == [20, 20, 20]
    assert [len(some) for some in _fewer(rows, 10_000)] == [5_000, 20, 300]


def test_synthetic_rows_take_the_places_of_labels_that_are_missing() -> None:
    y = np.array([0] * 30 + [1] * 3)
    chosen = _like(y, np.array([10, 10]), np.random.default_rng(0))
    assert len(set(chosen.tolist())) == 20
    assert np.bincount(y[chosen]).tolist() == [17, 3]


def test_the_label_is_not_among_what_it_is_predicted_from() -> None:
    """A label of pure chance cannot be predicted; if it were among the coordinates, it would be."""
    result = examined(table(800, 0, effect=0.0), table(800, 1, effect=0.0), label="ill")
    assert areas(result, "original").max() < 0.6
    assert "little to lose" in result.headline.reading


# Results


def test_a_fresh_sample_is_as_good_as_the_original_and_noise_is_not() -> None:
    original = table(1_200, 0)
    fresh = examined(original, table(1_200, 1))
    assert fresh.verdict == "excellent"
    assert "as good as training on the original, within 0.0" in fresh.headline.reading
    assert areas(fresh, "original")["Logistic regression"] == pytest.approx(0.856, abs=0.03)  # ndtr(1.5 / sqrt(2))
    noise = table(1_200, 2, effect=0.0)
    assert examined(original, noise).verdict == "poor"
    turned = table(1_200, 3, effect=-1.5)
    worse = examined(original, turned)
    assert worse.headline.value == pytest.approx(0.72, abs=0.1)
    assert areas(worse, "synthetic")["Logistic regression"] == pytest.approx(0.144, abs=0.05)


@pytest.mark.slow
def test_a_fresh_sample_is_hardly_ever_called_worse() -> None:
    """One sample in forty, by design; the allowance for splits that share rows makes it rarer."""
    verdicts = [examined(table(400, 2 * seed), table(400, 2 * seed + 1)).verdict for seed in range(60)]
    assert sum(verdict != "excellent" for verdict in verdicts) <= 5  # P(Bin(60, 1/40) > 5) < 0.005


def test_one_label_for_all_synthetic_rows_is_a_guess_and_said() -> None:
    result = examined(table(400, 0), table(400, 1).assign(ill=True))
    assert areas(result, "synthetic").tolist() == [0.5] * len(QUICK)
    assert result.verdict == "poor"
    assert any("same label" in note for note in result.notes)


def test_one_label_for_all_original_rows_has_no_area() -> None:
    result = examined(table(400, 0).assign(ill=False), table(400, 1))
    assert result.headline.value is None
    assert "not defined" in result.headline.reading
    rare = table(400, 0).assign(ill=np.arange(400) < MIN_LABEL_ROWS - 1)
    assert "not defined" in examined(rare, table(400, 1), label="ill").headline.reading


def test_numbers_with_many_values_and_too_many_labels_are_refused_in_words() -> None:
    assert "number with many values" in examined(table(100, 0), table(100, 1), label="x0").headline.reading
    with pytest.raises(ParameterError, match="label is 'y'"):
        examined(table(100, 0), table(100, 1), label="y")
    names = [f"c{i}" for i in range(40)]
    facts = [{"name": "c", "kind": "categorical", "categories": names, "public": True}, *NUMBERS]
    schema = dp.Schema.from_dict({"columns": facts})
    rows = table(400, 0).drop(columns="ill").assign(c=np.resize(names, 400))
    assert "has 40 label(s)" in examined(rows, rows, schema, label="c").headline.reading
    assert [can_be_label(column) for column in schema] == [False] * 4


def test_rows_without_a_label_and_rare_labels_are_left_out() -> None:
    facts = [
        {"name": "stage", "kind": "ordinal", "categories": ["a", "b", "c"], "nullable": True, "public": True},
        *NUMBERS,
    ]
    schema = dp.Schema.from_dict({"columns": facts})
    rng = np.random.default_rng(0)

    def staged(seed: int) -> pd.DataFrame:
        rows = table(500, seed)
        stage = np.where(rows["ill"], "b", "a").astype(object)
        stage[rng.random(500) < 0.1] = None
        stage[:3] = "c"
        return rows.drop(columns="ill").assign(stage=stage)

    result = examined(staged(0), staged(1), schema)
    assert result.verdict in ("excellent", "good")
    assert any("1 label(s)" in note for note in result.notes)


def test_twelve_classifiers_in_the_order_of_the_paper() -> None:
    result = examined(table(200, 0), table(200, 1), classifiers=CLASSIFIERS, splits=2, max_rows=60)
    assert list(areas(result, "original").index) == list(CLASSIFIERS)
    assert len(result.items) == 12
    found = result.tables["classifiers"]
    for kind in ("scores", "labels"):
        low, value, high = (found[f"AUC from {kind}{end}"] for end in (": from", "", ": to"))
        assert ((low <= value) & (value <= high)).all()


def test_wrong_parameters_are_refused_by_name() -> None:
    for wrong in (
        {"splits": 1},
        {"max_rows": 5},
        {"label": ""},
        {"classifiers": ()},
        {"classifiers": ("crystal ball",)},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            ClassificationDiagnostic(**wrong)  # type: ignore[arg-type]


def test_cancel_is_heeded_before_every_classifier() -> None:
    heard: list[float] = []
    pair = TablePair.of(dp.PrivateTable(table(120, 0), SCHEMA), table(120, 1))
    ClassificationDiagnostic(splits=3).examine(pair, np.random.default_rng(0), lambda _, done, *__: heard.append(done))
    assert len(heard) == 1 + 3 * len(QUICK)


def test_more_rows_and_classifiers_are_expected_to_take_longer() -> None:
    quick, all_of_them = ClassificationDiagnostic(), ClassificationDiagnostic(classifiers=CLASSIFIERS)
    assert quick.seconds(SCHEMA, 200) < quick.seconds(SCHEMA, 5_000) < all_of_them.seconds(SCHEMA, 5_000)
    assert all_of_them.seconds(SCHEMA, 5_000) == all_of_them.seconds(SCHEMA, 10**6), "rows are limited"


def test_several_releases_get_the_same_task() -> None:
    private = dp.PrivateTable(table(200, 0), SCHEMA)
    tables = [(table(200, 1), SCHEMA.names), (table(200, 2, effect=0.0), SCHEMA.names)]
    first, second = evaluate_each(private, tables, ClassificationDiagnostic(label="ill"))
    assert areas(first, "original").tolist() == areas(second, "original").tolist(), "the same rows are held out"
    assert first.headline.value is not None
    assert second.headline.value is not None
    assert first.headline.value < second.headline.value


def test_without_a_label_the_one_that_the_others_tell_best_is_predicted() -> None:
    """A label of pure chance would lose nothing, whatever had become of the table."""
    coins = np.random.default_rng(5).random((2, 600)) < 0.5
    rows, noise = (
        pd.DataFrame({"coin": coin, **frame}) for coin, frame in zip(coins, (table(600, 0), table(600, 1)), strict=True)
    )
    noise["ill"] = np.random.default_rng(6).permutation(noise["ill"])
    schema = dp.Schema.from_dict(
        {"columns": [{"name": "coin", "kind": "boolean", "public": True}, *SCHEMA.to_dict()["columns"]]}
    )
    result = examined(rows, noise, schema)
    assert "The label is 'ill'" in result.notes[0]
    assert result.verdict == "poor"
