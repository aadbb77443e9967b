"""Releases that were paid for, as files beside the ledger: what epsilon was spent on is never lost with a session.

A file is named by the SHA-256 of its bytes, and the settlement of its charge holds that name, so the ledger's chain
covers it: a file that was changed is noticed. The files hold what a release bundle holds, and nothing else that depends
on private rows. Nothing is ever removed here. When the store is full, new releases are not taken in, and whoever asks
is told so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.database import restrict
from dpsynth_core.ledger.head import sync_directory

SUFFIX = ".release"


@dataclass(frozen=True, kw_only=True)
class ReleaseStore:
    """A folder of files, each named by what it holds."""

    folder: Path
    max_bytes: int
    """What all files may take together."""

    @property
    def nbytes(self) -> int:
        """What all files take together; 0 where there is no folder yet."""
        try:
            return sum(entry.stat().st_size for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX))
        except FileNotFoundError:
            return 0

    @property
    def full(self) -> bool:
        """Whether nothing more can be taken in."""
        return self.nbytes >= self.max_bytes

    def put(self, content: bytes) -> str:
        """Keep a release; on return it is on disk, for this account of the machine alone. Returns its name.

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
                    f"The store of releases at {str(self.folder)!r} is full: it may hold {self.max_bytes:,} bytes. "
                    "Whoever runs this installation can set DPSYNTH_RELEASES_GB to more."
                )
            self._write(path, content)
        except OSError as error:
            raise LedgerError(
                f"The release cannot be kept at {str(self.folder)!r}: {error.strerror or error}. Make room, or set "
                "DPSYNTH_RELEASES to a folder on a local disk that this account may write to."
            ) from error
        return name

    def get(self, name: str) -> bytes:
        """The bytes of a release.

        Raises:
            LedgerError: The file is missing, cannot be read, or was changed.
        """
        try:
            content = self._path(name).read_bytes()
        except FileNotFoundError:
            raise LedgerError(
                f"Its file is missing from {str(self.folder)!r}. It was removed, or the release was made on another "
                "machine: restore the folder from a backup, or set DPSYNTH_RELEASES to the one that is shared."
            ) from None
        except OSError as error:
            raise LedgerError(f"Its file cannot be read: {error.strerror or error}.") from None
        if hashlib.sha256(content).hexdigest() != name:
            raise LedgerError("Its file was changed or is damaged. Restore it from a backup.")
        return content

    def _path(self, name: str) -> Path:
        if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise LedgerError("This is not the name of a release.")
        return self.folder / f"{name}{SUFFIX}"

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
