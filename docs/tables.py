"""The README's table of mechanisms, written from the registry: ``python -m docs.tables``."""

from __future__ import annotations

from pathlib import Path

from dpsynth_core.mechanisms import MECHANISMS

README = Path(__file__).parents[1] / "README.md"
HEADER = "| mechanism | what it does | good for |\n|---|---|---|\n"


def mechanism_rows() -> str:
    """One row for each registered mechanism, in its own words."""
    return "".join(f"| `{key}` | {kind.summary} | {kind.good_for} |\n" for key, kind in MECHANISMS.items())


def updated(readme: str) -> str:
    """The README with the table as the registry has it."""
    before, rest = readme.split(HEADER)
    return before + HEADER + mechanism_rows() + rest[rest.index("\n\n") + 1 :]


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
