"""Which files a table was opened with, and whether they are still the same."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dpsynth_core.errors import EngineError

GLOB = frozenset("*?[]{}")
"""What DuckDB takes for a pattern in the name of a file."""


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """A file as the system knows it."""

    path: str
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: str) -> Self:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            raise EngineError(f"There is no file at {path!r}; check its spelling.") from None
        except (OSError, ValueError):
            raise EngineError(f"The file {path!r} cannot be opened; check that you are allowed to read it.") from None
        if not stat.S_ISREG(found.st_mode):
            raise EngineError(f"{path!r} is not an ordinary file.")
        return cls(path=path, device=found.st_dev, inode=found.st_ino, size=found.st_size, modified=found.st_mtime_ns)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The files of a table, in order."""

    files: tuple[FileStamp, ...]

    @classmethod
    def of(cls, paths: Sequence[str]) -> Self:
        return cls(files=tuple(FileStamp.of(path) for path in paths))

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]

    @property
    def stamp(self) -> str:
        """The same as long as no file is replaced, changed, added or removed."""
        return hashlib.sha256(repr(self.files).encode()).hexdigest()

    def check(self) -> None:
        """Raise if a file is gone or was changed."""
        for file in self.files:
            if FileStamp.of(file.path) != file:
                raise EngineError(file_changed(file.path))


def file_changed(path: str) -> str:
    """What is said if a file is not the one that a table was opened with."""
    return (
        f"The file {path!r} was changed after the table was opened. Several passes must see the same rows, so nothing "
        "is released. Open the table again."
    )


def files_at(location: str) -> list[str]:
    """The file at a location, or the Parquet files of a folder by name."""
    if "://" in location:
        raise EngineError(
            f"Files of this machine are read, not {location.partition('://')[0]}:// addresses: that would need an "
            "extension, and none is downloaded. Mount or copy the files, or have a cluster read them (Spark Connect)."
        )
    path = Path(location)
    if path.is_dir():
        files = sorted(str(each) for each in path.rglob("*.parquet") if each.is_file())
        if not files:
            raise EngineError(f"The folder {location!r} holds no Parquet files.")
    else:
        files = [str(path)]
    strange = next((each for each in files if GLOB & set(each)), None)
    if strange is not None:
        raise EngineError(f"The name {strange!r} holds a sign that stands for a pattern of names; rename the file.")
    return files
