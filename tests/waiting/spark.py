"""Spark Connect servers of this machine, from the scripts that come with pyspark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    folder: Path, *, package: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[ConnectServer]:
    """A server with two cores; without the package its workers do not have dpsynth_core."""
    import pyspark

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
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [submit, "--class", server, "--master", "local[2]", *words, "spark-internal"],
            cwd=folder,
            env=_environment(package),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    running = ConnectServer(process=process, port=port)
    try:
        _wait_for(running)
        yield running
    finally:
        running.kill()


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
