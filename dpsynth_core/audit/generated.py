"""Mistakes that were generated from the source itself, by class, and how many of them the audit notices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class GeneratedClass:
    """One class of mistakes; every single one was made in the source, and the audit was run on what came of it."""

    name: str
    caught: int
    harmless: int
    """Unnoticed, and no guarantee is broken: each has a reason that is written down."""
    missed: int
    """Unnoticed although a guarantee is broken, or nobody knows."""
    stopped: int
    """After which the program does not run, so that nothing is released."""

    @property
    def tried(self) -> int:
        return self.caught + self.harmless + self.missed + self.stopped

    @property
    def harmful(self) -> int:
        """Those that count: they change what is released in a way that breaks a guarantee."""
        return self.caught + self.missed


@dataclass(frozen=True, kw_only=True)
class GeneratedMistakes:
    """All classes, the source that they were made in, and why some are harmless."""

    source: str
    generated: int
    """Mistakes that the generator makes of that source; those not tried are left out of the score."""
    classes: tuple[GeneratedClass, ...]
    survivors: tuple[tuple[str, str, str], ...]
    """Where, what was done, and why it went unnoticed."""

    @property
    def caught(self) -> int:
        return sum(each.caught for each in self.classes)

    @property
    def harmful(self) -> int:
        return sum(each.harmful for each in self.classes)

    def to_dict(self) -> dict[str, Any]:
        """What travels with the package: figures, not places."""
        classes = [asdict(each) for each in self.classes]
        return {"source": self.source, "generated": self.generated, "classes": classes}

    @classmethod
    def from_rows(cls, rows: Iterable[dict[str, str]], *, source: str, generated: int) -> GeneratedMistakes:
        """From a table with one line for each mistake that was tried."""
        counts: dict[str, dict[str, int]] = {}
        survivors = []
        for row in rows:
            own = counts.setdefault(row["family"], {"caught": 0, "harmless": 0, "missed": 0, "stopped": 0})
            match row["outcome"]:
                case "caught":
                    own["caught"] += 1
                case "survived":
                    own["harmless" if row["why"].startswith("harmless") else "missed"] += 1
                    place, _, kind = row["name"].partition(": ")
                    survivors.append((place.rpartition(":")[0], kind, row["why"] or "not looked into"))
                case _:
                    own["stopped"] += 1
        classes = tuple(GeneratedClass(name=name, **own) for name, own in sorted(counts.items()))
        return cls(source=source, generated=generated, classes=classes, survivors=tuple(sorted(survivors)))


def generated_sentence(stored: dict[str, Any]) -> str:
    """For the home page: what was tried, by class."""
    classes = [GeneratedClass(**each) for each in stored["classes"]]
    caught, harmful = sum(each.caught for each in classes), sum(each.harmful for each in classes)
    named = ", ".join(f"{each.name} {each.caught} of {each.harmful}" for each in classes if each.harmful)
    return (
        f"Mistakes were also made in the source itself, one at a time: of {harmful} that break a guarantee, {caught} "
        f"were noticed ({named})."
    )
