"""Axes and codes: every slot in its own range, every prefix a box, all boxes of a depth a partition of the domain."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.mechanisms.kd_tree.interleaving import MAX_BITS, Coding, Halving
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from tests.tables.boxes import Side, free_boxes, schema_of, table_of, turns
from tests.tables.strategies import columns, schemas


def axes(column: Column) -> list[Axis]:
    return [Axis.coarse(column), Axis.coarse(column, 3), Axis.fine(column, 6)]


def one_column(column: Column, values: Any) -> PrivateTable:
    series = values if isinstance(values, pd.Series) else pd.Series(values)
    return PrivateTable(pd.DataFrame({column.name: series}), Schema(columns=(column,)))


def placed(axis: Axis, low: np.ndarray, high: np.ndarray, seed: int, *, centre: bool) -> pd.Series[Any]:
    """One value for each box, as a released table would show it."""
    generator = np.random.default_rng(seed)
    positions = axis.place(low, high, np.arange(len(low)), generator.random, centre=centre)
    return codec_for(axis.column).restore(positions)


@settings(max_examples=50)
@given(columns(name="c"), st.integers(0, 2**32), st.booleans())
def test_every_slot_decodes_into_itself(column: Column, seed: int, centre: bool) -> None:
    for axis in axes(column):
        slots = np.arange(axis.size)
        back = axis.locate(one_column(column, placed(axis, slots, slots + 1, seed, centre=centre)))
        if column.lattice is None and column.is_numeric and not centre:
            # A number drawn within a float's step of an edge may round onto it.
            assert (np.abs(back - slots) <= 1).all()
            assert (back == slots).mean() > 0.9 or axis.size < 12
        else:
            assert (back == slots).all()


@settings(max_examples=50)
@given(columns(name="c"), st.integers(0, 2**32), st.booleans(), st.data())
def test_rows_are_placed_inside_their_box_and_the_declared_bounds(
    column: Column, seed: int, centre: bool, data: st.DataObject
) -> None:
    for axis in axes(column):
        low = np.array(data.draw(st.lists(st.integers(0, axis.size - 1), min_size=1, max_size=8)))
        high = np.array([data.draw(st.integers(int(a) + 1, axis.size)) for a in low])
        values = placed(axis, low, high, seed, centre=centre)
        slot = axis.locate(one_column(column, values))
        slack = int(column.lattice is None and column.is_numeric)
        assert ((slot >= low - slack) & (slot < high + slack)).all()
        if column.is_numeric and column.kind != "date":
            kept = values.dropna().astype(float)
            assert ((kept >= column.lower) & (kept <= column.upper)).all()
        if not column.nullable:
            assert not values.isna().any()


@settings(max_examples=50)
@given(columns(name="c"))
def test_rows_of_a_range_with_the_missing_slot_are_missing_as_often_as_one_slot(column: Column) -> None:
    axis = Axis.coarse(column, 3)
    if axis.missing is None or axis.size > 40:
        return
    rows = 4_000
    box = np.zeros(rows, dtype=np.int64)
    generator = np.random.default_rng(3)
    missing = axis.place(np.array([0]), np.array([axis.size]), box, generator.random, centre=False).missing
    share = 1 / axis.size
    assert abs(missing.mean() - share) < 6 * math.sqrt(share * (1 - share) / rows) + 1e-12
    for low, high, expected in ((axis.missing, axis.size, 1.0), (0, axis.missing, 0.0)):
        found = axis.place(np.array([low]), np.array([high]), box, generator.random, centre=True).missing
        assert found.mean() == expected


def test_a_range_is_filled_evenly() -> None:
    column = Column(name="c", kind="integer", lower=-3, upper=3)
    axis = Axis.fine(column)
    values = axis.place(
        np.array([1]), np.array([6]), np.zeros(50_000, int), np.random.default_rng(1).random, centre=False
    )
    observed = np.bincount(values.values, minlength=7)
    assert observed[[0, 6]].sum() == 0
    assert abs(observed[1:6] / 50_000 - 0.2).max() < 0.01


def test_the_middle_of_a_range_is_the_middle() -> None:
    real = Axis.coarse(Column(name="c", kind="continuous", lower=0, upper=8), 8)
    whole = Axis.coarse(Column(name="c", kind="integer", lower=0, upper=7), 8)
    low, high = np.array([0, 2, 0]), np.array([1, 4, 8])
    assert placed(real, low, high, 0, centre=True).tolist() == [0.5, 3.0, 4.0]
    assert placed(whole, low, high, 0, centre=True).tolist() == [0, 2, 3]


@settings(max_examples=50)
@given(columns(name="c"))
def test_every_range_is_described_by_its_first_and_last_value(column: Column) -> None:
    for axis in axes(column):
        slots = sorted({*range(min(axis.size, 40)), *range(max(axis.size - 40, 0), axis.size)})
        ends = {slot: axis.describe(slot, slot + 1) for slot in slots}
        for slot, (first, last) in ends.items():
            if slot == axis.missing:
                assert (first, last) == (None, None)
                continue
            assert first is not None
            assert last is not None
            if column.is_numeric:
                assert first <= last  # type: ignore[operator]
                slack = 1e-9 * (abs(float(column.upper)) + abs(float(column.lower))) if column.kind != "date" else None  # type: ignore[arg-type]
                if slack is None:
                    assert column.lower <= first <= last <= column.upper  # type: ignore[operator]
                else:
                    assert column.lower - slack <= first <= last <= column.upper + slack  # type: ignore[operator]
            else:
                assert first == last == column.labels[slot]
        assert axis.describe(0, axis.size)[0] == ends[0][0]
        assert axis.describe(0, axis.size)[1] == ends[axis.slots - 1][1]


def test_whole_numbers_are_described_as_whole_numbers() -> None:
    column = Column(name="c", kind="integer", lower=-3, upper=10**12, bins=8)
    for axis in (Axis.coarse(column), Axis.fine(column)):
        first, last = axis.describe(0, axis.slots)
        assert (first, last) == (-3, 10**12)
        assert isinstance(first, int)
        assert isinstance(last, int)


def test_dates_are_described_as_dates() -> None:
    axis = Axis.fine(Column(name="c", kind="date", lower=date(2020, 2, 28), upper=date(2020, 3, 1)))
    assert axis.describe(0, 3) == (date(2020, 2, 28), date(2020, 3, 1))
    assert axis.describe(1, 2) == (date(2020, 2, 29), date(2020, 2, 29))


# ------------------------------------------------------------------------------------------------------------- codes


@settings(max_examples=100)
@given(columns(name="c"), st.integers(0, 9))
def test_strings_of_bits_cut_an_axis_into_ranges(column: Column, bits: int) -> None:
    halving = Halving(Axis.fine(column, 8), bits)
    for depth in range(bits + 1):
        real = halving.real(depth)
        ranges = sorted(zip(halving.low[depth][real].tolist(), halving.high[depth][real].tolist(), strict=True))
        assert ranges[0][0] == 0
        assert ranges[-1][1] == halving.axis.size
        assert all(a[1] == b[0] for a, b in pairwise(ranges))
    for slot, string in enumerate(halving.strings.tolist()):
        for depth in range(bits + 1):
            start = string >> (bits - depth)
            assert halving.low[depth][start] <= slot < halving.high[depth][start]


@settings(max_examples=40)
@given(schemas(), st.integers(0, 2**32))
def test_a_code_leads_to_the_box_that_holds_its_row_at_every_depth(schema: Schema, seed: int) -> None:
    coding = Coding.of(schema)
    assert coding.bits <= MAX_BITS
    generator = np.random.default_rng(seed)
    slots = [generator.integers(0, halving.axis.size, 6) for halving in coding.halvings]
    columns_ = {
        h.axis.column.name: placed(h.axis, s, s + 1, seed, centre=True)
        for h, s in zip(coding.halvings, slots, strict=True)
    }
    table = PrivateTable(pd.DataFrame(columns_), schema)
    found = [halving.axis.locate(table) for halving in coding.halvings]
    codes = coding.codes(table)
    assert (codes >= 0).all()
    for depth in range(coding.bits + 1):
        low, high = coding.ranges(codes >> (coding.bits - depth), depth)
        for i, slot in enumerate(found):
            assert ((low[:, i] <= slot) & (slot < high[:, i])).all()
    # Boxes are nested: a longer prefix is a part of a shorter one.
    outer = coding.ranges(codes >> coding.bits, 0)
    for depth in range(1, coding.bits + 1):
        inner = coding.ranges(codes >> (coding.bits - depth), depth)
        assert (inner[0] >= outer[0]).all()
        assert (inner[1] <= outer[1]).all()
        outer = inner


small = st.lists(
    st.builds(Side, st.integers(1, 6), nullable=st.booleans(), label=st.booleans()), min_size=1, max_size=3
)


@settings(max_examples=40)
@given(small)
def test_the_real_prefixes_of_every_depth_are_the_boxes_of_plain_halving(sides: list[Side]) -> None:
    coding = Coding.of(schema_of(sides))
    assert list(coding.order) == turns(tuple(sides))
    for depth in range(min(coding.bits, 8) + 1):
        taken = coding.taken(depth)
        strings = [h.real(k) for h, k in zip(coding.halvings, taken, strict=True)]
        grid = [part.ravel() for part in np.meshgrid(*strings, indexing="ij")]
        prefix = coding.prefix(grid, depth)
        assert len(set(prefix.tolist())) == len(prefix) == coding.boxes(depth)
        low, high = coding.ranges(prefix, depth)
        boxes = {tuple(zip(a, b, strict=True)) for a, b in zip(low.tolist(), high.tolist(), strict=True)}
        assert boxes == set(free_boxes(sides, depth))
        for i, string in enumerate(grid):
            assert (coding.string(prefix, i, depth) == string).all()


@settings(max_examples=40)
@given(small, st.integers(0, 2**32))
def test_sorted_codes_put_the_rows_of_every_box_side_by_side(sides: list[Side], seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = [tuple(int(generator.integers(side.size)) for side in sides) for _ in range(30)]
    coding = Coding.of(schema_of(sides))
    codes = coding.codes(table_of(rows, sides))
    # Equal rows have equal codes, and different rows different ones, as long as there are bits for all slots.
    assert len(set(codes.tolist())) == len(set(rows))
    order = np.argsort(codes, kind="stable")
    for depth in range(coding.bits + 1):
        start = (codes >> (coding.bits - depth))[order]
        assert (np.diff(start) >= 0).all()
        assert set(start.tolist()) <= set(coding.prefix(_all_strings(coding, depth), depth).tolist())


def _all_strings(coding: Coding, depth: int) -> list[np.ndarray]:
    strings = [h.real(k) for h, k in zip(coding.halvings, coding.taken(depth), strict=True)]
    return [part.ravel() for part in np.meshgrid(*strings, indexing="ij")]


def wide(numbers: int, labels: int, categories: int = 8) -> Schema:
    return Schema.from_dict(
        {
            "columns": [
                *({"name": f"n{i}", "kind": "continuous", "lower": 0, "upper": 1} for i in range(numbers)),
                *(
                    {"name": f"l{i}", "kind": "categorical", "categories": list(range(categories))}
                    for i in range(labels)
                ),
            ]
        }
    )


@pytest.mark.parametrize(("numbers", "labels"), [(30, 0), (0, 30), (15, 15), (25, 5), (31, 31), (80, 0), (0, 80)])
def test_many_columns_fit_into_sixty_two_bits(numbers: int, labels: int) -> None:
    schema = wide(numbers, labels)
    coding = Coding.of(schema)
    assert coding.bits <= MAX_BITS
    assert coding.bits == MAX_BITS or numbers + labels < 31
    if numbers:
        taken = coding.taken(coding.bits)[:numbers]
        assert max(taken) - min(taken) <= 1  # the numbers are halved in turn


@pytest.mark.parametrize(("numbers", "labels"), [(32, 22), (40, 30)])
def test_more_numbers_than_half_the_bits_leave_the_code_within_sixty_two(numbers: int, labels: int) -> None:
    coding = Coding.of(wide(numbers, labels))
    assert coding.bits <= MAX_BITS
