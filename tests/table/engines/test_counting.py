"""Counts that are merged from batches, and text that is read in pieces, agree with the plain ways."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.table.counts import count_cells
from dpsynth_core.table.engines import row_tasks
from dpsynth_core.table.engines.row_tasks import CellCounter
from dpsynth_core.table.engines.text_table import TextReader
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.read import read_cells

SHAPES: list[tuple[int, ...]] = [
    *((3,), (4, 5), (4, 5, 6), (2, 3, 4, 5)),
    *((2**22, 3), (2**40, 2**20), (2**40, 2**40, 7), (2**30, 2**30, 2**30, 5)),
]


@pytest.mark.parametrize("shape", SHAPES)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_any_cut_into_batches_gives_the_same_counts(shape: tuple[int, ...], seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, 60) for size in shape]
    for column in codes:
        column[20:40] = column[:20]
    expected = count_cells(codes, shape)
    parts = [CellCounter(shape), CellCounter(shape)]
    edges = sorted({0, *cuts, 60})
    for i, (begin, end) in enumerate(pairwise(edges)):
        cut = [column[begin:end] for column in codes]
        if parts[i % 2].is_dense and i % 3:
            parts[i % 2].add_narrow([column.astype(np.int32) for column in cut])
        else:
            parts[i % 2].add(cut)
    parts[0].absorb(*parts[1].pack())  # type: ignore[arg-type]
    cells, counts = parts[0].cells()
    assert cells.tolist() == expected[0].tolist()
    assert counts.tolist() == expected[1].tolist()


def test_keys_that_wait_are_merged_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_tasks, "MIN_MERGED", 10)
    counter, rng = CellCounter((2**50,)), np.random.default_rng(2)
    column = rng.integers(0, 400, 3_000)
    for start in range(0, 3_000, 7):
        counter.add([column[start : start + 7]])
        assert sum(len(counts) for _, counts in counter._waiting) <= 410
    cells, counts = counter.cells()
    distinct, expected = np.unique(column, return_counts=True)
    assert cells[:, 0].tolist() == distinct.tolist()
    assert counts.tolist() == expected.tolist()


LAYOUTS = [
    FileLayout(),
    FileLayout(delimiter=";", decimal=",", skip_rows=2),
    FileLayout(header=False, fields=2, encoding="utf-16"),
    FileLayout(space_after_delimiter=True, encoding="cp1252"),
    FileLayout(quoting=False, delimiter="\t"),
]
PIECES = st.lists(
    st.sampled_from(["a", "7", ",", ";", "\t", '"', '""', "\n", "\r\n", "\r", " ", "é", "€", "NA", "\ufeff", "'"]),
    max_size=40,
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.sentence())
@given(text=PIECES.map("".join), piece=st.integers(1, 40))
def test_text_in_pieces_means_what_it_means_as_a_whole(
    layout: FileLayout, text: str, piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = (f"a{layout.delimiter}b\n" + text).encode(layout.encoding, "replace")
    path = tmp_path_factory.mktemp("text") / "file"
    path.write_bytes(data)
    assert _whole(data, layout) == _in_pieces(path, layout, piece)


@given(data=st.binary(max_size=80), piece=st.integers(1, 20))
def test_any_bytes_mean_the_same_in_pieces(data: bytes, piece: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = b"a,b\n" + data
    path = tmp_path_factory.mktemp("bytes") / "file"
    path.write_bytes(data)
    assert _whole(data, FileLayout()) == _in_pieces(path, FileLayout(), piece)


def _whole(data: bytes, layout: FileLayout) -> Any:
    try:
        frame = read_cells(data, layout)
    except dp.IntakeError:
        return None
    return frame.columns.tolist(), frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def _in_pieces(path: Path, layout: FileLayout, piece: int) -> Any:
    """Names and cells; nothing if the file is refused or has no rows."""
    try:
        reader = TextReader(str(path), layout, piece_bytes=piece)
        frames = list(reader.frames(reader.names))
    except dp.IntakeError:
        return None
    rows = [row for f in frames for row in f.astype(object).where(f.notna(), None).to_numpy().tolist()]
    return (reader.names, rows) if rows else None
