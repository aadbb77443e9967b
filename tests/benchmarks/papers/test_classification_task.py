"""The downstream task and the comparators' distances, without any data but their own."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers.base import Estimate, ResultStore, RunOptions
from dpsynth_core.diagnostics.classifiers import CLASSIFIERS
from dpsynth_core.mechanisms.mean_embedding.balog_features import BalogFeatures
from dpsynth_core.mechanisms.mean_embedding.balog_points import BalogPoints

task: Any = import_module("benchmarks.papers.classification_task")  # the package has a function of this name
embeddings: Any = import_module("benchmarks.papers.mean_embeddings")
SMALL = RunOptions(reps=1, shrink=100)


def fraud() -> Any:
    (found,) = task._tables(SMALL)
    return found


def test_the_simulated_table_has_the_published_shape() -> None:
    rows = task.simulated_fraud(RunOptions(shrink=4), np.random.default_rng(0))
    assert rows.shape == (284_807 // 4, 30)
    assert rows["Class"].mean() == pytest.approx(0.00173, abs=1e-4)
    spread = rows[rows["Class"] == 0][[f"V{i}" for i in range(1, 29)]].std()
    assert spread.iloc[0] == pytest.approx(1.96, abs=0.1)
    assert spread.iloc[-1] == pytest.approx(0.33, abs=0.02)
    assert set(rows.columns) == set(fraud().schema.names)


def test_no_mechanism_sees_a_row_that_is_tested() -> None:
    table, rng = fraud(), np.random.default_rng(1)
    rows = table.rows(SMALL, rng).assign(index=lambda frame: np.arange(len(frame)))
    training, test = task._divided(table, rows, rng)
    assert not set(training["index"]) & set(test["index"])
    assert len(test) == pytest.approx(0.2 * len(rows), abs=2)
    frauds = rows["Class"].sum()
    assert training["Class"].sum() == int(0.8 * frauds), "all frauds are kept"
    assert (training["Class"] == 0).sum() < 0.02 * len(rows), "few others are"


def test_rows_of_the_rare_label_are_kept_where_there_are_too_many() -> None:
    table = fraud()
    rows = table.rows(SMALL, np.random.default_rng(2))
    chosen = task._labelled(table, rows, 100, np.random.default_rng(3))
    assert len(chosen.y) == 100
    assert chosen.y.sum() == min(50, rows["Class"].sum())
    assert chosen.X.shape == (100, 29), "without the label"


def test_tables_have_a_row_for_every_method_and_classifier_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    table = fraud()
    store = ResultStore(tmp_path / "results.jsonl")
    options = replace(SMALL, store=store)
    made = {name: [0.6, 0.55] for name in CLASSIFIERS}
    for name in (task.BASELINE, *task._methods(table.label)):
        for epsilon in (0.0,) if name == task.BASELINE else task.EPSILONS:
            key = f"classification_task/{table.name}/100/{name}/{epsilon:g}/0/False"
            store.once(key, lambda name=name: {} if name == "kd_grid" else made)
    means, each = task.classification_task(options)  # nothing is computed: every result is there
    cells = {(row[0], row[1]): row[2:] for row in means.rows}
    assert cells["kd_grid", "scores"] == (None, None, None)
    assert all(isinstance(cell, Estimate) and cell.mean == pytest.approx(0.55) for cell in cells["dp_merf", "labels"])
    assert [row[0] for row in each.rows] == list(CLASSIFIERS)


def test_one_run_scores_every_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "CLASSIFIERS", CLASSIFIERS[:2])
    found = task._run(fraud(), task._methods("Class")["kd_tree"], 1.0, 0, SMALL)
    assert list(found) == list(CLASSIFIERS[:2])
    assert all(0 <= area <= 1 for areas in found.values() for area in areas)
    assert task._run(fraud(), task._methods("Class")["kd_grid"], 1.0, 0, SMALL) == {}, "thirty columns are too many"


def test_published_files_are_used_where_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "creditcard"
    folder.mkdir()
    rows = task.simulated_fraud(SMALL, np.random.default_rng(4)).assign(Time=0)
    rows.to_csv(folder / "creditcard.csv", index=False)
    (found,) = task._tables(replace(SMALL, data=tmp_path))
    assert found.published
    read = found.rows(SMALL, np.random.default_rng(0))
    assert isinstance(read, pd.DataFrame)
    assert "Time" not in read
    assert set(task.PAPER_TREE) == set(CLASSIFIERS)
    for column, mean in enumerate(task.PAPER_MEANS["KD tree (Table 1)"]):
        assert np.mean([values[column] for values in task.PAPER_TREE.values()]) == pytest.approx(mean, abs=6e-4)


def test_distances_of_the_comparators_fall_with_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"points": BalogPoints(points=60), "features": BalogFeatures(points=15, features=200)}
    monkeypatch.setattr(embeddings, "METHODS", few)
    (table,) = embeddings.mean_embeddings(RunOptions(reps=1, shrink=50))
    rows = {str(row[0]): row[2:] for row in table.rows}
    points, features = rows["points"], rows["features"]
    for cells in (points, features):
        two = [cell.mean for cell in cells[:3] if isinstance(cell, Estimate)]
        assert two[0] > two[2] > 0
    assert any("published" in str(row[1]) for row in table.rows)
