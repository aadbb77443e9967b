"""A table on the server as tasks find it: opened by name, sampled by position, counted over every row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth_core.table.row_sample
from dpsynth_core.diagnostics.evaluation import evaluate, evaluate_in_parts
from dpsynth_core.errors import EngineError
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.people import ONE_PERSON
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.runs.jobs import on_private_table
from dpsynth_core.runs.opening import OpenedSource, inspect_source
from dpsynth_core.runs.originals import SampledSource
from dpsynth_core.table.file_layout import layout_of
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.row_sample import RowSample
from dpsynth_core.table.schema import Schema

N, SAMPLE = 5_000, 400
SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "public": True},
            {"name": "income", "kind": "continuous", "lower": 0, "upper": 1, "bins": 20, "public": True},
            {"name": "region", "kind": "categorical", "categories": ["n", "s", "w"], "nullable": True, "public": True},
        ],
        "file": {"format": "parquet"},
    }
)


def rows(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    region = pd.Series(rng.choice(["n", "s", "w"], N), dtype="str")
    region[rng.random(N) < 0.1] = None
    return pd.DataFrame({"age": rng.integers(0, 100, N), "income": rng.random(N), "region": region})


class Told(RunProgress):
    """Remembers the stages."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def __call__(self, stage: str, done: float, /, *_: Point) -> None:
        assert 0 <= done <= 1
        self.stages.append(stage)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceTable:
    monkeypatch.setattr(dpsynth_core.table.row_sample, "SAMPLE_ROWS", SAMPLE)
    rows().to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "facts.json").write_text(SCHEMA.to_json())
    entry = {
        "name": "Visits",
        "engine": "duckdb",
        "location": str(tmp_path / "visits.parquet"),
        "schema": str(tmp_path / "facts.json"),
    }
    file = tmp_path / "list.toml"
    file.write_text("[[source]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items()))
    return SourceTable(name="Visits", by=ONE_PERSON, file=file, teaching=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environment({"DPSYNTH_HOME": str(tmp_path / "home")})


@pytest.fixture
def opened(asked: SourceTable, settings: Settings) -> OpenedSource:
    return inspect_source(asked, settings, progress=Told())


def test_opening_counts_every_row_and_holds_some_drawn_by_position(opened: OpenedSource) -> None:
    assert (opened.table.n, len(opened.sample)) == (N, SAMPLE)
    assert opened.declared == SCHEMA
    assert layout_of(opened.sample.attrs) == SCHEMA.file
    # Every sampled row is one of the table's, as it is stored, in the order of the table.
    known = {each: at for at, each in enumerate(rows()["income"])}
    places = [known[each] for each in opened.sample["income"]]
    assert places == sorted(set(places))
    assert (opened.sample["age"].to_numpy() == rows()["age"].to_numpy()[places]).all()
    # Uniform over the table: the mean place has a standard error of N / sqrt(12 * SAMPLE).
    assert abs(np.mean(places) - N / 2) < 6 * N / np.sqrt(12 * SAMPLE)


def test_two_people_who_open_it_see_other_rows(asked: SourceTable, opened: OpenedSource) -> None:
    again = inspect_source(asked, None, progress=Told())
    assert not again.sample.equals(opened.sample)
    assert again.names == ()


def test_the_account_is_the_one_that_an_upload_of_the_file_has(
    opened: OpenedSource, settings: Settings, tmp_path: Path
) -> None:
    content = (tmp_path / "visits.parquet").read_bytes()
    assert opened.names == file_fingerprints(content, settings.installation_key())


@pytest.mark.parametrize("key", ["private_pgm", "kd_tree", "perturbed_histogram"])
def test_a_run_by_name_gives_the_rows_that_a_run_in_memory_gives(opened: OpenedSource, key: str) -> None:
    config = RunConfig(mechanism=MECHANISMS[key].suggest(SCHEMA, N, 1, "1e-6"), epsilon="1", delta="1e-6", seed=7)
    here = execute(rows(), SCHEMA, config)
    there = execute(opened.table, SCHEMA, config)
    pd.testing.assert_frame_equal(here.tables[0], there.tables[0])


def test_a_changed_file_ends_a_run_before_anything_is_drawn(opened: OpenedSource, tmp_path: Path) -> None:
    class Drawing(Told):
        def drawn(self) -> None:
            pytest.fail("noise was drawn")

    rows(seed=1).to_parquet(tmp_path / "visits.parquet")
    config = RunConfig(mechanism=MECHANISMS["kd_tree"].suggest(SCHEMA, N, 1), epsilon="1")
    with pytest.raises(EngineError, match="was changed after you opened it"):
        execute(opened.table, SCHEMA, config, progress=Drawing())


def test_shares_are_those_of_every_row_and_the_rest_says_on_how_many_it_was_computed(opened: OpenedSource) -> None:
    synthetic = rows(seed=3).iloc[:2_000]
    source, told = SampledSource(table=opened.table, sample=opened.sample), Told()
    names = ["marginals", "pairs", "mann_whitney", "pmse"]

    def task(private: PrivateTable, *args: object, progress: RunProgress) -> object:
        return evaluate_in_parts(private, *args, columns=SCHEMA.names, progress=progress)  # type: ignore[arg-type]

    found = on_private_table(task, source, SCHEMA, synthetic, names, progress=told)
    exact = evaluate(PrivateTable(rows(), SCHEMA), synthetic, names)
    for key in ("marginals", "pairs"):
        assert [(item.name, item.value, item.low) for item in found[key].items] == [
            (item.name, item.value, item.low) for item in exact[key].items
        ]
        assert (
            found[key]
            .notes[0]
            .endswith(
                f"computed on all {N:,} rows, the rest computed on {SAMPLE} of {N:,} rows, drawn at random by position."
            )
        )
    for key in ("mann_whitney", "pmse"):
        assert found[key].notes[0] == f"Computed on {SAMPLE} of {N:,} rows, drawn at random by position."
    assert not any("computed on" in note.lower() for result in exact.results for note in result.notes)


def test_a_changed_file_ends_a_comparison_instead_of_becoming_a_result(opened: OpenedSource, tmp_path: Path) -> None:
    source = SampledSource(table=opened.table, sample=opened.sample)

    def task(private: PrivateTable, *, progress: RunProgress) -> object:
        rows(seed=1).to_parquet(tmp_path / "visits.parquet")
        return evaluate(private, rows(seed=3), ["marginals"], progress=progress)

    with pytest.raises(EngineError, match="was changed") as error:
        on_private_table(task, source, SCHEMA, progress=Told())
    assert str(tmp_path) not in str(error.value)


def test_a_sample_without_its_table_counts_what_is_at_hand(opened: OpenedSource) -> None:
    sample = RowSample(opened.sample, SCHEMA, of=N)
    assert (sample.n, sample.rows_in_all, sample.every_row) == (SAMPLE, N, sample)
    assert sample.select(["age"]).basis == f"computed on {SAMPLE} of {N:,} rows"
