"""A changed or extended table is recognised by its rows, shares the account of the first, and strangers are not."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import BudgetError, LedgerError, RoleError
from dpsynth_core.ledger.declarations import DeclarationStore, NearAccountError
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.row_sketch import RowSketch, RowSketcher, shared_share, sketch_hasher, sketch_rows
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.tables import DECLARATIONS
from dpsynth_core.privacy.budget import Budget

KEY = b"k" * 32


def people(seed: int, rows: int = 2_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "Age": rng.integers(0, 99, rows),
            "weight": rng.normal(70, 10, rows).round(1),
            "group": rng.choice(["a", "b"], rows),
            "income": rng.integers(0, 10**6, rows),
        }
    )


FIRST = people(0)
SKETCH = sketch_rows(FIRST, KEY)


def share(table: pd.DataFrame, key: bytes = KEY) -> float:
    return shared_share(SKETCH, sketch_rows(table, key))


@pytest.mark.parametrize(
    "table",
    [
        FIRST.sample(frac=1, random_state=1),
        FIRST.iloc[:, ::-1],
        FIRST.astype(str),
        FIRST.astype({"Age": float}).rename(columns={"Age": " age"}),
        FIRST.iloc[1:],
        pd.concat([FIRST, people(1, 6_000)]),
        FIRST.assign(region="north"),
        FIRST.drop(columns="income"),
        FIRST.assign(income=FIRST["income"] * 2),
        FIRST.rename(columns={"income": "earnings"}),
        FIRST.assign(group=FIRST["group"].where(FIRST.index > 3)),
        FIRST.set_axis(list("wxyz"), axis=1),
        FIRST.set_axis(list("wxyz"), axis=1).assign(z=0),
    ],
    ids=[
        "shuffled",
        "reordered",
        "text",
        "floats",
        "one less",
        "extended",
        "added",
        "dropped",
        "changed",
        "renamed",
        "gaps",
        "other names",
        "other names and a changed column",
    ],
)
def test_a_version_of_the_same_table_is_recognised(table: pd.DataFrame) -> None:
    assert share(table) > 0.9


@pytest.mark.parametrize("kept", [0.25, 0.75])
def test_the_share_is_estimated_within_its_error(kept: float) -> None:
    """Jaccard's similarity J from 128 hashes has a standard error of sqrt(J(1-J)/128); five of them are allowed."""
    rows = len(FIRST)
    mixed = pd.concat([FIRST.iloc[: int(kept * rows)], people(2, rows - int(kept * rows))])
    jaccard = kept / (2 - kept)
    error = 5 * np.sqrt(jaccard * (1 - jaccard) / 128)
    low, high = (2 * j / (1 + j) for j in (jaccard - error, jaccard + error))
    assert (low <= share(mixed) <= high) if kept > 0.5 else share(mixed) in (0.0, pytest.approx(kept, abs=0.3))


def test_other_people_and_other_keys_share_nothing() -> None:
    assert share(people(3)) == 0.0
    assert share(FIRST, b"j" * 32) == 0.0
    assert share(FIRST.iloc[:0]) == 0.0


@pytest.mark.parametrize("sizes", [(300, 300), (300, 3_000), (100_000, 100_000)])
def test_rows_that_repeat_prove_little(sizes: tuple[int, int]) -> None:
    """Two samples of one population with few different rows look alike; only nearly the same table is one."""
    rng = np.random.default_rng(0)
    one, other = (pd.DataFrame(rng.integers(0, 4, (size, 3))) for size in sizes)
    assert shared_share(sketch_rows(one, KEY), sketch_rows(other, KEY)) == 0.0
    changed = one.copy()
    changed.iloc[0] = [0, 0, 0] if one.iloc[0].any() else [1, 1, 1]
    assert shared_share(sketch_rows(one, KEY), sketch_rows(changed, KEY)) > 0.95


@given(values=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**6)), min_size=3, max_size=40), data=st.data())
def test_a_table_with_one_row_replaced_is_always_recognised(values: list[tuple[int, int]], data: st.DataObject) -> None:
    one = pd.DataFrame(values)
    other = one.copy()
    other.iloc[data.draw(st.integers(0, len(one) - 1))] = [7, -7]
    assert shared_share(sketch_rows(one, KEY), sketch_rows(other, KEY)) > 0.0


@given(cuts=st.lists(st.integers(0, 400), max_size=4), merged=st.booleans())
def test_batches_make_the_same_sketch(cuts: list[int], merged: bool) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.integers(0, 30, 400), "b": rng.integers(0, 30, 400)})
    ends = sorted({0, 400, *cuts})
    total = RowSketcher(sketch_hasher(KEY), 2)
    for begin, end in pairwise(ends):
        part = RowSketcher(sketch_hasher(KEY), 2) if merged else total
        part.add_cells(table.iloc[begin:end])
        if merged:
            total.absorb(part.pack())
    assert total.sketch() == sketch_rows(table, KEY)


def test_a_sketch_survives_being_stored() -> None:
    assert RowSketch.from_dict(json.loads(json.dumps(SKETCH.to_dict()))) == SKETCH
    assert RowSketch.from_dict({"rows": 1, "hashes": {"": ["a"]}, "distinct": {"": 1}}) is None


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    ledger = installed_ledger(Settings.from_environment())
    DeclarationStore(ledger).open_account("first", lambda: SKETCH, total=Budget.of(1), label="Survey")
    return ledger


def test_a_second_budget_for_the_same_rows_needs_somebody_who_says_that_they_are_others(ledger: Ledger) -> None:
    steward = Person(subject="https://id 2", name="Sue", roles=frozenset({"steward"}))
    store = DeclarationStore(installed_ledger(by=steward))
    changed = sketch_rows(FIRST.iloc[1:], KEY)
    with pytest.raises(NearAccountError) as found:
        store.open_account("second", lambda: changed, total=Budget.of(1))
    assert [near.account.label for near in found.value.near] == ["Survey"]
    assert ledger.account("second") is None
    store.open_account("second", lambda: changed, total=Budget.of(1), apart=True)
    with ledger.reading_all() as connection:
        stated = connection.execute(sa.select(DECLARATIONS).where(DECLARATIONS.c.kind == "apart")).one()
    assert (stated.fingerprint, stated.name, json.loads(stated.details)) == ("second", "Sue", {"from": ["first"]})


def test_of_two_versions_that_come_at_once_the_second_is_noticed(ledger: Ledger) -> None:
    tables = [people(7, 300), people(7, 300).iloc[1:]]
    both = Barrier(2)

    def sketched(table: pd.DataFrame) -> RowSketch:
        both.wait()  # neither has an account when the other one is compared
        return sketch_rows(table, KEY)

    def opens(number: int) -> bool:
        store = DeclarationStore(installed_ledger())
        try:
            store.open_account(f"new {number}", lambda: sketched(tables[number]), total=Budget.of(1))
        except NearAccountError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(opens, range(2))) == [False, True]


def test_sketches_of_an_older_format_are_made_anew_when_the_table_is_seen(ledger: Ledger) -> None:
    ledger.open_account("old", total=Budget.of(1))
    with ledger.writing("old") as entry:
        entry.declare("old", "rows", "old", {"rows": 1, "hashes": {"": ["a"]}, "distinct": {"": 1}})
    store, table = DeclarationStore(ledger), people(8)
    assert store.overlaps(sketch_rows(table, KEY)) == ()
    store.remember_rows("old", "old", lambda: sketch_rows(table, KEY))
    store.remember_rows("old", "old", lambda: pytest.fail("it is known"))
    (near,) = store.overlaps(sketch_rows(table.iloc[1:], KEY))
    assert near.account.fingerprint == "old"


def test_versions_of_a_table_share_one_budget(ledger: Ledger) -> None:
    store = DeclarationStore(ledger)
    (near,) = store.overlaps(sketch_rows(FIRST.iloc[1:], KEY))
    assert (near.account.label, near.share > 0.9) == ("Survey", True)
    assert store.overlaps(sketch_rows(people(3), KEY)) == ()
    assert ledger.locate(("second",)) == ("second", "second")
    store.attach("first", "second")
    store.attach("first", "second")
    assert ledger.locate(("newer name", "second")) == ("first", "second")
    assert ledger.known_name(("second",)) == "first"
    ledger.reserve("first", Budget.of("0.8"), purpose="on the first version").commit()
    with pytest.raises(BudgetError):
        ledger.reserve(ledger.known_name(("second",)), Budget.of("0.3"), purpose="on the second")
    ledger.check()


def test_a_table_with_an_account_cannot_be_attached(ledger: Ledger) -> None:
    ledger.open_account("second", total=Budget.of(1))
    for table in ("second", "first"):
        with pytest.raises(LedgerError, match="account of its own"):
            DeclarationStore(ledger).attach("first", table)


def test_only_stewards_attach(ledger: Ledger) -> None:
    analyst = Person(subject="https://id 1", name="Ana", roles=frozenset({"analyst"}))
    with pytest.raises(RoleError, match="attach"):
        DeclarationStore(installed_ledger(by=analyst)).attach("first", "second")
