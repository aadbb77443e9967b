"""Where an installation keeps its ledger and its secret key.

Three environment variables, all optional: ``DPSYNTH_HOME``, ``DPSYNTH_LEDGER_URL`` and ``DPSYNTH_KEY_FILE``.
People who share a ledger must share the key file too: the key decides under which name a table is found.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from dpsynth_core.errors import DPSynthError, ParameterError

KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The places that belong to one installation.

    Example:
        >>> Settings.from_environment({"DPSYNTH_HOME": "/srv/dpsynth"}).key_file.name
        'installation.key'
    """

    home: Path
    """Directory for everything this installation keeps."""
    ledger_url: str = field(repr=False)
    """SQLAlchemy URL of the ledger; it may hold a password, so it is never printed."""
    key_file: Path
    """File with the secret that fingerprints are keyed with."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings; a variable that is missing or empty takes its default."""
        home = _absolute("DPSYNTH_HOME", environ) or platformdirs.user_data_path("dpsynth")
        return cls(
            home=home,
            ledger_url=_ledger_url(environ.get("DPSYNTH_LEDGER_URL", ""), home),
            key_file=_absolute("DPSYNTH_KEY_FILE", environ) or home / "installation.key",
        )

    def installation_key(self) -> bytes:
        """The 32 secret bytes of this installation, made on first use.

        A key that is there but unusable is an error, never a reason to make another: with another key every
        table would look new, and its budget would begin afresh.
        """
        if not os.path.lexists(self.key_file):
            _create_key(self.key_file)
        return _read_key(self.key_file)


def _absolute(variable: str, environ: Mapping[str, str]) -> Path | None:
    value = environ.get(variable, "")
    if not value:
        return None
    path = Path(value).expanduser()
    if not path.is_absolute():
        # A relative path would mean other accounts whenever the program is started from elsewhere.
        raise ParameterError(
            variable,
            value,
            allowed="an absolute path",
            remedy=f"Write for instance {str(path.absolute())!r}.",
        )
    return path


def _ledger_url(value: str, home: Path) -> str:
    if not value:
        # URL.create escapes what a path may hold and a URL may not.
        return sa.URL.create("sqlite", database=str(home / "ledger.db")).render_as_string(hide_password=False)
    try:
        url = sa.make_url(value)
    except ArgumentError:
        raise ParameterError(
            "DPSYNTH_LEDGER_URL",
            "(not shown: it may hold a password)",
            allowed="a SQLAlchemy URL",
            remedy="Write for instance 'postgresql+psycopg://user:password@host/database'.",
        ) from None
    file = url.database or ""
    if url.get_backend_name() == "sqlite" and not (Path(file).is_absolute() or file.startswith("file:/")):
        raise ParameterError(
            "DPSYNTH_LEDGER_URL",
            value,
            allowed="a SQLite file by its absolute path, or another database",
            remedy="Write four slashes before the path: 'sqlite:////srv/dpsynth/ledger.db'.",
        )
    return value


def _create_key(path: Path) -> None:
    """Make the key file in one step, so that no reader ever sees part of a key; the first of several wins."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".installation.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, a link never replaces a key that another process made in the meantime.
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            os.unlink(draft)
        _sync_directory(path.parent)
    except OSError as error:
        raise DPSynthError(
            f"The installation key cannot be created at {str(path)!r}: {error.strerror or error}. Set "
            "DPSYNTH_KEY_FILE to a place on a local disk that this account may write to."
        ) from error


def _sync_directory(path: Path) -> None:
    if os.name != "posix":
        return  # Only POSIX lets a directory be opened and flushed.
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_key(path: Path) -> bytes:
    remedy = (
        "Restore it from a backup or make it readable. Do not delete it: with another key the accounts that "
        "the ledger holds would no longer be found."
    )
    try:
        key = path.read_bytes()
    except OSError as error:
        raise DPSynthError(
            f"The installation key at {str(path)!r} cannot be read: {error.strerror or error}. {remedy}"
        ) from error
    if len(key) != KEY_BYTES:
        raise DPSynthError(
            f"The installation key at {str(path)!r} has {len(key)} bytes; allowed: {KEY_BYTES}. {remedy}"
        )
    return key
