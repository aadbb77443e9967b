"""A changed table on the command line: no second budget unless a person says that these are other people."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsynth_core.cli import main
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.declarations import DeclarationStore, NearAccountError
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.privacy.budget import Budget
from pages.shared.accounts import account_of
from pages.shared.data.actions import load_upload, open_account
from pages.shared.session import Session
from tests.tables.streamed import SCHEMA, mixed_frame

MAKE = ["--schema", "schema.json", "--mechanism", "kd_tree", "--epsilon", "0.5"]


@pytest.fixture
def folder(desk: Path) -> Path:
    """A table that has an account, and a version of it with one row changed."""
    (desk / "schema.json").write_text(SCHEMA.to_json())
    frame = mixed_frame(200)
    frame.to_parquet(desk / "first.parquet")
    changed = frame.copy()
    changed.loc[3, "k"] = 299
    changed.to_parquet(desk / "changed.parquet")
    assert main(["synthesize", "first.parquet", *MAKE, "--budget", "1", "--out", "first.zip"]) == 0
    return desk


def accounts() -> tuple[Account, ...]:
    return DeclarationStore(installed_ledger()).accounts()


@pytest.mark.parametrize("engine", [[], ["--engine", "duckdb"]])
def test_a_changed_table_gets_no_second_budget(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: list[str]
) -> None:
    assert main(["synthesize", "changed.parquet", *MAKE, *engine, "--budget", "1", "--out", "second.zip"]) == 2
    said = capsys.readouterr().err
    (only,) = accounts()
    assert f"{only.fingerprint[:12]}  first.parquet" in said
    assert "about 99%" in said or "about 100%" in said
    assert not Path("second.zip").exists()


def test_it_can_share_the_account(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (only,) = accounts()
    share = ["synthesize", "changed.parquet", *MAKE, "--share-account", only.fingerprint[:12]]
    assert main([*share, "--out", "second.zip"]) == 0
    assert "epsilon 0 of 1" in capsys.readouterr().out
    assert main(["synthesize", "changed.parquet", *MAKE, "--out", "third.zip"]) == 2, "also without being told again"
    (only,) = accounts()
    assert len(only.entries) == 2
    assert only.entries[1].details["version"] not in ("", only.fingerprint)


@pytest.mark.parametrize("name", ["", "0", "x" * 12])
def test_an_account_that_does_not_exist_is_not_shared(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["synthesize", "changed.parquet", *MAKE, "--share-account", name, "--out", "second.zip"]) == 2
    assert "--share-account" in capsys.readouterr().err
    assert len(accounts()) == 1


def test_other_people_can_have_an_account_of_their_own(folder: Path) -> None:
    assert main(["synthesize", "changed.parquet", *MAKE, "--separate-account", "--out", "second.zip"]) == 0
    assert len(accounts()) == 2


def test_the_app_recognises_a_table_of_the_command_line(folder: Path) -> None:
    session = Session(mode="release")
    load_upload(session, "changed.parquet", (folder / "changed.parquet").read_bytes())
    with pytest.raises(NearAccountError):
        open_account(session, "1", "0")
    assert account_of(session) is None


def test_an_account_from_before_is_recognised_once_its_table_was_used_again(desk: Path) -> None:
    (desk / "schema.json").write_text(SCHEMA.to_json())
    frame = mixed_frame(200)
    frame.to_parquet(desk / "first.parquet")
    session = Session(mode="release")
    load_upload(session, "first.parquet", (desk / "first.parquet").read_bytes())
    assert session.work.data.fingerprint is not None
    installed_ledger().open_account(session.work.data.fingerprint, total=Budget.of(2))
    assert main(["synthesize", "first.parquet", *MAKE, "--out", "first.zip"]) == 0
    pd.concat([frame, mixed_frame(50, seed=9)]).to_parquet(desk / "longer.parquet")
    assert main(["synthesize", "longer.parquet", *MAKE, "--out", "second.zip"]) == 2
