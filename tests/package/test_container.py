"""The container file, built and started by buildah where there is one and the kernel lets it.

``DPSYNTH_BASE_IMAGE`` names another base image, with Python 3.11 and its venv module; ``DPSYNTH_BUILD_OPTIONS`` adds
options; ``DPSYNTH_IMAGE`` names an image that was built before and is left as it is. `make test-container` runs this;
it takes minutes, most of them for installing and compiling.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting.base_image import base_image
from tests.waiting.server import ROOT, free_port

BUILDAH = shutil.which("buildah") or ""
BUILD_SECONDS = 2400
STARTS = 300
PORT = 8501
USER = 10001

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BUILDAH, reason="there is no buildah here (Debian: apt install buildah)"),
]
# Without namespaces of its own a build needs no more rights than this test has.
ISOLATION = ("--isolation", "chroot", "--network", "host")
Run = Callable[..., list[str]]


def buildah(*arguments: str, timeout: float = 300) -> str:
    done = subprocess.run([BUILDAH, *arguments], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    built = os.environ.get("DPSYNTH_IMAGE")
    if built:
        yield built
        return
    name = f"localhost/dpsynth-test-{uuid.uuid4().hex[:8]}"
    with base_image(BUILDAH, tmp_path_factory.mktemp("base")) as base:
        _skip_if_forbidden(base.name)
        given = (*base.options, *shlex.split(os.environ.get("DPSYNTH_BUILD_OPTIONS", "")))
        file = ("-f", str(ROOT / "deploy" / "Containerfile"))
        build = ("bud", "--format", "docker", *ISOLATION, "--build-arg", f"PYTHON={base.name}", *given, *file)
        buildah(*build, "-t", name, str(ROOT), timeout=BUILD_SECONDS)
        try:
            yield name
        finally:
            buildah("rmi", "--force", name)


def _skip_if_forbidden(base: str) -> None:
    """Whether anything at all can be run in a container here."""
    container = buildah("from", base)
    try:
        command = [BUILDAH, "run", *ISOLATION, container, "--", "true"]
        tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    finally:
        buildah("rm", container)
    if tried.returncode:
        pytest.skip(f"containers cannot be run here: {tried.stderr.strip()[-200:]}")


@pytest.fixture(scope="module")
def settings(image: str) -> dict[str, Any]:
    """What the image says about itself."""
    config: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]
    return config


@pytest.fixture
def container(image: str) -> Iterator[str]:
    name = buildah("from", image)
    yield name
    buildah("rm", name)


@pytest.fixture
def run(container: str) -> Run:
    """A command in the container, as its user and with its volume."""
    return lambda *command: [BUILDAH, "run", *ISOLATION, container, "--", *command]


def output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_it_names_its_user_its_volume_and_its_health_check(settings: dict[str, Any]) -> None:
    assert settings["User"] == "dpsynth"
    assert list(settings["Volumes"]) == ["/data"]
    assert list(settings["ExposedPorts"]) == [f"{PORT}/tcp"]
    assert settings["Healthcheck"]["Test"][0] == "CMD"
    assert settings["Entrypoint"][0] == "dpsynth-app"


def test_what_runs_has_no_rights_and_nothing_of_the_build(run: Run) -> None:
    assert output(run("id", "-u")) == str(USER)
    assert output(run("sh", "-c", "touch /opt/dpsynth/x 2>/dev/null; echo $?")) != "0", "it cannot change itself"
    assert (
        output(run("sh", "-c", "ls -d /source /wheels/*.whl /root/.cache/pip 2>/dev/null; command -v cc gcc; true"))
        == ""
    )


def test_the_loops_are_compiled(run: Run) -> None:
    """Compiling again what is there would add files."""
    loops = "find /opt/loops -name '*.nbc' | wc -l"
    before, after = output(
        run("sh", "-c", f"{loops}; python -m dpsynth_core.runs.warm_up >/dev/null && {loops}")
    ).split()
    assert int(before) > 0
    assert before == after


def test_it_starts_is_healthy_and_keeps_its_data(run: Run, settings: dict[str, Any], container: str) -> None:
    port = free_port()
    # The options that follow the image's name when it is run; the last one counts.
    started = run(*settings["Entrypoint"], "--server.address", "localhost", "--server.port", str(port))
    server = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert _ready(server, port) == "ready\n"
        check = [part.replace(str(PORT), str(port)) for part in settings["Healthcheck"]["Test"][1:]]
        output(run(*check))
    finally:
        server.terminate()
        server.wait(60)
    assert subprocess.run(run(*check), capture_output=True, check=False, timeout=120).returncode != 0, "it is gone"
    assert output(run("stat", "-c", "%a %u", "/data/installation.key")) == f"600 {USER}"
    assert "complete and unchanged" in output(run("dpsynth-app", "ledger", "check")), "after a restart"
    own = Path(buildah("mount", container))
    assert (own / "opt/dpsynth/bin/dpsynth-app").exists()
    assert not list((own / "data").iterdir()), "everything that must be kept is on the volume"


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
