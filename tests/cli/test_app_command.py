"""The installed command: without a command it opens the app, and its help says so under its own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth_core.cli.app import main, streamlit_command


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_help_is_about_the_command_that_was_typed(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([asked])
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("usage: dpsynth-app ")
    assert "Without a command, dpsynth-app opens the app" in told


def test_secrets_are_those_beside_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path))
    assert "--secrets.files" not in streamlit_command([])
    (tmp_path / "secrets.toml").write_text("")
    assert streamlit_command(["--server.port", "1"])[-4:] == [
        "--server.port",
        "1",
        "--secrets.files",
        str(tmp_path / "secrets.toml"),
    ]
    assert streamlit_command(["--secrets.files", "other"])[-2:] == ["--secrets.files", "other"]
