"""A changed or extended table is recognised by its rows, shares the account of the first, and strangers are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.errors import BudgetError, LedgerError, RoleError
from dpsynth_core.ledger.declarations import DeclarationStore
from dpsynth_core.ledger.ledger import Ledger, installed_ledger
from dpsynth_core.ledger.people import Person
from dpsynth_core.ledger.row_sketch import RowSketch, shared_share, sketch_rows
from dpsynth_core.ledger.settings import Settings
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


def test_rows_that_repeat_prove_little() -> None:
    """Two samples of one population with few different rows look alike; only nearly the same table is one."""
    rng = np.random.default_rng(0)
    one, other = (pd.DataFrame(rng.integers(0, 4, (300, 3))) for _ in range(2))
    assert shared_share(sketch_rows(one, KEY), sketch_rows(other, KEY)) == 0.0
    assert shared_share(sketch_rows(one, KEY), sketch_rows(one.iloc[1:], KEY)) > 0.95


def test_a_sketch_survives_being_stored() -> None:
    assert RowSketch.from_dict(SKETCH.to_dict()) == SKETCH


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    ledger = installed_ledger(Settings.from_environment())
    ledger.open_account("first", total=Budget.of(1), label="Survey")
    DeclarationStore(ledger).remember_rows("first", "first", SKETCH)
    return ledger


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
