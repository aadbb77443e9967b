"""Files beside the ledger, each named by the SHA-256 of its bytes: releases that were paid for, and private evidence.

What epsilon was spent on is never lost with a session. A record of the ledger holds a file's name, so the ledger's
chain covers it: a file that was changed is noticed. Releases and bundles hold what may be published, and nothing else
that depends on private rows; evidence is private and has a folder of its own. Nothing is ever removed here. When a
store is full, nothing more is taken in, and whoever asks is told so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.database import restrict
from dpsynth_core.ledger.head import sync_directory

VARIABLES = {"release": "DPSYNTH_RELEASES", "evidence": "DPSYNTH_EVIDENCE"}


@dataclass(frozen=True, kw_only=True)
class FileStore:
    """A folder of files, each named by what it holds."""

    folder: Path
    max_bytes: int
    """What all files may take together."""
    what: Literal["release", "evidence"] = "release"
    """What a file holds, and how its name ends."""

    @property
    def _suffix(self) -> str:
        return f".{self.what}"

    @property
    def nbytes(self) -> int:
        """What all files take together; 0 where there is no folder yet."""
        try:
            return sum(entry.stat().st_size for entry in os.scandir(self.folder) if entry.name.endswith(self._suffix))
        except FileNotFoundError:
            return 0

    @property
    def full(self) -> bool:
        """Whether nothing more can be taken in."""
        return self.nbytes >= self.max_bytes

    def put(self, content: bytes) -> str:
        """Keep a file; on return it is on disk, for this account of the machine alone. Returns its name.

        Raises:
            LedgerError: There is no room, or the folder cannot be written to.
        """
        name = hashlib.sha256(content).hexdigest()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            restrict(self.folder)
            path = self._path(name)
            if path.exists():
                return name
            if self.nbytes + len(content) > self.max_bytes:
                raise LedgerError(
                    f"The store at {str(self.folder)!r} is full: it may hold {self.max_bytes:,} bytes. "
                    "Whoever runs this installation can set DPSYNTH_RELEASES_GB to more."
                )
            self._write(path, content)
        except OSError as error:
            raise LedgerError(
                f"The {self.what} cannot be kept at {str(self.folder)!r}: {error.strerror or error}. Make room, or set "
                f"{VARIABLES[self.what]} to a folder on a local disk that this account may write to."
            ) from error
        return name

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return self._path(name).exists()

    def get(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            LedgerError: The file is missing, cannot be read, or was changed.
        """
        try:
            content = self._path(name).read_bytes()
        except FileNotFoundError:
            raise LedgerError(
                f"Its file is missing from {str(self.folder)!r}. It was removed, or it was made on another machine: "
                f"restore the folder from a backup, or set {VARIABLES[self.what]} to the one that is shared."
            ) from None
        except OSError as error:
            raise LedgerError(f"Its file cannot be read: {error.strerror or error}.") from None
        if hashlib.sha256(content).hexdigest() != name:
            raise LedgerError("Its file was changed or is damaged. Restore it from a backup.")
        return content

    def _path(self, name: str) -> Path:
        if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise LedgerError("This is not the name of a stored file.")
        return self.folder / f"{name}{self._suffix}"

    def _write(self, path: Path, content: bytes) -> None:
        """In one step: a crash leaves the whole file, or none under this name."""
        handle, draft = tempfile.mkstemp(dir=self.folder, prefix=".draft.")  # which only its owner can read
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
            raise
        sync_directory(self.folder)
