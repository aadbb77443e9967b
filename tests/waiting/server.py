"""The app in a process of its own, for tests that need a real server."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting.browser import PATIENCE

ROOT = Path(__file__).parents[2]
CHROMIUM_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
]


@contextmanager
def serving(
    module: list[str],
    home: Path,
    *,
    host: str = "localhost",
    port: int | None = None,
    more: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, int]]:
    """The app in a process of its own.

    Args:
        module: Its command, without the port.
        home: Where its ledger and its log live.
        host: The name that it answers to.
        port: Where it answers; None: anywhere.
        more: Environment variables of its own.
    """
    port = port or free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DPSYNTH_")}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *module, str(port)],
            cwd=ROOT,
            env={**inherited, "DPSYNTH_HOME": str(home), **(more or {})},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_healthy(server, port, home / "server.log", host)
            yield f"http://localhost:{port}", server.pid
        finally:
            server.terminate()
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(server: subprocess.Popen[bytes], port: int, log: Path, host: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert server.poll() is None, f"The app did not start:\n{log.read_text()}"
        connection = http.client.HTTPConnection("localhost", port, timeout=1)
        try:
            connection.request("GET", "/_stcore/health", headers={"Host": host})
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            time.sleep(0.05)  # not up yet: ask again
        finally:
            connection.close()
    pytest.fail(f"The app did not answer within {PATIENCE} seconds:\n{log.read_text()}")
