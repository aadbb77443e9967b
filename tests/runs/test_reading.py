"""Files are read in a process of their own: the same tables, and nothing that goes wrong reaches the server."""

from __future__ import annotations

import io
import os
import resource
import signal
import threading
from multiprocessing import forkserver

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth_core as dp
from dpsynth_core.errors import IntakeError
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.runs.reading import ReadingLimits, file_names, read_file, run_apart
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.suggest import suggest
from tests.runs import reading_tasks
from tests.tables.workbooks import sheet_xml, workbook

KEY = bytes(32)
MIB = 1024 * 1024
TABLE = pd.DataFrame(
    {
        "age": [31, 45, None, 18],
        "dose": [0.5, 27.5, -1.0, 2.0],
        "name": ["ann", "böb", None, "c,d"],
        "day": pd.to_datetime(["2024-01-02", "2024-02-03", None, "1999-12-31"]),
        "smokes": [True, False, True, True],
    }
)


def as_csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()


def as_parquet(table: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    table.to_parquet(out)
    return out.getvalue()


FILES = {
    "csv": as_csv(TABLE),
    "parquet": as_parquet(TABLE),
    "excel": workbook(sheet_xml([["a", "b", "c"], ["x", 1, True], [None, 2.5, "y"]])),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_as_it_is_in_this_process(kind: str) -> None:
    read, here = read_file(FILES[kind], key=KEY), dp.read_table(FILES[kind])
    pd.testing.assert_frame_equal(read.table, here)
    assert read.table.attrs == here.attrs
    assert read.suggestion == suggest(here)
    assert read.names == file_names(FILES[kind], KEY) == file_fingerprints(FILES[kind], KEY)
    assert read_file(FILES[kind]).names == ()


def test_the_table_that_comes_back_can_be_changed() -> None:
    table = read_file(as_parquet(TABLE)).table
    table.loc[0, "dose"] = 9.0
    assert table["dose"].iloc[0] == 9.0


def test_a_declared_layout_is_obeyed() -> None:
    layout = FileLayout(delimiter=";", decimal=",")
    assert list(read_file(b"a;b\n1;2,5\n", layout).table.columns) == ["a", "b"]


@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG\r\n", b"a,b\n1,2,3\n", b'a\n"1\n', b"PK\x03\x04nothing", b"PAR1\x15PAR1"]
)
def test_a_file_that_is_no_table_is_refused_in_the_same_words(content: bytes) -> None:
    with pytest.raises(IntakeError) as here:
        dp.read_table(content)
    with pytest.raises(IntakeError) as apart:
        read_file(content)
    assert str(apart.value) == str(here.value)


# What goes wrong


def test_every_file_has_a_process_of_its_own() -> None:
    ids = {run_apart(reading_tasks.process_id) for _ in range(3)}
    assert len(ids) == 3
    assert os.getpid() not in ids


def test_a_crash_is_an_error_like_any_other() -> None:
    with pytest.raises(IntakeError, match="or it is damaged"):
        run_apart(reading_tasks.crash)


def test_a_defect_says_its_type_and_no_cell() -> None:
    with pytest.raises(IntakeError, match=r"could not be read \(KeyError\)") as defect:
        run_apart(reading_tasks.fail)
    assert reading_tasks.CELL not in str(defect.value)
    assert defect.value.__cause__ is None


@pytest.mark.parametrize("work", [reading_tasks.hang, reading_tasks.compute])
def test_what_takes_too_long_is_stopped(work: object) -> None:
    with pytest.raises(IntakeError, match=r"stopped after 1 seconds of computing or 1\.5 seconds in all"):
        run_apart(work, limits=ReadingLimits(cpu_seconds=1, seconds=1.5))  # type: ignore[arg-type]


def test_memory_is_limited_and_the_server_takes_none() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limits = ReadingLimits(memory_bytes=200 * MIB)
    assert run_apart(reading_tasks.fill, 50 * MIB, limits=limits) == 50 * MIB
    with pytest.raises(IntakeError, match=r"more than 0\.195312 GiB of memory"):
        run_apart(reading_tasks.fill, 250 * MIB, limits=limits)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024


def test_a_table_too_large_for_the_server_stays_outside() -> None:
    with pytest.raises(IntakeError, match="This table takes more than"):
        run_apart(reading_tasks.answer, 11 * MIB, limits=ReadingLimits(table_bytes=10 * MIB))


@pytest.mark.parametrize("kind", ["numbers", "texts", "parquet"])
def test_a_small_file_that_asks_for_much_memory_is_refused(kind: str) -> None:
    if kind == "parquet":
        column = pa.array(np.zeros(3_000_000, dtype=np.int64))
        out = io.BytesIO()
        pq.write_table(pa.table({f"c{i}": column for i in range(10)}), out, compression="zstd")
        content = out.getvalue()
    else:
        cell = "<c><v>1</v></c>" if kind == "numbers" else '<c t="str"><v>abcdefgh</v></c>'
        content = workbook(f"<row>{cell * 60}</row>" * 10_000)
    assert len(content) < MIB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(IntakeError, match=r"GiB of memory"):
        read_file(content, limits=ReadingLimits(memory_bytes=20 * MIB))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024


def test_lack_of_memory_never_changes_the_name_of_an_account() -> None:
    content = workbook(f"<row>{'<c><v>1</v></c>' * 60}</row>" * 5_000)
    with pytest.raises(IntakeError):
        file_names(content, KEY, limits=ReadingLimits(memory_bytes=4 * MIB))


def test_reading_goes_on_when_the_prepared_process_is_killed() -> None:
    assert run_apart(reading_tasks.process_id)
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)  # type: ignore[attr-defined]
    content = read_file(b"a,b\n1,2\n").table
    assert content.shape == (1, 2)


def test_many_visitors_take_turns() -> None:
    shapes: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda: shapes.append(read_file(FILES["csv"]).table.shape), daemon=True)
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert shapes == [TABLE.shape] * 6
