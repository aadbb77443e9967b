"""Experiments run from the command line, without any data but their own."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import EXPERIMENTS
from benchmarks.papers.__main__ import main
from benchmarks.papers.base import Estimate, ResultTable, RunOptions
from benchmarks.papers.gaussian_mixtures import BEST_PUBLISHED, EPSILONS, PUBLISHED, PointCloud
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.runs.synthesize import synthesize


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


@pytest.mark.parametrize("arguments", [["nonsense"], ["utility", "--reps", "0"], ["utility", "--reps", "many"]])
def test_what_cannot_be_run_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert "reps" in said if "utility" in arguments else "Choose from: false_discoveries" in said


def test_a_tiny_run_needs_no_data_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gaussian_mixtures", "--reps", "2", "--json", "--shrink", "500", "--data", str(tmp_path)]) == 0
    said = capsys.readouterr()
    tables = json.loads(said.out)
    assert len(tables) == 5
    assert "Running" in said.err, "progress goes to the error stream"
    main_table = tables[0]
    assert "simulated" in main_table["notes"][0]
    cells = [value for key, value in main_table["rows"][0].items() if key.startswith("D")]
    assert len(cells) == 6
    for cell in cells:
        assert cell["reps"] == 2
        assert 0 <= cell["mean"] <= math.sqrt(2)
        assert cell["standard_error"] >= 0


def test_a_tiny_run_prints_aligned_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gaussian_mixtures", "--reps", "1", "--shrink", "1000", "--data", str(tmp_path), "--secure"]) == 0
    text = capsys.readouterr().out
    assert "Release noise" in text
    assert "Balog alg. 2" in text


def test_the_regression_figures_run_small(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regression_coefficients", "--reps", "2", "--json", "--shrink", "50"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert [table["title"].split()[4] for table in tables] == ["intercept", "slope"]
    for table in tables:
        assert {"bayes (not private)", "noisy_bayes", "functional mechanism (l1)"} < {
            row["method"] for row in table["rows"]
        }
        assert all(row["eps 1"]["mean"] >= 0 for row in table["rows"])


def test_seeded_runs_repeat() -> None:
    options = RunOptions(reps=2, shrink=200)
    cloud = PointCloud.simulated(options.rows(100_000), 2)
    assert cloud.distance(KDTree.suggest, 1.0, options) == cloud.distance(KDTree.suggest, 1.0, options)


def test_shared_densities_give_the_plain_distance() -> None:
    """The experiment computes the density of the rows once for all repetitions; the result is that of ``mmd``."""
    cloud = PointCloud.simulated(500, 2)
    found = cloud.distance(KDTree.suggest, 1.0, RunOptions(reps=3))
    plain = []
    for seed in range(3):
        mechanism = KDTree.suggest(cloud.table.schema, 500, 1.0)
        model = synthesize(cloud.table, mechanism, epsilon=1.0, seed=seed).model
        assert isinstance(model, PartitionModel)
        plain.append(mmd(cloud.points, model.centres(), cloud.gamma, wy=model.weights))
    assert found.mean == pytest.approx(np.mean(plain), rel=1e-9)
    assert found.error == pytest.approx(np.std(plain, ddof=1) / math.sqrt(3), rel=1e-6)


def test_clusters_keep_their_centres_when_only_their_spread_changes() -> None:
    wide, narrow = PointCloud.simulated(300, 3, 30.0), PointCloud.simulated(300, 3, 3.0)
    assert np.abs(wide.points - narrow.points).max() < 30 * 6


def test_published_rows_are_used_where_they_are_at_hand(tmp_path: Path) -> None:
    folder = tmp_path / "balog2018"
    folder.mkdir()
    np.savez(folder / "mixture_of_Gaussians_N100000_D2.npz", X_private=np.array([[0.0, 0.0], [1.0, 1.0]]))
    (folder / "mixture_of_Gaussians_N100000_D2.json").write_text('{"D": 2, "kernel_mean_EQKernel": 0.5}')
    cloud = PointCloud.published(2, RunOptions(data=tmp_path))
    assert (cloud.table.n, cloud.xx, cloud.origin) == (2, 0.5, "published rows")


def test_the_best_published_figures_are_the_smallest_of_the_private_ones() -> None:
    private = [values for _, guarantee, values in PUBLISHED if guarantee == "(epsilon, 1e-6)"]
    smallest = tuple(min(column) for column in zip(*private, strict=True))
    assert smallest == (*BEST_PUBLISHED[2], *BEST_PUBLISHED[5])
    assert len(smallest) == 2 * len(EPSILONS)


def test_an_estimate_shows_as_many_digits_as_it_has() -> None:
    assert str(Estimate.of([1.0, 1.2, 1.1])) == "1.100 ± 0.058"
    assert str(Estimate.of([0.5])) == "0.5"
    assert Estimate.of([2.0, 4.0]) == Estimate(mean=3.0, error=1.0, reps=2)


def test_a_table_is_aligned() -> None:
    table = ResultTable(title="T", columns=("a", "long heading"), rows=(("x", None), ("yy", 0.123456)))
    assert table.text().splitlines()[2:] == ["a   long heading", "--  ------------", "x   -", "yy  0.123"]


def test_a_setup_refuses_nonsense() -> None:
    with pytest.raises(ParameterError, match="reps"):
        RunOptions(reps=0)


def test_greedy_trees_break_the_bound_and_the_best_tree_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree_sensitivity", "--reps", "3", "--json", "--shrink", "25"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert len(table["rows"]) == 9
    best = table["rows"][-1]
    assert best["tree"] == "best tree, depth 2"
    assert best["above 1/(2n) (%)"]["mean"] == 0
    assert best["largest move x n"] < 0.5


@pytest.mark.slow
def test_the_second_table_has_a_row_for_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release_pmse", "--reps", "2", "--json", "--shrink", "40"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    means = {row["method"]: row["eps 4"] for row in table["rows"] if row["guarantee"]}
    assert means.keys() >= {"no privacy: the model fitted", "pmse, finite lists", "smoothed_histogram"}
    assert 0 <= means["pmse, finite lists"]["mean"] <= 0.25
    assert table["rows"][0]["eps 0.25"]["reps"] == 2
