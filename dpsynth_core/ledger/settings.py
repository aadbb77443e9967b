"""Where an installation keeps its ledger, its secret key, the releases that were paid for and evidence on them.

Seven environment variables, all optional: ``DPSYNTH_HOME``, ``DPSYNTH_LEDGER_URL``, ``DPSYNTH_KEY_FILE``,
``DPSYNTH_HEAD_FILE``, ``DPSYNTH_RELEASES``, ``DPSYNTH_EVIDENCE`` and ``DPSYNTH_RELEASES_GB``, which limits both stores.
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
from dpsynth_core.ledger.database import restrict
from dpsynth_core.ledger.file_store import FileStore
from dpsynth_core.ledger.head import Head, locked, sync_directory

KEY_BYTES = 32
RELEASES_GB = 10
"""What the stored releases of an installation may take together, unless it says otherwise."""


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
    head_file: Path
    """File that remembers how far the ledger had come; by default beside the key."""
    release_store: FileStore
    """Where releases that were paid for, and bundles that were submitted or approved, are kept."""
    evidence_store: FileStore
    """Where the private evidence on submissions is kept."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings; a variable that is missing or empty takes its default."""
        home = _absolute("DPSYNTH_HOME", environ) or platformdirs.user_data_path("dpsynth")
        key_file = _absolute("DPSYNTH_KEY_FILE", environ) or home / "installation.key"
        return cls(
            home=home,
            ledger_url=_ledger_url(environ.get("DPSYNTH_LEDGER_URL", ""), home),
            key_file=key_file,
            head_file=_absolute("DPSYNTH_HEAD_FILE", environ) or key_file.with_suffix(".head"),
            release_store=FileStore(
                folder=_absolute("DPSYNTH_RELEASES", environ) or home / "releases",
                max_bytes=_gigabytes("DPSYNTH_RELEASES_GB", environ),
            ),
            evidence_store=FileStore(
                folder=_absolute("DPSYNTH_EVIDENCE", environ) or home / "evidence",
                max_bytes=_gigabytes("DPSYNTH_RELEASES_GB", environ),
                what="evidence",
            ),
        )

    def installation_key(self) -> bytes:
        """The 32 secret bytes of this installation, made on first use.

        A key that is there but unusable is an error, never a reason to make another: with another key every
        table would look new, and its budget would begin afresh.
        """
        if not os.path.lexists(self.key_file):
            _create_key(self.key_file, self.head_file)
        key = _read_key(self.key_file)
        _restrict(self.home, self.key_file)
        return key


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


def _gigabytes(variable: str, environ: Mapping[str, str]) -> int:
    value = environ.get(variable, "") or str(RELEASES_GB)
    if not value.isascii() or not value.isdigit() or not 1 <= len(value) <= 6:
        raise ParameterError(variable, value[:20], allowed="a whole number of gigabytes, up to 999999")
    return int(value) * 2**30


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


def _create_key(path: Path, head: Path) -> None:
    """Make the key file in one step, so that no reader ever sees part of a key; the first of several wins.

    The head of its ledger is there before the key: a key without a head comes from elsewhere, or lost it.
    """
    try:
        for place in (path, head):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(head):
            if os.path.lexists(path):
                return
            key = os.urandom(KEY_BYTES)
            Head(file=head, key=key).start()
            handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".installation.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(key)
                    file.flush()
                    os.fsync(file.fileno())
                # Unlike a rename, a link never replaces a key that was put there in the meantime.
                with contextlib.suppress(FileExistsError):
                    os.link(draft, path)
            finally:
                os.unlink(draft)
            sync_directory(path.parent)
    except OSError as error:
        raise DPSynthError(
            f"The installation key cannot be created at {str(path)!r}: {error.strerror or error}. Set "
            "DPSYNTH_KEY_FILE to a place on a local disk that this account may write to."
        ) from error


def _restrict(home: Path, key_file: Path) -> None:
    """Keep other accounts of this machine out."""
    for path in (home, key_file):
        try:
            restrict(path)
        except FileNotFoundError:
            continue  # key and ledger are both elsewhere
        except OSError as error:
            raise DPSynthError(
                f"Other accounts of this machine can open {str(path)!r}, and it cannot be closed to them: "
                f"{error.strerror or error}. Its owner must do that, for instance with 'chmod go-rwx'."
            ) from None


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
