"""Synthetic rows in batches: as many as asked for, the law of a sample, and files that hold what was drawn."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dpsynth_core as dp
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.review import Publication
from dpsynth_core.review.bundle import release_bundle, write_long_bundle
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.runs.long_run import execute_long
from tests.tables.streamed import ROWS, SCHEMA, mixed_frame, quick

SLOW = {"pmse", "dp_gan", "dp_merf"}
EVERY = [pytest.param(key, marks=pytest.mark.slow) if key in SLOW else key for key in MECHANISMS]


def release_of(key: str, seed: int = 2) -> dp.Release:
    mechanism, delta = quick(key)
    table = dp.PrivateTable(mixed_frame(), SCHEMA)
    return dp.synthesize(table, mechanism, epsilon=2, delta=delta, seed=seed)


@pytest.mark.parametrize("key", EVERY)
def test_batches_have_the_rows_that_were_asked_for(key: str) -> None:
    whole, again = release_of(key).sample(), list(release_of(key).sample_batches(size=10**6))
    assert len(again) == 1
    pd.testing.assert_frame_equal(again[0], whole)
    batches = list(release_of(key).sample_batches(10, size=4))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert all((batch.dtypes == whole.dtypes).all() for batch in batches)
    repeated = list(release_of(key).sample_batches(10, size=4))
    for first, second in zip(batches, repeated, strict=True):
        pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize("key", ["private_pgm", "kd_tree", "noisy_bayes"])
def test_all_batches_together_have_the_shares_of_a_sample(key: str) -> None:
    """Within six standard deviations of rows that are drawn one by one, more than which no sampler here varies."""
    release, rows = release_of(key), 40_000
    whole = release.sample(rows)["s"].fillna("missing").value_counts(normalize=True)
    parts = pd.concat(release.sample_batches(rows, size=900))["s"].fillna("missing").value_counts(normalize=True)
    apart = whole.subtract(parts, fill_value=0).abs()
    assert (apart <= 6 * np.sqrt(2 * 0.25 / rows)).all()


def test_numbers_that_make_no_sense_are_refused() -> None:
    release = release_of("kd_tree")
    for arguments in ({"n": 0}, {"size": 0}):
        with pytest.raises(dp.ParameterError, match="at least 1"):
            release.sample_batches(**arguments)
    with pytest.raises(dp.ParameterError, match=r"\.parquet or \.csv"):
        dp.write_rows(release.sample_batches(5), "rows.xlsx")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_holds_what_was_drawn(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{suffix}"
    assert dp.write_rows(release_of("private_pgm").sample_batches(25, size=7), path) == 25
    expected = pd.concat(release_of("private_pgm").sample_batches(25, size=7), ignore_index=True)
    if suffix == "parquet":
        assert pq.ParquetFile(path).num_row_groups == 4
        pd.testing.assert_frame_equal(pd.read_parquet(path), expected)
    else:
        from dpsynth_core.review.export import safe_csv

        assert path.read_bytes() == safe_csv(expected)
    with pytest.raises(FileExistsError):
        dp.write_rows(release_of("private_pgm").sample_batches(25), path)


def config_of(rows: int) -> RunConfig:
    return RunConfig(mechanism=MECHANISMS["kd_tree"](rows=rows), epsilon="1")


def test_a_long_bundle_says_and_holds_what_a_short_one_does() -> None:
    publication = Publication(original_rows=ROWS)
    run = execute_long(mixed_frame(), SCHEMA, config_of(30), size=8)
    file = io.BytesIO()
    write_long_bundle(run, publication, file)
    short = release_bundle(execute(mixed_frame(), SCHEMA, config_of(30)), publication)
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert set(files) == set(short.files) - {"synthetic.csv"}
    assert files["schema.json"] == short.files["schema.json"]
    assert files["configuration.json"] == short.files["configuration.json"]
    assert "Rows: 30" in files["data_card.md"].decode()
    assert "csv" not in files["data_card.md"].decode()
    rows = pd.read_parquet(io.BytesIO(files["synthetic.parquet"]))
    assert len(rows) == 30
    assert (rows.dtypes == pd.read_parquet(io.BytesIO(short.files["synthetic.parquet"])).dtypes).all()
    listed = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    assert listed == {n: hashlib.sha256(c).hexdigest() for n, c in files.items() if n != "SHA256SUMS"}


def test_what_may_not_be_published_leaves_no_rows() -> None:
    seeded = RunConfig(mechanism=MECHANISMS["kd_tree"](rows=30), epsilon="1", seed=1)
    file = io.BytesIO()
    with pytest.raises(dp.DPSynthError, match="seed"):
        write_long_bundle(execute_long(mixed_frame(), SCHEMA, seeded, size=8), Publication(), file)
    assert not file.getvalue()
    with pytest.raises(dp.ParameterError, match="copies"):
        execute_long(mixed_frame(), SCHEMA, RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon="1", copies=2))
