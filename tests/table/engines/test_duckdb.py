"""Rows that stay in files: the same integers, the same synthetic rows, and clear words where something is wrong."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth_core as dp
from dpsynth_core.audit.reading import CELLS, COLUMNS, FILE_KINDS, RAW_BYTES, schema_for
from dpsynth_core.inference import private_comparison
from dpsynth_core.inference.private_comparison import ComparisonRequest, compare_privately
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.engines.duckdb_table import DuckDBTable
from dpsynth_core.table.engines.row_tasks import ReadTask
from dpsynth_core.table.engines.streamed_table import StreamedTable
from tests.tables.streamed import ROWS, SCHEMA, TEXT_SCHEMA, in_memory, mixed_frame, parquet_file, quick

MARK = "Zebedee"


def sampled(table: Any, key: str, seed: int) -> pd.DataFrame:
    mechanism, delta = quick(key)
    return dp.synthesize(table, mechanism, epsilon=2, delta=delta, seed=seed).sample()


SLOW = {"pmse", "dp_gan", "dp_merf"}
EVERY = [pytest.param(key, marks=pytest.mark.slow) if key in SLOW else key for key in MECHANISMS]


@pytest.mark.parametrize("key", EVERY)
def test_every_mechanism_gives_the_same_rows_as_in_memory(key: str, tmp_path: Path) -> None:
    path = parquet_file(tmp_path)
    memory = in_memory(path)
    # All three cuts for one seed, and another seed for each of them.
    seeds = {1: (3, 11), 7: (3, 12), ROWS: (3, 13)}
    expected = {seed: sampled(memory, key, seed) for seed in (3, 11, 12, 13)}
    for batch_rows, chosen in seeds.items():
        table = dp.open_table(path, SCHEMA, batch_rows=batch_rows)
        for seed in chosen:
            pd.testing.assert_frame_equal(sampled(table, key, seed), expected[seed])


@pytest.mark.parametrize("max_rows", [20, ROWS])
def test_a_private_test_of_two_groups_finds_the_same_as_in_memory(
    max_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On all rows, and on a sample, which is drawn by position."""
    monkeypatch.setattr(private_comparison, "MAX_TEST_ROWS", max_rows)
    path = parquet_file(tmp_path)
    questions = (("k", "b", None), ("x", "s", ("a", "c")), ("d", "s", ("b", "c")))
    for seed, (value, group, levels) in enumerate(questions):
        request = ComparisonRequest(value=value, group=group, levels=levels, epsilon="2")
        expected = compare_privately(in_memory(path), request, seed=seed)
        assert (expected.n, expected.rows_in_all) == (max_rows, ROWS)
        for batch_rows in (1, 7, ROWS):
            assert compare_privately(dp.open_table(path, SCHEMA, batch_rows=batch_rows), request, seed=seed) == expected


@pytest.mark.parametrize("batch_rows", [1, 7, ROWS])
def test_a_sample_holds_the_same_rows_as_in_memory(batch_rows: int, tmp_path: Path) -> None:
    """What the mechanisms that need rows at hand are given."""
    path = parquet_file(tmp_path)
    tables = in_memory(path), dp.open_table(path, SCHEMA, batch_rows=batch_rows)
    for size in (1, 20, ROWS, 10 * ROWS):
        first, second = (table.sample(size, SeededNoise(Budget.of(1), seed=8)) for table in tables)
        assert first.n == min(size, ROWS)
        pd.testing.assert_frame_equal(first.rows(), second.rows())


@pytest.mark.parametrize("batch_rows", [1, 7, ROWS])
def test_private_estimates_find_the_same_as_in_memory(batch_rows: int, tmp_path: Path) -> None:
    path = parquet_file(tmp_path, mixed_frame(2_000))
    table, frame = dp.open_table(path, SCHEMA, batch_rows=batch_rows), dp.read_table(path, SCHEMA)
    budget = Budget.of(2, "1e-6")
    for name in ("x", "k"):
        ranges = [
            dp.estimate_bounds(values, epsilon=2, noise=SeededNoise(budget, seed=1))
            for values in (frame[name], table.range_counts(name))
        ]
        assert ranges[0] == ranges[1]
    categories = [
        dp.discover_categories(values, epsilon=2, delta="1e-6", noise=SeededNoise(budget, seed=1))
        for values in (frame["s"], table.label_counts("s", SeededNoise(budget, seed=2)))
    ]
    assert categories[0] == categories[1]
    assert categories[0].categories == ("a", "b", "c", "undeclared")


@pytest.mark.parametrize("key", ["private_pgm", "kd_tree"])
def test_text_files_and_databases_give_the_same_rows_too(key: str, tmp_path: Path) -> None:
    frame = mixed_frame()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    expected = sampled(in_memory(tmp_path / "rows.csv", TEXT_SCHEMA), key, 4)
    pd.testing.assert_frame_equal(sampled(dp.open_table(tmp_path / "rows.csv", TEXT_SCHEMA), key, 4), expected)
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.from_df(frame).create("people")
    stored = dp.open_table(tmp_path / "rows.duckdb", SCHEMA, table="people")
    pd.testing.assert_frame_equal(sampled(stored, key, 4), expected)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    frame = mixed_frame()
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    frame[:10].to_parquet(tmp_path / "parts" / "a.parquet")
    frame[10:30].to_parquet(tmp_path / "parts" / "b.parquet")
    frame[30:].to_parquet(tmp_path / "parts" / "deep" / "c.parquet")
    table = dp.open_table(tmp_path / "parts", SCHEMA, batch_rows=4)
    assert table.n == ROWS
    pd.testing.assert_frame_equal(table.take(None).rows(), in_memory(parquet_file(tmp_path, frame)).rows())


TYPES: dict[str, Any] = {
    "uint64": pa.array([2**63 + 5, None, 7], pa.uint64()),
    "decimal": pa.array(["1.50", None, "3.00"]).cast(pa.decimal128(20, 2)),
    "float32": pa.array([1.5, float("nan"), None], pa.float32()),
    "int8": pa.array([-3, None, 100], pa.int8()),
    "date": pa.array([18_262, None, 18_300], pa.date32()),
    "seconds": pa.array([1_577_836_800, None, 1_580_515_200], pa.timestamp("s")),
    "nanoseconds": pa.array([1_577_836_800_000_000_001, None, 5], pa.timestamp("ns")),
    "zoned": pa.array([1_577_836_800_000, None, 1_580_515_200_000], pa.timestamp("ms", "Asia/Tokyo")),
    "words": pa.array(["a", " a ", None]).dictionary_encode(),
    "truth": pa.array([True, None, False]),
}


@pytest.mark.parametrize("stored", TYPES)
@pytest.mark.parametrize("kind", ["number", "date", "label"])
def test_every_type_of_a_file_means_what_it_means_in_memory(stored: str, kind: str, tmp_path: Path) -> None:
    facts: dict[str, Any] = {
        "number": {"kind": "continuous", "lower": -10, "upper": 1e19},
        "date": {"kind": "date", "lower": "1970-01-01", "upper": "2030-12-31"},
        "label": {"kind": "categorical", "categories": ["a", "1.5", "3", "7", "True", "2020-01-01", "-3"]},
    }[kind]
    column = {"name": "v", "public": True, "nullable": True, **facts}
    schema = dp.Schema.from_dict({"columns": [column], "file": {"format": "parquet"}})
    pq.write_table(pa.table({"v": TYPES[stored]}), tmp_path / "typed.parquet")
    rows = dp.open_table(tmp_path / "typed.parquet", schema).take(None).rows()
    pd.testing.assert_frame_equal(rows, in_memory(tmp_path / "typed.parquet", schema).rows())


@pytest.mark.parametrize("name", ["Parquet", "comma-separated", "decimal comma"])
def test_one_strange_record_moves_no_other_row(name: str, tmp_path: Path) -> None:
    """Byte-level neighbours: whatever replaces a record, every other row keeps its position in every column."""
    kind = FILE_KINDS[name]
    schema, rows, middle = schema_for(kind.layout), 24, 11
    plain = [["2020-01-02", 3.5, "a", 7, True][: len(COLUMNS)] for _ in range(rows)]
    plain = [[*record, *["x"] * (len(COLUMNS) - len(record))] for record in plain]

    def positions(records: list[Any]) -> dict[str, Any]:
        path = tmp_path / "file"
        path.write_bytes(kind.write(records))
        table = dp.open_table(path, schema, **({"batch_rows": 5} if name == "Parquet" else {}))
        rows = table.take(None)
        assert table.n == len(records)
        return {column: rows.positions(column) for column in schema.names}

    before, others = positions(plain), np.arange(rows) != middle
    for cell in (*CELLS, *(RAW_BYTES if kind.layout.format == "text" else ())):
        after = positions([*plain[:middle], [cell] * len(COLUMNS), *plain[middle + 1 :]])
        for column in schema.names:
            assert np.array_equal(before[column].values[others], after[column].values[others]), (cell, column)


# What is refused


def test_what_is_missing_is_said_before_anything_is_read(tmp_path: Path) -> None:
    path = parquet_file(tmp_path)
    with pytest.raises(dp.EngineError, match="no file"):
        dp.open_table(tmp_path / "absent.parquet", SCHEMA)
    with pytest.raises(dp.EngineError, match="s3://"):
        dp.open_table("s3://bucket/rows.parquet", SCHEMA)
    with pytest.raises(dp.ParameterError, match="engine"):
        dp.open_table(path, SCHEMA, engine="ibis")  # type: ignore[arg-type]
    with pytest.raises(dp.SchemaError, match="'x'"):
        dp.open_table(parquet_file(tmp_path, mixed_frame().drop(columns="x")), SCHEMA)
    with pytest.raises(dp.EngineError, match="declared layout"):
        dp.open_table(_text(tmp_path, b"x\n1\n"), SCHEMA)
    with pytest.raises(dp.EngineError, match="no rows"):
        dp.open_table(parquet_file(tmp_path, mixed_frame()[:0]), SCHEMA)
    with pytest.raises(dp.EngineError, match="rename"):
        dp.open_table(shutil.copy(parquet_file(tmp_path), tmp_path / "rows*.parquet"), SCHEMA)


def _text(folder: Path, content: bytes) -> Path:
    path = folder / "rows.csv"
    path.write_bytes(content)
    return path


def test_a_damaged_file_is_refused_without_a_cell_of_it(tmp_path: Path) -> None:
    frame = mixed_frame().assign(s=MARK)
    path = parquet_file(tmp_path, frame)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole.replace(MARK.encode(), b"\xff" * len(MARK))):
        path.write_bytes(content)
        with pytest.raises(dp.DPSynthError) as caught:
            dp.open_table(path, SCHEMA).take(None)
        assert MARK not in str(caught.value)


@pytest.mark.parametrize("change", ["append", "replace", "delete", "touch"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_changes_between_passes_is_refused(change: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        mixed_frame().to_parquet(path)
    else:
        mixed_frame().to_csv(path, index=False)
    table = dp.open_table(path, SCHEMA if kind == "parquet" else TEXT_SCHEMA)
    table.counts(["s"])
    if change == "append":
        path.write_bytes(path.read_bytes() + b"\n")
    elif change == "replace":
        other = path.with_name("other")
        shutil.copy(path, other)
        other.replace(path)
    elif change == "delete":
        path.unlink()
    else:
        os.utime(path, ns=(1, 1))
    with pytest.raises(dp.EngineError, match=r"changed|no file"):
        table.counts(["s"])


def test_a_change_during_a_pass_is_noticed_at_its_end(tmp_path: Path) -> None:
    path = parquet_file(tmp_path)
    table = dp.open_table(path, SCHEMA, batch_rows=5)

    class Meddling:
        def add(self, batch: object) -> None:
            os.utime(path, ns=(7, 7))

    with pytest.raises(dp.EngineError, match="changed"):
        table.run(ReadTask(columns=("x",)), Meddling())  # type: ignore[arg-type]


def test_a_layout_that_nobody_declared_makes_the_guarantee_void(tmp_path: Path) -> None:
    undeclared = dp.Schema.from_dict({"columns": SCHEMA.to_dict()["columns"]})
    release = dp.synthesize(dp.open_table(parquet_file(tmp_path), undeclared), MECHANISMS["kd_tree"](), epsilon=1)
    assert release.guarantee.status == "void"
    declared = dp.synthesize(dp.open_table(parquet_file(tmp_path), SCHEMA), MECHANISMS["kd_tree"](), epsilon=1)
    assert declared.guarantee.status == "proven"


def test_nothing_is_installed_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    table = dp.open_table(parquet_file(tmp_path / "data"), SCHEMA)
    assert isinstance(table, DuckDBTable)
    table.counts()
    ask = table._connection.cursor().sql("SELECT name, value FROM duckdb_settings()").fetchall()
    settings = {name: str(value).lower() for name, value in ask}
    assert settings["autoinstall_known_extensions"] == settings["autoload_known_extensions"] == "false"
    assert settings["temp_directory"] in ("", "none")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_whoever_watches_is_told_and_can_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth_core.table.engines.pass_control.REPORT_SECONDS", 0.0)
    table: StreamedTable = dp.open_table(parquet_file(tmp_path), SCHEMA, batch_rows=10)
    told: list[tuple[int, int]] = []
    table.watched(lambda read, rows, _: told.append((read, rows))).counts()
    assert [read for read, _ in told] == [10, 20, 30, 40, 48]
    assert {rows for _, rows in told} == {ROWS}

    def stop(read: int, rows: int, rate: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.watched(stop).counts()
    assert table.counts().n == ROWS, "the table can be asked again"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_pass_can_be_cancelled_from_another_thread(kind: str, tmp_path: Path) -> None:
    frame = mixed_frame(rows=4_000)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    parquet_file(tmp_path, frame)
    table = dp.open_table(tmp_path / f"rows.{kind}", SCHEMA if kind == "parquet" else TEXT_SCHEMA)
    reached = threading.Event()

    class Waiting:
        columns = ("x",)

        def total(self, rows: Any) -> Any:
            reached.set()
            assert cancelled.wait(60)
            return np.zeros(1, dtype=np.int64)

    cancelled = threading.Event()

    def cancel() -> None:
        assert reached.wait(60)
        table.cancel()
        cancelled.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(dp.EngineError, match="cancelled"):
        table.select(["x"]).sums(Waiting())
    thread.join()
    with pytest.raises(dp.EngineError, match="cancelled"):
        table.counts()


def test_the_name_of_a_folder_is_no_cell(tmp_path: Path) -> None:
    """Tools write folders such as "k=7", whose name would stand in for a column."""
    (tmp_path / "k=7").mkdir()
    path = parquet_file(tmp_path / "k=7")
    for location in (path, tmp_path / "k=7"):
        pd.testing.assert_frame_equal(dp.open_table(location, SCHEMA).take(None).rows(), in_memory(path).rows())


def test_cells_never_show_in_how_a_table_is_written(tmp_path: Path) -> None:
    assert repr(dp.open_table(parquet_file(tmp_path), SCHEMA)).startswith("DuckDBTable(48 rows, columns 'x'")
