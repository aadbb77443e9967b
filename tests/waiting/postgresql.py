"""A PostgreSQL server of a test's own, which can be stopped and started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.waiting.server import free_port

# Debian keeps the server's programs in a folder for each version, outside of the PATH.
_DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
PROGRAM = shutil.which("postgres") or (str(_DEBIAN[-1]) if _DEBIAN else None)
MISSING = (
    "there is no PostgreSQL server here (Debian: apt install postgresql)"
    if PROGRAM is None
    else "there is no driver here (pip install psycopg[binary])"
    if find_spec("psycopg") is None
    else ""
)
"""Why there is no PostgreSQL to test with; empty where there is."""


@dataclass(frozen=True, kw_only=True)
class PostgreSQL:
    """A server with an empty database."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://ledger@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        assert PROGRAM is not None
        command = [str(Path(PROGRAM).resolve().parent / program), *arguments]
        # PostgreSQL refuses to run as the superuser.
        user = {"user": "nobody"} if os.geteuid() == 0 else {}
        subprocess.run(command, check=True, timeout=120, capture_output=True, cwd=self.folder, **user)  # type: ignore[call-overload]

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = self.folder / "log"
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-l", str(log), "-w", "-o", options, "start")

    def stop(self) -> None:
        """At once, in the middle of whatever it is doing."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A server that ends with the block, and its files with it."""
    # Not among pytest's own folders, which are closed to the account that the server runs under.
    with tempfile.TemporaryDirectory(prefix="dpsynth-postgresql-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        server = PostgreSQL(folder=folder, port=free_port())
        server.run("initdb", "-D", str(folder / "data"), "-U", "ledger", "--auth=trust", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
