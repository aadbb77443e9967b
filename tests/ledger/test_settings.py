from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import make_url

from dpsynth_core.errors import DPSynthError, LedgerError, ParameterError
from dpsynth_core.ledger.database import database
from dpsynth_core.ledger.settings import Settings


def settings_in(home: Path, **environ: str) -> Settings:
    return Settings.from_environment({"DPSYNTH_HOME": str(home), **environ})


def test_defaults_stand_in_the_users_data_directory() -> None:
    settings = Settings.from_environment({})
    assert settings.home.is_absolute()
    assert settings.key_file == settings.home / "installation.key"
    assert make_url(settings.ledger_url).database == str(settings.home / "ledger.db")


def test_an_empty_variable_counts_as_missing() -> None:
    empty = {"DPSYNTH_HOME": "", "DPSYNTH_LEDGER_URL": "", "DPSYNTH_KEY_FILE": ""}
    assert Settings.from_environment(empty) == Settings.from_environment({})


def test_every_place_can_be_chosen(tmp_path: Path) -> None:
    url = "postgresql+psycopg://team:secret@db.example/ledger"
    settings = settings_in(tmp_path, DPSYNTH_LEDGER_URL=url, DPSYNTH_KEY_FILE=str(tmp_path / "k"))
    assert (settings.ledger_url, settings.key_file) == (url, tmp_path / "k")


def test_the_url_survives_characters_that_urls_reserve(tmp_path: Path) -> None:
    home = tmp_path / "50% of a?#b"
    assert make_url(settings_in(home).ledger_url).database == str(home / "ledger.db")


def test_no_password_is_printed(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, DPSYNTH_LEDGER_URL="postgresql://team:secret@db/ledger")
    assert "secret" not in repr(settings)
    with pytest.raises(ParameterError) as error:
        settings_in(tmp_path, DPSYNTH_LEDGER_URL="team:secret")
    assert "secret" not in str(error.value)
    with pytest.raises(LedgerError) as unknown:
        database("nosuchdatabase://team:secret@db/ledger")
    assert "secret" not in str(unknown.value)


@pytest.mark.parametrize("variable", ["DPSYNTH_HOME", "DPSYNTH_KEY_FILE"])
def test_a_relative_path_is_refused(variable: str) -> None:
    with pytest.raises(ParameterError, match=f"{variable} is 'data'; allowed: an absolute path"):
        Settings.from_environment({variable: "data"})


def test_a_relative_ledger_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="four slashes"):
        settings_in(tmp_path, DPSYNTH_LEDGER_URL="sqlite:///ledger.db")


def test_the_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "new" / "home")
    key = settings.installation_key()
    assert len(key) == 32
    assert settings.installation_key() == key
    assert {name for name in os.listdir(settings.home) if not name.startswith(".")} == {
        "installation.key",
        "installation.head",
    }
    if os.name == "posix":
        assert stat.S_IMODE(settings.key_file.stat().st_mode) == 0o600
        assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700
    assert settings_in(tmp_path / "other").installation_key() != key


def test_all_who_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    settings, starters = settings_in(tmp_path / "home"), 16
    barrier = threading.Barrier(starters)

    def start(_: int) -> bytes:
        barrier.wait()
        return settings.installation_key()

    with ThreadPoolExecutor(starters) as pool:
        assert len(set(pool.map(start, range(starters)))) == 1
    assert {name for name in os.listdir(settings.home) if not name.startswith(".")} == {
        "installation.key",
        "installation.head",
    }


def test_a_key_made_meanwhile_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_in(tmp_path)
    settings.key_file.write_bytes(b"k" * 32)
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    assert settings.installation_key() == b"k" * 32


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_reported_and_left_alone(tmp_path: Path, content: bytes) -> None:
    settings = settings_in(tmp_path)
    settings.key_file.write_bytes(content)
    with pytest.raises(DPSynthError, match=f"has {len(content)} bytes; allowed: 32.*Restore it from a backup"):
        settings.installation_key()
    assert settings.key_file.read_bytes() == content


def test_an_unreadable_key_is_reported(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    settings.key_file.mkdir()
    with pytest.raises(DPSynthError, match=r"cannot be read.*Do not delete it"):
        settings.installation_key()


def test_a_dangling_link_is_not_taken_for_a_first_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    settings.key_file.symlink_to(tmp_path / "unmounted" / "key")
    with pytest.raises(DPSynthError, match="cannot be read"):
        settings.installation_key()


def test_a_key_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DPSynthError, match=r"cannot be created.*Set DPSYNTH_KEY_FILE"):
        settings_in(tmp_path / "file").installation_key()
