"""The head of the ledger: how many records it had when last used here, and the digest of the newest.

It is a small file beside the installation key, under a keyed digest, and is written as the key is made. A ledger that
is missing, empty, shortened or older than its head is therefore noticed, and a key without a head is one that comes
from elsewhere. The head follows the database: it is moved on after a record is committed and before the record is
used. A crash in between leaves the head behind, which the next use makes up for; nothing was drawn meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpsynth_core.errors import LedgerError
from dpsynth_core.ledger.chain import START, Link

_MAX_BYTES = 1_000


@dataclass(frozen=True, kw_only=True)
class Head:
    """The head in a file, under a key."""

    file: Path
    key: bytes

    def read(self) -> Link | None:
        """What it remembers; None if there is no such file.

        Raises:
            LedgerError: It cannot be read, was changed, or belongs to another key.
        """
        try:
            with open(self.file, "rb") as stored:
                content = stored.read(_MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(f"The ledger's head at {str(self.file)!r} cannot be read: {error.strerror}.") from None
        try:
            position, digest, seal = json.loads(content)
            link = Link(position=int(position), digest=str(digest))
            intact = hmac.compare_digest(self._seal(link).encode(), str(seal).encode())
        except (ValueError, TypeError, OverflowError, RecursionError):
            intact = False
        if not intact:
            raise LedgerError(
                f"The ledger's head at {str(self.file)!r} was changed, or belongs to another installation key. Restore "
                "it from a backup, together with the key."
            )
        return link

    def advance(self, link: Link) -> None:
        """Remember a later link; on return it is on disk. An earlier one changes nothing."""
        with locked(self.file):
            before = self.read()
            if before is None or before.position < link.position:
                self.write(link)

    def start(self) -> None:
        """For a key that is being made: whatever head there was belonged to another one."""
        self.write(START)

    def write(self, link: Link) -> None:
        """Replace the file in one step."""
        content = json.dumps([link.position, link.digest, self._seal(link)]).encode()
        try:
            handle, draft = tempfile.mkstemp(dir=self.file.parent, prefix=".head.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, self.file)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft)
                raise
            sync_directory(self.file.parent)
        except OSError as error:
            raise LedgerError(
                f"The ledger's head at {str(self.file)!r} cannot be written: {error.strerror}. Make room, or set "
                "DPSYNTH_HEAD_FILE to a place on a local disk that this account may write to."
            ) from error

    def _seal(self, link: Link) -> str:
        text = json.dumps(["dpsynth ledger head", link.position, link.digest])
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file that several processes replace."""
    try:
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LedgerError(
            f"The ledger's head at {str(path)!r} cannot be locked: {error.strerror}. Set DPSYNTH_HEAD_FILE to a place "
            "on a local disk that this account may write to."
        ) from error
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)  # which gives the lock back


def _lock(handle: int) -> None:
    if os.name == "posix":
        import fcntl  # noqa: PLC0415  not on Windows

        fcntl.flock(handle, fcntl.LOCK_EX)
    else:  # pragma: no cover
        import msvcrt  # noqa: PLC0415  only on Windows

        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]


def sync_directory(path: Path) -> None:
    """See that a file's new name is on disk."""
    if os.name != "posix":
        return  # Only POSIX lets a directory be opened and flushed.
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
