"""Ends what a cluster computes for a program that is gone, however it went.

A worker of the app is killed when somebody cancels, and can tell the cluster nothing. So a small process of its own
waits until the one that started it has ended, and then ends its session on the cluster, queries included. A Spark that
was started on this machine ends by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

PACKAGE = Path(__file__).parents[3]
GIVE_UP_SECONDS = 60.0
"""For reaching a cluster that may be gone as well: the client's own patience is far longer."""


def session_address(url: str, session_id: str) -> str:
    """A cluster's address, with which a second client reaches the same session.

    Example:
        >>> session_address("sc://cluster:15002;use_ssl=true", "7")
        'sc://cluster:15002/;use_ssl=true;session_id=7'
    """
    place, _, more = url.partition(";")
    return f"{place.rstrip('/')}/;" + ";".join(filter(None, (more, f"session_id={session_id}")))


class SessionWatch:
    """The process that waits; it is told where the session is by a pipe, because an address may hold a token."""

    def __init__(self, url: str, session_id: str) -> None:
        search = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dpsynth_core.table.engines.spark_watch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": search},
            start_new_session=True,  # whatever ends the group of this process must not end it
        )
        assert self._process.stdin is not None  # noqa: S101  a pipe
        self._process.stdin.write(f"{session_address(url, session_id)}\n".encode())
        self._process.stdin.flush()

    def end(self) -> None:
        """Nothing is left to be ended."""
        self._process.kill()
        self._process.wait()


def main() -> None:
    """Wait for the end of whoever started this, then end its session."""
    address = sys.stdin.readline().strip()
    # Loaded now: when it is needed, somebody is waiting.
    from pyspark.sql.connect.client import SparkConnectClient  # noqa: PLC0415  an extra

    sys.stdin.read()  # until the pipe is closed, which the end of a process does
    giving_up = threading.Timer(GIVE_UP_SECONDS, os._exit, (1,))
    giving_up.daemon = True
    giving_up.start()
    SparkConnectClient(address).release_session()


if __name__ == "__main__":
    main()
