"""The comparison of releases: measured rightly, continued where it stopped, and open to other methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.utility import __main__ as command
from benchmarks.utility.measures import marginal_errors, model_scores
from benchmarks.utility.methods import methods, rho_for
from benchmarks.utility.results import Line, read_lines, rising_errors, summary
from benchmarks.utility.tables import ALWAYS, BenchmarkTable, Target, load_table
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.pairs import mean_pair_variation
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.private_table import PrivateTable

RIVAL = """
def mst(codes, sizes, rho, rng):
    assert codes.shape[1] == len(sizes) and (codes.max(axis=0) < sizes).all() and rho > 0
    return codes[rng.permutation(len(codes))], {"cut": True}
"""


@pytest.fixture(scope="module")
def small() -> BenchmarkTable:
    table = load_table("small", None)
    assert table is not None
    return table


@pytest.fixture(scope="module")
def original(small: BenchmarkTable) -> PrivateTable:
    return PrivateTable(small.frame, small.schema)


def test_the_rows_themselves_have_no_error(original: PrivateTable) -> None:
    assert set(marginal_errors(original, original.rows()).values()) == {0.0}


def test_pairs_agree_with_the_diagnostic(original: PrivateTable) -> None:
    shuffled, _ = methods(None)["independent"](original, Budget.of(1), 0)
    errors = marginal_errors(original, shuffled)
    assert errors["two_equal"] == pytest.approx(mean_pair_variation(TablePair.of(original, shuffled), 16))
    assert errors["one_equal"] == errors["one_quantile"] == 0.0, "shuffling a column does not change it"
    assert errors["three_equal"] > errors["two_equal"] > 0.05


def test_the_quantile_grid_sees_what_equal_ranges_hide(original: PrivateTable) -> None:
    rows = original.rows()
    # The ages 48 to 52 lie in one of sixteen equal ranges.
    moved = rows.assign(age=np.where(rows["age"].between(48, 52), 52, rows["age"]))
    errors = marginal_errors(original, moved)
    assert errors["one_equal"] == 0.0
    assert errors["one_quantile"] > 0.005


def test_models_learn_from_rows_and_not_from_shuffled_ones(small: BenchmarkTable, original: PrivateTable) -> None:
    training, test = small.split(0)
    real = model_scores(small, training, test)
    shuffled, _ = methods(None)["independent"](PrivateTable(training, small.schema), Budget.of(1), 0)
    assert all(score > 0.6 for score in real.values())
    assert all(0.3 < score < 0.6 for score in model_scores(small, shuffled, test).values())
    constant = shuffled.assign(outcome="no")
    assert set(model_scores(small, constant, test).values()) == {0.5}


def test_rows_to_test_on_are_not_released(small: BenchmarkTable) -> None:
    training, test = small.split(3)
    assert len(training) + len(test) == len(small.frame)
    assert len(training.merge(test, how="inner")) == 0


@pytest.mark.parametrize("key", ALWAYS)
def test_tables_fit_their_declared_facts(key: str) -> None:
    table = load_table(key, None)
    assert table is not None
    restored = PrivateTable(table.frame, table.schema).rows()
    for column in table.schema:
        if column.is_numeric:
            declared = (pd.to_numeric(restored[column.name]) - table.frame[column.name]).abs().max()
            assert declared < 1e-9, "no value lies outside its declared range"
        else:
            assert restored[column.name].astype(str).equals(table.frame[column.name].astype(str))
    for target in table.targets:
        assert 0.1 < target.answers(table.frame).mean() < 0.9


def test_high_order_structure_is_invisible_in_pairs() -> None:
    table = load_table("high_order", None)
    assert table is not None
    names = ["bit_0", "bit_1", "parity"]
    schema = table.schema.select(names)
    private = PrivateTable(table.frame, schema)
    shuffled, _ = methods(None)["independent"](private, Budget.of(1), 0)
    errors = marginal_errors(private, shuffled)
    assert errors["two_equal"] < 0.02
    assert errors["three_equal"] > 0.3


def test_a_target_hides_what_gives_it_away(small: BenchmarkTable) -> None:
    target = Target(column="outcome", positive=("yes",), without=("group",))
    assert {"outcome", "group"}.isdisjoint(target.predictors(small.schema).names)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-6), (10.0, 1e-9)])
def test_rho_implies_the_budget_and_no_larger_one_does(epsilon: float, delta: float) -> None:
    def least_delta(rho: float) -> float:
        alpha = 1 + np.geomspace(1e-3, 1e4, 200_001)
        log = (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
        return float(np.exp(log.min()))

    rho = rho_for(epsilon, delta)
    assert least_delta(rho) == pytest.approx(delta, rel=1e-3)
    assert least_delta(rho * 1.01) > delta


@pytest.fixture
def one_table(small: BenchmarkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    few = BenchmarkTable(key="small", frame=small.frame.head(400), schema=small.schema, targets=small.targets)
    monkeypatch.setitem(ALWAYS, "small", lambda: few)


@pytest.mark.usefixtures("one_table")
def test_a_run_is_continued_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rivals, out = tmp_path / "rivals.py", tmp_path / "results.csv"
    rivals.write_text(RIVAL)
    arguments = ["--tables", "small", "cardio", "--epsilons", "1", "--rivals", str(rivals), "--out", str(out)]
    assert command.main([*arguments, "--reps", "1"]) == 0
    said = capsys.readouterr()
    assert "cardio is left out" in said.err
    lines = read_lines(out)
    measured = [(line.method, line.epsilon, line.delta) for line in lines]
    assert measured == [
        ("real", "", ""),
        ("independent", "", ""),
        ("private_pgm", "1", "1e-6"),
        ("mst", "1", "1e-6"),
        ("private_pgm", "1", "0"),
    ], "a rival that needs a delta is not run without one"
    rival = lines[3]
    assert rival.two_equal == 0.0, "a rival that returns the codes meets the grid that it was given"
    assert rival.note == "cut short"
    assert "| small | 1 | 1e-6 | mst | 1 |" in said.out
    assert out.with_suffix(".md").read_text(encoding="utf-8") == said.out

    monkeypatch.setattr(command, "_measured", lambda *_: pytest.fail("measured again"))
    assert command.main([*arguments, "--reps", "1"]) == 0
    assert read_lines(out) == lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--methods", "magic"], "no method 'magic'"), (["--rivals", "nowhere.py"], "a Python file")],
)
def test_what_cannot_be_run_is_explained(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main([*arguments, "--out", str(tmp_path / "results.csv"), "--tables", "small"])
    assert said in capsys.readouterr().err


def test_a_file_without_rivals_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("")
    with pytest.raises(Exception, match="mst or aim"):
        methods(file)


def line(method: str, epsilon: str, two: float, rep: int = 0) -> Line:
    errors = {"one_equal": 0.1, "two_equal": two, "three_equal": 0.3}
    errors |= {"one_quantile": 0.1, "two_quantile": 0.2, "three_quantile": 0.3}
    scores = {"auc_logistic": 0.7, "auc_boosting": 0.8, "cpu_seconds": 1.0}
    return Line(table="t", rows=9, columns=2, epsilon=epsilon, delta="1e-6", method=method, rep=rep, **errors, **scores)


def test_the_summary_divides_by_the_rival_at_the_same_budget() -> None:
    lines = [line("ours", "1", 0.02), line("ours", "1", 0.04, 1), line("aim", "1", 0.06), line("ours", "3", 0.01)]
    text = summary(lines)
    assert "| t | 1 | 1e-6 | ours | 2 | 0.1000 | 0.0300 |" in text
    ours = {row.split(" | ")[1]: row.split(" | ")[-2] for row in text.splitlines() if " ours " in row}
    assert ours == {"1": "0.50", "3": ""}


def test_errors_that_rise_with_epsilon_are_named() -> None:
    assert list(rising_errors([line("ours", "1", 0.02), line("ours", "10", 0.0203)])) == []
    (said,) = rising_errors([line("ours", "3", 0.02), line("ours", "10", 0.03), line("ours", "1", 0.05)])
    assert said == "ours on t, delta 1e-6: 0.0200 at 3, 0.0300 at 10"
