"""The wheel as somebody else installs it: in a clean environment, with the tested versions as constraints."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

from tests.waiting.server import ROOT, free_port

pytestmark = pytest.mark.slow

SCHEMA = {
    "columns": [
        {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "public": True},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True},
    ],
    "file": {"format": "text", "encoding": "utf-8", "delimiter": ",", "header": True, "decimal": "."},
}
STARTS = 120
"""Seconds within which the installed app must be ready; a first start loads everything from disk."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], check=True)
    (file,) = folder.glob("dpsynth_core-*.whl")
    return file


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a clean environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", ROOT / "requirements.txt", wheel], check=True, timeout=1500)
    return folder / "bin"


@pytest.fixture
def clean(tmp_path: Path) -> dict[str, str]:
    """An environment that knows nothing of this checkout."""
    kept = ("PATH", "LANG", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "HOME": str(tmp_path),
        "DPSYNTH_HOME": str(tmp_path / "home"),
    }


def test_the_wheel_holds_the_app_and_nothing_private(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dpsynth_core/_app/app.py", "dpsynth_core/_app/pages/6_Release.py"} <= set(names)
    assert {"dpsynth_core/_app/.streamlit/config.toml", "dpsynth_core/review/report.html"} <= set(names)
    assert not [name for name in names if "secrets" in name or name.startswith("tests") or name.endswith(".pyc")]


def test_the_command_line_works_from_anywhere(programs: Path, clean: dict[str, str], tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [programs / "dpsynth-app", *arguments]
        return subprocess.run(
            command, env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

    told = run("--help").stdout
    assert told.startswith("usage: dpsynth-app ")
    assert "opens the app" in told
    (tmp_path / "people.csv").write_text("age,sex\n" + "".join(f"{20 + i % 50},{'fm'[i % 2]}\n" for i in range(300)))
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    order = ["people.csv", "--schema", "schema.json", "--epsilon", "1", "--delta", "1e-6", "--budget", "2"]
    order += ["--budget-delta", "1e-5"]
    made = run("synthesize", *order, "--mechanism", "private_pgm", "--out", "bundle.zip")
    assert made.returncode == 0, made.stderr
    assert "synthetic.csv" in zipfile.ZipFile(tmp_path / "bundle.zip").namelist()
    refused = run("synthesize", *order, "--mechanism", "dp_gan", "--out", "gan.zip")
    assert (refused.returncode, "dpsynth-core[gan]" in refused.stderr) == (2, True)
    listed = run("licences").stdout
    assert "streamlit" in listed
    assert "jaxlib" not in listed


def test_the_installed_app_starts_and_is_ready(programs: Path, clean: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    command = [programs / "dpsynth-app", "--server.port", str(port), "--server.headless", "true"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, env=clean, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
        try:
            assert _answer(server, port, "/ready") == (200, "ready\n"), (tmp_path / "log").read_text()
            status, page = _answer(server, port, "/")
            assert status == 200
            assert "<title>" in page
        finally:
            server.terminate()
            server.wait(60)
    assert (tmp_path / "home" / "ledger.db").exists()


def _answer(server: subprocess.Popen[bytes], port: int, path: str) -> tuple[int, str]:
    deadline = time.monotonic() + STARTS
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection("localhost", port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            time.sleep(0.2)
        finally:
            connection.close()
    return 0, "no answer"
