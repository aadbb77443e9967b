"""A folder to run commands in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpsynth_core.table.file_layout import FileLayout
from tests.tables.schemas import mixed_schema, mixed_table


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, its schema, and an installation of its own."""
    mixed_table().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "schema.json").write_text(replace(mixed_schema(), file=FileLayout()).to_json())
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    for name in ("DPSYNTH_LEDGER_URL", "DPSYNTH_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
