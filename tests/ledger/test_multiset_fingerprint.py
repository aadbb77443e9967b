"""A name made in one pass, in any order, finds the account that the same table has when it is held in memory."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.ledger.file_fingerprint import file_fingerprints
from dpsynth_core.ledger.fingerprint import CellHasher
from dpsynth_core.ledger.multiset_fingerprint import VERSION, MultisetSum, multiset_fingerprint
from dpsynth_core.ledger.row_sketch import shared_share
from dpsynth_core.ledger.streamed_fingerprint import streamed_fingerprints, streamed_sketch
from dpsynth_core.table.readers.limits import DEFAULT_LIMITS, Limits
from tests.tables.streamed import SCHEMA, TEXT_SCHEMA, mixed_frame, parquet_file

KEY = bytes(range(32))
TINY = Limits(bytes=1)
"""So that every file is too large to be uploaded."""


@given(order=st.permutations(range(12)), cut=st.integers(0, 12), seed=st.integers(0, 99))
def test_order_batches_and_names_make_no_difference(order: list[int], cut: int, seed: int) -> None:
    frame = mixed_frame(12, seed)
    shuffled = frame.iloc[order][list(frame.columns[::-1])].set_axis(list("vwxyz"), axis=1).reset_index(drop=True)
    expected = multiset_fingerprint(frame, KEY)
    assert multiset_fingerprint(shuffled, KEY) == expected
    parts = [MultisetSum(CellHasher(KEY, VERSION), 5) for _ in range(2)]
    parts[0].add_cells(shuffled[cut:])
    parts[1].add_cells(shuffled[:cut])
    parts[0].absorb(parts[1].pack())
    assert parts[0].digest() == expected


def test_one_changed_cell_a_row_more_or_another_key_changes_it() -> None:
    frame = mixed_frame()
    names = {multiset_fingerprint(frame, KEY), multiset_fingerprint(frame, bytes(32))}
    names.add(multiset_fingerprint(pd.concat([frame, frame[:1]]), KEY))
    names.add(multiset_fingerprint(frame[1:], KEY))
    names.add(multiset_fingerprint(frame.drop(columns="b"), KEY))
    for row in (0, 17, 47):
        for column, value in {"x": 4.25, "k": 301, "s": "other", "d": pd.Timestamp("2031-01-01")}.items():
            changed = frame.copy()
            changed.loc[row, column] = value
            names.add(multiset_fingerprint(changed, KEY))
    assert len(names) == 5 + 12


def test_swapped_cells_of_two_rows_change_it() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    swapped = frame.assign(b=["y", "x", "z"])
    assert multiset_fingerprint(frame, KEY) != multiset_fingerprint(swapped, KEY)


@pytest.mark.parametrize("batch_rows", [1, 7, 48])
def test_a_file_has_the_same_name_in_memory_and_where_it_is(batch_rows: int, tmp_path: Path) -> None:
    path = parquet_file(tmp_path)
    table = dp.open_table(path, SCHEMA, batch_rows=batch_rows)
    uploaded = file_fingerprints(path.read_bytes(), KEY)
    assert streamed_fingerprints(table, KEY) == uploaded, "small enough to be uploaded: every name of an upload"
    (long,) = streamed_fingerprints(table, KEY, limits=TINY)
    assert long == uploaded[-1]
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        order = "CREATE TABLE people AS SELECT * FROM read_parquet(?) ORDER BY k"
        connection.execute(order, [str(path)])
    stored = dp.open_table(tmp_path / "rows.duckdb", SCHEMA, table="people")
    assert streamed_fingerprints(stored, KEY) == (long,), "no account starts afresh in a database"


def test_text_has_the_name_of_its_lines_whatever_layout_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    mixed_frame().to_csv(path, index=False)
    (name,) = streamed_fingerprints(dp.open_table(path, TEXT_SCHEMA), KEY, limits=TINY)
    assert name == file_fingerprints(path.read_bytes(), KEY)[-1]
    lines = path.read_text().splitlines()
    path.write_text("\r\n".join([lines[0], *reversed(lines[1:])]) + "\r\n", newline="")
    (again,) = streamed_fingerprints(dp.open_table(path, TEXT_SCHEMA), KEY, limits=TINY)
    assert again == name


def test_the_installation_key_does_not_travel() -> None:
    hasher = CellHasher(KEY, VERSION)
    held = [value for value in vars(hasher).values() if isinstance(value, bytes)]
    assert held
    assert KEY not in held
    assert not np.isin(KEY[:8], held).any()


@pytest.mark.parametrize("text", [False, True])
def test_a_long_table_with_one_row_changed_is_recognised(tmp_path: Path, text: bool) -> None:
    """Whichever of the two is too long to be held, and both."""
    schema = TEXT_SCHEMA if text else SCHEMA
    paths = []
    for value in (298, 299):
        frame = mixed_frame(300)
        frame.loc[17, "k"] = value
        paths.append(tmp_path / f"{value}.{'csv' if text else 'parquet'}")
        frame.to_csv(paths[-1], index=False) if text else frame.to_parquet(paths[-1])
    first, second = (
        [streamed_sketch(dp.open_table(path, schema), KEY, limits=limits) for limits in (TINY, DEFAULT_LIMITS)]
        for path in paths
    )
    for one, other in product(first, second):
        assert shared_share(one, other) > 0.95
    assert not text or all("lines" in sketch.parts for sketch in (*first, *second))
