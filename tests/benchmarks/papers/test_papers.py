"""Experiments run from the command line, without any data but their own."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers import EXPERIMENTS
from benchmarks.papers.__main__ import main
from benchmarks.papers.antigen_level import HIGH_RISK, LOW_RISK, PAPER_U, two_populations
from benchmarks.papers.base import Estimate, ResultStore, ResultTable, RunOptions
from benchmarks.papers.body_mass_index import BodyMass
from benchmarks.papers.gaussian_mixtures import BEST_PUBLISHED, EPSILONS, PUBLISHED, PointCloud
from benchmarks.papers.published_walks import published_draws, simulated_table, synthetic_tables
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
    assert "reps" in said if "utility" in arguments else f"Choose from: {next(iter(EXPERIMENTS))}" in said


def test_a_tiny_run_needs_no_data_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gaussian_mixtures", "--reps", "2", "--json", "--shrink", "500", "--data", str(tmp_path)]) == 0
    said = capsys.readouterr()
    tables = json.loads(said.out)
    assert len(tables) == 7
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
    assert [table["title"].split()[4].rstrip(",") for table in tables] == ["intercept", "slope"] * 2
    for box in tables[2]["rows"]:
        five = [box[name] for name in ("least", "first quartile", "median", "third quartile", "largest")]
        assert five == sorted(five)
    for table in tables[:2]:
        assert {"bayes (not private)", "noisy_bayes", "functional mechanism (l1)", "the paper's mechanism, depth 5"} < {
            row["method"] for row in table["rows"]
        }
        assert all(row["eps 1"]["mean"] >= 0 for row in table["rows"])


def test_seeded_runs_repeat() -> None:
    options = RunOptions(reps=2, shrink=200)
    cloud = PointCloud.simulated(options.rows(100_000), 2, options=options)
    assert cloud.distance(KDTree.suggest, 1.0, options) == cloud.distance(KDTree.suggest, 1.0, options)


def test_shared_densities_give_the_plain_distance() -> None:
    """The experiment computes the density of the rows once for all repetitions; the result is that of ``mmd``."""
    cloud = PointCloud.simulated(500, 2, options=RunOptions())
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
    wide, narrow = (PointCloud.simulated(300, 3, std, options=RunOptions()) for std in (30.0, 3.0))
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


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Also after it was stopped in the middle of a line; another size or kind of noise is another result."""
    path, asked = tmp_path / "results" / "store.jsonl", []

    def compute() -> list[int]:
        asked.append(1)
        return [len(asked)]

    first = RunOptions(store=ResultStore(path))
    assert [first.once("a", compute), first.once("a", compute)] == [[1], [1]]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "b; shrink 1')
    again = RunOptions(store=ResultStore(path))
    assert again.once("a", compute) == [1]
    assert replace(again, shrink=2).once("a", compute) == [2]
    assert replace(again, secure=True).once("a", compute) == [3]
    third = RunOptions(store=ResultStore(path), shrink=2)
    assert third.once("a", compute) == [2]
    assert RunOptions().once("a", compute) == [4]


def test_a_sampled_distance_tends_to_that_of_the_release() -> None:
    options = RunOptions(reps=1)
    cloud = PointCloud.simulated(2_000, 2, options=options)
    few, many = (cloud.sampled_distance(KDTree.suggest, 10.0, size, options).mean for size in (50, 5_000))
    assert few > 2 * many


def test_walks_are_stored_and_say_whether_they_met(tmp_path: Path) -> None:
    options = RunOptions(shrink=50, store=ResultStore(tmp_path / "store.jsonl"))
    table = simulated_table(200, 0)
    draws = published_draws(table, 0, depth=1, epsilon=5.0, start="truth", options=options)
    assert draws.thetas.shape == (10, 5)
    assert (draws.scores >= 0).all()
    assert draws.rhat >= 0.9
    again = replace(options, store=ResultStore(tmp_path / "store.jsonl"), report=pytest.fail)
    stored = published_draws(table, 0, depth=1, epsilon=5.0, start="truth", options=again)
    assert np.array_equal(stored.thetas, draws.thetas)
    assert [len(each) for each in synthetic_tables(draws, 30, 0)] == [30] * 10


def test_body_mass_index_needs_no_file_and_uses_one_where_it_is(tmp_path: Path) -> None:
    assert BodyMass.of(RunOptions()).origin == "simulated people"
    folder = tmp_path / "cardio"
    folder.mkdir()
    people = pd.DataFrame({"height": [200, 100, 100], "weight": [80.0, 50.0, 10.0], "cardio": [0, 1, 1]})
    people.to_csv(folder / "cardio_train.csv.gz", sep=";", index=False)
    found = BodyMass.of(RunOptions(data=tmp_path))
    assert (found.healthy.tolist(), found.ill.tolist()) == ([20.0], [50.0, 10.0])
    null, signal = found.populations(10)
    assert null.first == null.second
    counts = signal.counts(3, 24, np.random.default_rng(0))
    assert counts[:, 0, 3].tolist() == [5, 5, 5]  # from 20 to 21
    assert (counts[:, 1, 0] + counts[:, 1, 23]).tolist() == [5, 5, 5]  # beyond the ends


def test_simulated_patients_are_as_far_apart_as_the_papers_statistic_says() -> None:
    """The expected Mann-Whitney statistic of the simulated groups is the printed one, up to levels beyond the range."""
    _, signal = two_populations()
    low, high = (np.diff(law.below(np.linspace(1, 41, 401))) for law in (signal.first, signal.second))
    below = np.concatenate([[0.0], np.cumsum(high)[:-1]])
    expected = LOW_RISK * HIGH_RISK * float(low @ (below + high / 2))
    assert expected == pytest.approx(PAPER_U, rel=0.01)


@pytest.mark.parametrize("name", ["antigen_level", "body_mass_index", "number_of_bins"])
def test_the_experiments_on_discoveries_run_small(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--reps", "1", "--json", "--shrink", "400"]) == 0
    tables = json.loads(capsys.readouterr().out)
    rates = [row for table in tables for row in table["rows"] if "error" in row]
    assert {row["error"] for row in rates} == {"Type I", "Type II"}


@pytest.mark.slow
def test_the_gan_runs_small(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gan_discoveries", "--reps", "1", "--json", "--shrink", "200"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert len(table["rows"]) == 3 * 4


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
    table, walked = json.loads(capsys.readouterr().out)
    assert {row["l"] for row in walked["rows"] if row["method"].startswith("the paper's mechanism")} == {"1", "10"}
    means = {row["method"]: row["eps 4"] for row in table["rows"] if row["guarantee"]}
    assert means.keys() >= {"no privacy: the model fitted", "pmse, finite lists", "smoothed_histogram"}
    assert 0 <= means["pmse, finite lists"]["mean"] <= 0.25
    assert table["rows"][0]["eps 0.25"]["reps"] == 2
