"""The container file, built and started by buildah where there is one.

The base image comes from a registry. Where none can be reached, ``DPSYNTH_BASE_IMAGE`` names a local image with Python
3.11 and its venv module; ``DPSYNTH_BUILD_OPTIONS`` adds options, for instance volumes with a mirror of PyPI.
"""

from __future__ import annotations

import http.client
import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from tests.waiting.server import ROOT, free_port

BUILDAH = shutil.which("buildah")
BASE = os.environ.get("DPSYNTH_BASE_IMAGE", "docker.io/library/python:3.11-slim")
STARTS = 300

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BUILDAH is None, reason="there is no buildah here (Debian: apt install buildah)"),
]


def buildah(*arguments: str, timeout: float = 120) -> str:
    assert BUILDAH is not None
    done = subprocess.run([BUILDAH, *arguments], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    name = f"localhost/dpsynth-test-{uuid.uuid4().hex[:8]}"
    assert BUILDAH is not None
    if subprocess.run([BUILDAH, "pull", "--policy", "missing", BASE], capture_output=True, check=False).returncode:
        pytest.skip(f"the base image {BASE} cannot be had here")
    options = shlex.split(os.environ.get("DPSYNTH_BUILD_OPTIONS", ""))
    file = str(ROOT / "deploy" / "Containerfile")
    # Without its own namespaces a build needs no more rights than this test has.
    command = [
        "bud",
        "--format",
        "docker",
        "--isolation",
        "chroot",
        "--network",
        "host",
        "--build-arg",
        f"PYTHON={BASE}",
        *options,
    ]
    buildah(*command, "-f", file, "-t", name, str(ROOT), timeout=2400)
    yield name
    buildah("rmi", name)


@pytest.fixture
def container(image: str) -> Iterator[str]:
    name = buildah("from", image)
    yield name
    buildah("rm", name)


def test_it_runs_without_rights_with_its_loops_compiled_and_is_ready(container: str) -> None:
    def run(*command: str) -> list[str]:
        assert BUILDAH is not None
        return [BUILDAH, "run", "--isolation", "chroot", "--network", "host", container, "--", *command]

    def output(*command: str) -> str:
        return subprocess.run(run(*command), capture_output=True, text=True, check=True, timeout=120).stdout.strip()

    assert output("id", "-u") == "10001"
    assert output("sh", "-c", "touch /opt/dpsynth/x 2>/dev/null; echo $?") != "0", "the program cannot change itself"
    loops = "find /opt/loops -name '*.nbc' | wc -l"
    before = int(output("sh", "-c", loops))
    assert before > 0
    port = free_port()
    command = ("dpsynth-app", "--server.address", "localhost", "--server.port", str(port), "--server.headless", "true")
    server = subprocess.Popen(run(*command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert _ready(server, port) == "ready\n"
    finally:
        server.terminate()
        server.wait(60)
    output("python", "-m", "dpsynth_core.runs.warm_up")
    assert int(output("sh", "-c", loops)) == before, "nothing had to be compiled again"
    assert output("stat", "-c", "%a", "/data/installation.key") == "600"


def _ready(server: subprocess.Popen[bytes], port: int) -> str:
    deadline = time.monotonic() + STARTS
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection("localhost", port, timeout=60)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().read().decode()
        except OSError:
            time.sleep(0.5)
        finally:
            connection.close()
    return "no answer"
