"""The store of paid releases: private files, whole or absent, never silently dropped."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dpsynth_core.errors import LedgerError, ParameterError
from dpsynth_core.ledger.file_store import FileStore
from dpsynth_core.ledger.settings import Settings


def store_in(folder: Path, max_bytes: int = 100) -> FileStore:
    return FileStore(folder=folder / "releases", max_bytes=max_bytes)


def test_files_are_named_by_what_they_hold_and_closed_to_others(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    assert (store.nbytes, store.full) == (0, False)
    name = store.put(b"rows")
    assert name == hashlib.sha256(b"rows").hexdigest() == store.put(b"rows")
    assert store.get(name) == b"rows"
    (file,) = store.folder.iterdir()
    assert [path.stat().st_mode & 0o777 for path in (store.folder, file)] == [0o700, 0o600]


def test_a_full_store_says_so_and_removes_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path, max_bytes=10)
    first = store.put(b"12345678")
    with pytest.raises(LedgerError, match="DPSYNTH_RELEASES_GB"):
        store.put(b"123")
    assert store.get(first) == b"12345678"
    store.put(b"xy")
    assert store.full


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(LedgerError, match="No space left"):
        store.put(b"rows")
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../installation.key", "A" * 64, "f" * 63])
def test_only_names_of_releases_are_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(LedgerError, match="not the name"):
        store_in(tmp_path).get(name)


def test_where_and_how_much_an_installation_stores(tmp_path: Path) -> None:
    given = {"DPSYNTH_HOME": str(tmp_path), "DPSYNTH_RELEASES_GB": "3"}
    assert Settings.from_environment(given).release_store == FileStore(
        folder=tmp_path / "releases", max_bytes=3 * 2**30
    )
    with pytest.raises(ParameterError, match="gigabytes"):
        Settings.from_environment({**given, "DPSYNTH_RELEASES_GB": "1e3"})
