"""Rows that Spark reads, here and behind Spark Connect: the same synthetic rows, and clear words where one is wrong.

``make test-spark`` installs what this needs and runs it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth_core as dp
from dpsynth_core.audit.reading import CELLS, COLUMNS, FILE_KINDS, schema_for
from dpsynth_core.cli import main
from dpsynth_core.inference import private_comparison
from dpsynth_core.inference.private_comparison import ComparisonRequest, compare_privately
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.fingerprint import CellHasher
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.ledger_charge import LedgerCharge
from dpsynth_core.ledger.multiset_fingerprint import VERSION, FingerprintTask
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.streamed_fingerprint import streamed_fingerprints
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.engines import spark_worker
from dpsynth_core.table.engines.spark_session import StageProgress
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.estimate import count_labels, count_range
from tests.tables.streamed import ROWS, SCHEMA, SlowSum, folder_of_files, in_memory, mixed_frame, parquet_file, quick
from tests.waiting.server import free_port
from tests.waiting.spark import QUICK_START, ConnectServer, connect_server, reported, standalone_cluster

pytest.importorskip("pyspark", reason="make test-spark installs it")
pytestmark = pytest.mark.slow  # a Java process has to start

LOCAL = "local[2]"
WAIT = 300.0
"""Seconds for what has to happen: machines that run tests may be busy."""


def on_spark(location: Path, schema: dp.Schema = SCHEMA, url: str = LOCAL, **options: Any) -> StreamedTable:
    return dp.open_table(location, schema, engine="spark", spark_url=url, wait=WAIT, **options)


def sampled(table: Any, key: str, seed: int) -> pd.DataFrame:
    mechanism, delta = quick(key)
    return dp.synthesize(table, mechanism, epsilon=2, delta=delta, seed=seed).sample()


@pytest.fixture(scope="module", autouse=True)
def _quick_java() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", QUICK_START)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_files(tmp_path_factory.mktemp("rows"), mixed_frame())


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> dp.PrivateTable:
    return in_memory(parquet_file(tmp_path_factory.mktemp("whole")))


@pytest.fixture(scope="module")
def tables(folder: Path) -> list[StreamedTable]:
    """Batches of 1, 7 and all rows; files in one task, and cut into several."""
    cuts = ((1, 2**20), (7, 1_500), (ROWS, 4_000))
    return [on_spark(folder, batch_rows=batch, partition_bytes=size) for batch, size in cuts]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with connect_server(tmp_path_factory.mktemp("server")) as running:
        yield running


# The same as in memory


@pytest.mark.parametrize("key", MECHANISMS)
def test_every_mechanism_gives_the_same_rows_as_in_memory(
    key: str, tables: list[StreamedTable], memory: dp.PrivateTable, folder: Path
) -> None:
    for seed, chosen in {3: (*tables, dp.open_table(folder, SCHEMA)), 14: tables[1:2]}.items():
        expected = sampled(memory, key, seed)
        for table in chosen:
            pd.testing.assert_frame_equal(sampled(table, key, seed), expected)


def test_a_private_test_of_two_groups_finds_the_same_as_in_memory(
    tables: list[StreamedTable], memory: dp.PrivateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_comparison, "MAX_TEST_ROWS", 20)
    request = ComparisonRequest(value="x", group="s", levels=("a", "c"), epsilon="2")
    expected = compare_privately(memory, request, seed=1)
    for table in tables:
        assert compare_privately(table, request, seed=1) == expected


def test_the_newest_stage_that_is_not_over_tells_how_far_a_pass_is() -> None:
    """Listing many files is a stage of its own, which is over before any row is read."""
    listing, reading = StageProgress(number=4, done=40, tasks=40), StageProgress(number=5, done=1, tasks=10)
    begun = StageProgress().followed_by([listing])
    assert begun.share == 0
    assert begun.followed_by([listing, reading]).share == 0.1
    assert reading.followed_by([listing]) == reading.followed_by([]) == reading


def test_a_sample_holds_the_same_rows_as_in_memory(tables: list[StreamedTable], memory: dp.PrivateTable) -> None:
    """By position: names of files and places in them decide, and not which worker is first."""
    for table in tables:
        assert table.n == ROWS
        for size in (1, 20, ROWS):
            first, second = (each.sample(size, SeededNoise(Budget.of(1), seed=8)) for each in (memory, table))
            pd.testing.assert_frame_equal(first.rows(), second.rows())


def test_what_private_estimates_count_is_the_same_as_in_memory(tables: list[StreamedTable]) -> None:
    cells, noise = mixed_frame(), SeededNoise(Budget.of(1), seed=1)
    for table in tables:
        assert list(table.range_counts("x").counts) == list(count_range(cells["x"]).counts)
        expected, counted = count_labels(cells["s"]), table.label_counts("s", noise)
        found, wanted = (dict(zip(c.labels or (), c.counts, strict=True)) for c in (counted, expected))
        assert found == wanted


def test_the_rows_really_were_shared_out(tables: list[StreamedTable]) -> None:
    parts = [table._frame(table._files.paths).rdd.getNumPartitions() for table in tables]  # type: ignore[attr-defined]
    assert parts[0] < parts[1], "otherwise nothing was merged"


def test_one_table_has_one_name_on_every_engine(tables: list[StreamedTable], folder: Path) -> None:
    names = set()
    for table in (*tables, dp.open_table(folder, SCHEMA)):
        task = FingerprintTask(columns=table.file_columns, hasher=CellHasher(bytes(32), VERSION))
        total = task.start()
        table.run(task, total)
        names.add(total.digest())
    assert len(names) == 1


TYPES: dict[str, Any] = {
    "decimal": pa.array(["1.50", None, "3.00"]).cast(pa.decimal128(20, 2)),
    "float32": pa.array([1.5, float("nan"), None], pa.float32()),
    "int8": pa.array([-3, None, 100], pa.int8()),
    "int64": pa.array([2**62, None, 7], pa.int64()),
    "date": pa.array([-719_162, None, 18_300], pa.date32()),
    "seconds": pa.array([1_577_836_800, None, -62_135_596_800], pa.timestamp("s")),
    "zoned": pa.array([1_577_836_800_000, None, 1_580_515_200_001], pa.timestamp("ms", "Asia/Tokyo")),
    "words": pa.array(["a", " a ", None]).dictionary_encode(),
    "truth": pa.array([True, None, False]),
    "Truth": pa.array([False, None, True]),
    "a `b`.c": pa.array([1, None, 7], pa.int32()),
}
KINDS: dict[str, dict[str, Any]] = {
    "number": {"kind": "continuous", "lower": -10, "upper": 1e19},
    "date": {"kind": "date", "lower": "0001-01-01", "upper": "2030-12-31"},
    "label": {"kind": "categorical", "categories": ["a", "1.5", "3", "7", "True", "2020-01-01", "-3"]},
}


def test_every_type_of_a_file_means_what_it_means_in_memory(tmp_path: Path) -> None:
    pq.write_table(pa.table(TYPES), tmp_path / "typed.parquet")
    for facts in KINDS.values():
        columns = [{"name": name, "public": True, "nullable": True, **facts} for name in TYPES]
        schema = dp.Schema.from_dict({"columns": columns, "file": {"format": "parquet"}})
        rows = on_spark(tmp_path / "typed.parquet", schema).take(None).rows()
        pd.testing.assert_frame_equal(rows, in_memory(tmp_path / "typed.parquet", schema).rows())


def test_one_strange_record_moves_no_other_row(tmp_path: Path) -> None:
    """Byte-level neighbours: whatever replaces a record, every other row keeps its position in every column."""
    kind, rows, middle = FILE_KINDS["Parquet"], 9, 4
    schema = schema_for(kind.layout)
    plain = [["2020-01-02", 3.5, "a", 7, True, *["x"] * len(COLUMNS)][: len(COLUMNS)] for _ in range(rows)]
    by_type: dict[str, list[bytes]] = defaultdict(list)
    for cell in ("a", *CELLS):
        content = kind.write([*plain[:middle], [cell] * len(COLUMNS), *plain[middle + 1 :]])
        by_type[str(pq.read_schema(pa.BufferReader(content)).remove_metadata())].append(content)
    before = None
    for number, contents in enumerate(by_type.values()):
        place = tmp_path / str(number)
        place.mkdir()
        for i, content in enumerate(contents):
            (place / f"{i:03}.parquet").write_bytes(content)
        taken = on_spark(place, schema).take(None)
        others = np.arange(taken.n) % rows != middle
        after = {name: taken.positions(name).values[others].reshape(len(contents), -1) for name in schema.names}
        before = before or {name: after[name][0] for name in schema.names}
        for name in schema.names:
            assert (after[name] == before[name]).all(), name


# What is refused


def test_what_is_wrong_is_said_when_the_table_is_opened(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(dp.EngineError, match="no file"):
        on_spark(tmp_path / "absent.parquet")
    with pytest.raises(dp.EngineError, match="s3a://"):
        dp.open_table("s3a://bucket/rows", SCHEMA, engine="spark", spark_url=LOCAL)
    with pytest.raises(dp.ParameterError, match="spark_url"):
        on_spark(folder, url="spark://somewhere:7077")
    with pytest.raises(dp.ParameterError, match="only with engine"):
        dp.open_table(folder, SCHEMA, spark_url=LOCAL)
    with pytest.raises(dp.EngineError, match="no rows"):
        on_spark(parquet_file(tmp_path, mixed_frame()[:0]))
    with pytest.raises(dp.SchemaError, match="'x'"):
        on_spark(parquet_file(tmp_path, mixed_frame().drop(columns="x")))
    pq.write_table(pa.table({"x": pa.array([1], pa.uint64())}), tmp_path / "unsigned.parquet")
    with pytest.raises(dp.IntakeError, match="unsigned"):
        on_spark(tmp_path / "unsigned.parquet", SCHEMA.select(["x"]))
    (tmp_path / "mixed").mkdir()
    mixed_frame().to_parquet(tmp_path / "mixed" / "a.parquet")
    mixed_frame().drop(columns="x").to_parquet(tmp_path / "mixed" / "b.parquet")
    with pytest.raises(dp.EngineError, match="same columns"):
        on_spark(tmp_path / "mixed")
    (tmp_path / "mixed" / "b.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(dp.EngineError, match="damaged"):
        on_spark(tmp_path / "mixed")


@pytest.mark.parametrize("where", ["here", "connect"])
def test_a_file_that_changes_between_passes_is_refused(where: str, tmp_path: Path, request: Any) -> None:
    path = parquet_file(tmp_path)
    table = on_spark(path, url=LOCAL if where == "here" else request.getfixturevalue("server").url)
    table.counts(["s"])
    mixed_frame(seed=6).to_parquet(path)
    with pytest.raises(dp.EngineError, match="changed"):
        table.counts(["s"])
    path.unlink()
    with pytest.raises(dp.EngineError, match=r"no file"):
        table.counts(["s"])


def test_nothing_is_open_to_others_and_what_is_written_is_encrypted(tables: list[StreamedTable]) -> None:
    context = tables[0]._spark.session.sparkContext  # type: ignore[attr-defined]
    settings = dict(context.getConf().getAll())
    assert settings["spark.io.encryption.enabled"] == "true"
    assert settings["spark.ui.enabled"] == "false"
    assert context.uiWebUrl is None
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"


def test_other_code_on_a_worker_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth_core.table.engines.spark_function.code_digest", lambda: "another")
    with pytest.raises(dp.EngineError, match="another version"):
        on_spark(folder)


def test_partitions_know_which_rows_they_hold() -> None:
    """Parts of files in any order, as Spark may put them together."""
    work = spark_worker.PartitionWork(
        task=None,
        names=("x",),
        schema=SCHEMA,
        layout=SCHEMA.file,
        offsets={11: 0, 22: 100},  # type: ignore[arg-type]
    )
    files, index = [22, 22, 11, 11, 11, 22], [4, 5, 0, 1, 7, 6]
    batch = pa.record_batch({"x": pa.array(range(6)), "file": pa.array(files), "row": pa.array(index)})
    pieces = [(first, part.column(0).to_pylist()) for first, part in work._consecutive(batch)]
    assert pieces == [(104, [0, 1]), (0, [2, 3]), (7, [4]), (106, [5])]


# Watching and stopping


@pytest.mark.parametrize("where", ["here", "connect"])
def test_whoever_watches_is_told_and_can_stop(where: str, folder: Path, request: Any) -> None:
    url = LOCAL if where == "here" else request.getfixturevalue("server").url
    table = on_spark(folder, url=url, batch_rows=5, partition_bytes=1_500)
    told: list[int] = []
    assert table.watched(lambda read, rows, rate: told.append(read)).sums(SlowSum(0.3)).tolist() == [ROWS]
    assert told
    assert all(0 <= first <= second <= ROWS for first, second in pairwise(told))

    def stop(read: int, rows: int, rate: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.watched(stop).sums(SlowSum(600))
    assert table.counts().n == ROWS, "the table can be asked again"

    outcome: list[Exception] = []

    def long_pass() -> None:
        try:
            table.sums(SlowSum(600))
        except dp.EngineError as error:
            outcome.append(error)

    thread = threading.Thread(target=long_pass, daemon=True)
    thread.start()
    threading.Timer(1.5, table.cancel).start()
    thread.join(60)
    assert "cancelled" in str(outcome[0])
    assert on_spark(folder, url=url).counts().n == ROWS, "no worker is held up"


# Spark Connect


def test_a_cluster_behind_connect_gives_the_same_rows(
    server: ConnectServer, folder: Path, memory: dp.PrivateTable
) -> None:
    table = on_spark(folder, url=server.url, batch_rows=7, partition_bytes=1_500)
    for key in ("private_pgm", "kd_tree", "balog_points"):
        pd.testing.assert_frame_equal(sampled(table, key, 3), sampled(memory, key, 3))
    pd.testing.assert_frame_equal(table.take(None).rows(), memory.rows())
    with pytest.raises(dp.EngineError, match="no files"):
        on_spark(folder / "absent", url=server.url)


def test_a_cluster_of_two_executors_gives_the_same_rows(tmp_path: Path, folder: Path, memory: dp.PrivateTable) -> None:
    """A master, two workers with an executor each, and a Connect server: processes of their own on this machine."""
    ui = free_port()
    settings = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
        "spark.locality.wait": "0s",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
    }
    with (
        standalone_cluster(tmp_path, workers=2) as master,
        connect_server(tmp_path, settings=settings, master=master) as cluster,
    ):
        table = on_spark(folder, url=cluster.url, batch_rows=7, partition_bytes=1_500)
        for key, seed in (("private_pgm", 3), ("kd_tree", 5)):
            pd.testing.assert_frame_equal(sampled(table, key, seed), sampled(memory, key, seed))
        pd.testing.assert_frame_equal(table.take(None).rows(), memory.rows())
        table.close()
        executors = [each for each in reported(ui, "executors") if each["id"] != "driver"]
        assert [each["completedTasks"] > 0 for each in executors] == [True, True], "both had rows to read"


def test_a_cluster_that_cannot_be_reached_is_not_waited_for(folder: Path) -> None:
    with pytest.raises(dp.EngineError, match=r"sc://127.0.0.1:9 cannot be reached"):
        dp.open_table(folder, SCHEMA, engine="spark", spark_url="sc://127.0.0.1:9/;token=secret", wait=5)


def test_whoever_waits_to_end_a_session_gives_up_where_the_cluster_is_gone_as_well() -> None:
    watch = "from dpsynth_core.table.engines import spark_watch as w; w.GIVE_UP_SECONDS = 1; w.main()"
    address = f"sc://127.0.0.1:9/;session_id={uuid.uuid4()}\n"
    done = subprocess.run([sys.executable, "-c", watch], input=address.encode(), timeout=WAIT, check=False)
    assert done.returncode == 1


# The command, and what is charged

COMMAND = ["synthesize", "rows.parquet", "--schema", "schema.json", "--epsilon", "1", "--engine", "spark"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    for name in ("DPSYNTH_LEDGER_URL", "DPSYNTH_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    parquet_file(tmp_path)
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    return tmp_path


def names_of_file() -> tuple[str, ...]:
    return file_fingerprints(Path("rows.parquet").read_bytes(), Settings.from_environment().installation_key())


def states(names: tuple[str, ...]) -> list[str]:
    """Of all charges of an account."""
    settings = Settings.from_environment()
    ledger = Ledger(settings.ledger_url, key=settings.installation_key())
    account = ledger.account(ledger.known_name(names))
    return [] if account is None else [entry.state for entry in account.entries]


def command(out: str, url: str, *more: str) -> int:
    place = str(Path("rows.parquet").absolute())
    words = [place if word == "rows.parquet" else word for word in COMMAND]
    return main([*words, "--spark-url", url, "--out", out, *more])


def test_memory_and_spark_share_one_account(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND[:-2], "--mechanism", "kd_tree", "--budget", "2", "--out", "a.zip"]) == 0
    assert command("b.zip", LOCAL, "--mechanism", "kd_tree") == 0
    assert "epsilon 0 of 2" in capsys.readouterr().out
    assert states(names_of_file()) == ["committed", "committed"]


def test_workers_without_the_package_cost_nothing(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect_server(tmp_path, package=False, settings={"spark.io.encryption.enabled": "false"}) as bare:
        assert command("a.zip", bare.url) == 2
        assert "spark.io.encryption.enabled" in capsys.readouterr().err
        with pytest.raises(dp.EngineError, match="does not have the package"):
            on_spark(Path("rows.parquet").absolute(), url=bare.url, unencrypted=True)
    assert command("a.zip", bare.url) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert states(names_of_file()) == []
    assert not Path("a.zip").exists()


def test_what_was_drawn_before_a_cluster_died_stays_charged(
    desk: Path, server: ConnectServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last in this file: it ends the server."""
    parquet_file(desk, mixed_frame(5_000))  # enough for a second pass after the first draws
    table = on_spark(Path("rows.parquet").absolute(), url=server.url)
    names = streamed_fingerprints(table, Settings.from_environment().installation_key())
    drawn = LedgerCharge.drawn

    def dying(self: LedgerCharge) -> None:
        drawn(self)
        server.kill()

    monkeypatch.setattr(LedgerCharge, "drawn", dying)
    monkeypatch.setattr("dpsynth_core.table.engines.spark_session.RETRY_SECONDS", 4)
    assert command("a.zip", server.url, "--mechanism", "private_pgm") == 2
    told = capsys.readouterr().err
    assert "Spark stopped answering" in told
    assert "the budget was charged" in told
    assert states(names) == ["committed"]
    assert not Path("a.zip").exists()
