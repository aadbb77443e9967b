"""Portions of an audit that are done, kept in a folder: an audit that was stopped goes on where it was.

What is kept belongs to one source of the package, one seed and one depth; with another source it is not looked at.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dpsynth_core.audit.checks import AuditCheck, Layer
from dpsynth_core.audit.last_summary import source_digest

LOOSE_LEVEL = 0.05
"""At which false alarms are common enough to be counted."""


@dataclass(frozen=True, kw_only=True)
class MutantResult:
    name: str
    mistake: str
    layers: tuple[Layer, ...]
    """Those that caught it; none if it survived."""


@dataclass(frozen=True, kw_only=True)
class FalseAlarms:
    """What repeating the statistical part on sound mechanisms came to."""

    repetitions: int
    """With different seeds, at reduced size."""
    alarms: int
    """Repetitions in which any check failed at the level of the suite."""
    checks: int
    """Single checks made at the loose level."""
    loose_alarms: int
    loose_level: float = LOOSE_LEVEL
    """Probability of a false alarm that each of them may have."""

    def __add__(self, other: FalseAlarms) -> FalseAlarms:
        counts = ("repetitions", "alarms", "checks", "loose_alarms")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in counts})


PortionResult: TypeAlias = list[AuditCheck] | MutantResult | FalseAlarms


@dataclass(frozen=True, kw_only=True)
class KeptPortions:
    """One file for each portion, in a folder of its own for each source, seed and depth."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, *, seed: int, deep: bool) -> KeptPortions:
        """The folder for the source as it is now."""
        own = folder / f"{source_digest()}-{seed}-{'deep' if deep else 'quick'}"
        own.mkdir(parents=True, exist_ok=True)
        return cls(folder=own)

    @classmethod
    def last_seed(cls, folder: Path, *, deep: bool) -> int | None:
        """The seed of the audit of this source that was begun last."""
        begun = sorted(
            folder.glob(f"{source_digest()}-*-{'deep' if deep else 'quick'}"), key=lambda p: p.stat().st_mtime
        )
        return int(begun[-1].name.split("-")[1]) if begun else None

    def _path(self, title: str) -> Path:
        return self.folder / f"{zlib.crc32(title.encode()):08x}.json"

    def add(self, title: str, result: PortionResult, seconds: float) -> None:
        """Keep what a portion came to."""
        kind = "checks" if isinstance(result, list) else type(result).__name__
        values: Any = [asdict(check) for check in result] if isinstance(result, list) else asdict(result)
        text = json.dumps({"title": title, "seconds": seconds, "kind": kind, "result": values})
        part = self._path(title).with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self._path(title))

    def find(self, title: str) -> tuple[PortionResult, float] | None:
        """What it came to and how long it took, if it is kept."""
        path = self._path(title)
        if not path.exists():
            return None
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["title"] != title:
            return None
        values, seconds = kept["result"], float(kept["seconds"])
        match kept["kind"]:
            case "checks":
                return [AuditCheck(**check) for check in values], seconds
            case "MutantResult":
                return MutantResult(**{**values, "layers": tuple(values["layers"])}), seconds
            case _:
                return FalseAlarms(**values), seconds
