"""Spark Connect servers of this machine, alone or with a small cluster, from the scripts that come with pyspark."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting.server import free_port

PROJECT = Path(__file__).parents[2]
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java processes that live for a minute."""
START_SECONDS = 180


@dataclass(frozen=True, kw_only=True)
class ConnectServer:
    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """At once, with everything that it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def connect_server(
    folder: Path, *, package: bool = True, settings: Mapping[str, str] | None = None, master: str = "local[2]"
) -> Iterator[ConnectServer]:
    """A server with two cores, or of a cluster; without the package its workers do not have dpsynth_core."""
    port = free_port()
    chosen = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.log.level": "ERROR",
        "spark.executor.heartbeatInterval": "60s",
        "spark.network.timeout": "600s",
        **(settings or {}),
    }
    words = [word for name, value in chosen.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    order = ["spark-submit", "--class", server, "--master", master, *words, "spark-internal"]
    process = _java(order, folder, "server", package=package)
    running = ConnectServer(process=process, port=port)
    try:
        _wait_for(running)
        yield running
    finally:
        running.kill()


@contextmanager
def standalone_cluster(folder: Path, *, workers: int) -> Iterator[str]:
    """The address of a master with workers of one core each, every one a process of its own; all on this machine."""
    port = free_port()
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    order = ["spark-class", "org.apache.spark.deploy.master.Master", *place, "--port", str(port)]
    with ExitStack() as stack:
        master = ConnectServer(process=_java(order, folder, "master"), port=port)
        stack.callback(master.kill)
        _wait_for(master)
        address = f"spark://127.0.0.1:{port}"
        for number in range(workers):
            own = folder / f"worker-{number}"
            own.mkdir()
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(own)]
            order = ["spark-class", "org.apache.spark.deploy.worker.Worker", *place, *limits, address]
            stack.callback(ConnectServer(process=_java(order, own, "worker"), port=0).kill)
        yield address


def _java(order: list[str], folder: Path, name: str, *, package: bool = True) -> subprocess.Popen[bytes]:
    """One of Spark's own scripts, in a session of its own, with its log."""
    import pyspark

    script, *words = order
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(Path(pyspark.__file__).parent / "bin" / script), *words],
            cwd=folder,
            env=_environment(package),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _environment(package: bool) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    chosen = {"PYSPARK_PYTHON": sys.executable, "JAVA_TOOL_OPTIONS": QUICK_START, "SPARK_LOCAL_IP": "127.0.0.1"}
    return kept | chosen | ({"PYTHONPATH": str(PROJECT)} if package else {})


def _wait_for(server: ConnectServer) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("The Spark Connect server did not start.")


def reported(port: int, what: str) -> list[dict[str, Any]]:
    """What a Spark says of its one application, such as "executors"; port is that of its web page."""
    address = f"http://127.0.0.1:{port}/api/v1/applications"
    (application,) = _answer(address)
    return _answer(f"{address}/{application['id']}/{what}")


def _answer(address: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(address) as answer:  # noqa: S310  of this machine
        found: list[dict[str, Any]] = json.load(answer)
    return found
