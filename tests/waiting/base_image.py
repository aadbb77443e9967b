"""A base image for the container test: the ordinary one from its registry, or else one of Debian's own packages.

From a registry the build is the one that everybody runs. Otherwise Debian is unpacked by debootstrap, and the packages
of Python come from a folder that this machine's pip has filled, so that the build itself needs no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting.server import ROOT

ORDINARY = "docker.io/library/python:3.11-slim"
SUITE = "bookworm"
PULL_SECONDS = 300
MINUTES = 60.0


@dataclass(frozen=True, kw_only=True)
class BaseImage:
    """What an image is built on, and what its build must be given besides."""

    name: str
    options: tuple[str, ...] = ()


@contextmanager
def base_image(buildah: str, folder: Path) -> Iterator[BaseImage]:
    """The named one, the ordinary one or one made of Debian's packages; skips with the reason where none can be had."""
    name = os.environ.get("DPSYNTH_BASE_IMAGE", ORDINARY)
    if _pulled(buildah, name):
        yield BaseImage(name=name)
        return
    debootstrap = shutil.which("debootstrap") or shutil.which("debootstrap", path="/usr/sbin")
    if debootstrap is None or os.geteuid() != 0:
        pytest.skip(f"{name} cannot be pulled, and Debian cannot be unpacked here: that needs root and debootstrap")
    made = f"localhost/dpsynth-base-{os.getpid()}"
    _unpack(debootstrap, folder / "debian")
    container = _run(buildah, "from", "scratch")
    try:
        _run(buildah, "add", container, str(folder / "debian"), "/")
        _run(buildah, "commit", container, made)
    finally:
        _run(buildah, "rm", container)
        shutil.rmtree(folder / "debian")
    try:
        yield BaseImage(name=made, options=_packages(folder))
    finally:
        _run(buildah, "rmi", "--force", made)


def _pulled(buildah: str, name: str) -> bool:
    command = [buildah, "pull", "--policy", "missing", name]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=PULL_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _unpack(debootstrap: str, folder: Path) -> None:
    command = [debootstrap, "--variant=minbase", "--include=python3,python3-venv", SUITE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=15 * MINUTES)
    if done.returncode:
        pytest.skip(f"debootstrap could not unpack Debian {SUITE}: {done.stdout.splitlines()[-1:]}")
    for archive in (folder / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    if not (folder / f"usr/bin/python{sys.version_info.major}.{sys.version_info.minor}").exists():
        pytest.skip(f"the packages of this Python are not for the one of Debian {SUITE}")


def _packages(folder: Path) -> tuple[str, ...]:
    """Options for a build that takes the pinned packages from a folder, and no others."""
    wheels, settings = folder / "wheels", folder / "pip.conf"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(wheels)]
    pins = [part for name in ("", "-gan", "-postgres") for part in ("-c", str(ROOT / f"requirements{name}.txt"))]
    subprocess.run([*pip, *pins, f"{ROOT}[postgres]", "hatchling>=1.27"], check=True, timeout=20 * MINUTES)
    for own in wheels.glob("dpsynth_core-*.whl"):
        own.unlink()  # the build makes its own
    settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n", encoding="utf-8")
    return ("--volume", f"{wheels}:/wheels:ro", "--volume", f"{settings}:/etc/pip.conf:ro")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10 * MINUTES)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()
