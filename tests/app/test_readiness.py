"""The server says whether it can do its work, and names what cannot without saying why."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dpsynth_core.errors import DPSynthError
from pages.shared import readiness
from pages.shared.readiness import CHECKS, failing
from pages.shared.server import ROUTES


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test asks anew, and starts no workers."""
    monkeypatch.setattr(readiness, "_known", [])
    monkeypatch.setitem(CHECKS, "workers", lambda: None)


def test_a_fresh_installation_is_ready(home: Path) -> None:
    assert failing() == ()
    assert (home / "ledger.db").exists()


def test_a_ledger_that_was_emptied_is_named_and_the_reason_is_in_the_log(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert failing() == ()
    (home / "installation.head").unlink()
    assert failing() == (), "an answer is kept for a moment"
    monkeypatch.setattr(readiness, "_known", [])
    with caplog.at_level(logging.ERROR):
        assert failing() == ("ledger",)
    assert "head" in caplog.text


def test_a_full_store_and_broken_workers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise DPSynthError("The pool has broken down.")

    monkeypatch.setitem(CHECKS, "workers", broken)
    monkeypatch.setattr("dpsynth_core.ledger.file_store.FileStore.full", property(lambda _: True))
    assert failing() == ("stores", "workers")


def test_the_server_has_the_address() -> None:
    assert any(getattr(route, "path", "").endswith("/ready") for route in ROUTES)
