"""The summary of the last deep audit, which travels with the package, in words for people. Quick to import."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

import dpsynth_core
from dpsynth_core.audit.checks import LAYERS
from dpsynth_core.audit.generated import generated_sentence

SUMMARY = "last.json"


def source_digest() -> str:
    """A short name for the source of the package, as it is on disk."""
    root = Path(dpsynth_core.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def last_summary() -> dict[str, Any] | None:
    """The summary that travels with the package; None if there is none."""
    stored = resources.files("dpsynth_core.audit") / SUMMARY
    if not stored.is_file():
        return None
    summary: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8"))
    return summary


def headline(stored: dict[str, Any]) -> str:
    mutants = stored["mutants"]
    caught = sum(bool(mutant["layers"]) for mutant in mutants)
    checks = sum(layer["passed"] + layer["failed"] for layer in stored["layers"].values())
    failed = sum(layer["failed"] for layer in stored["layers"].values())
    result = "none succeeded" if not failed else f"{failed} succeeded"
    # "private_pgm with delta" is the same mechanism once more; what is no mechanism has a name of several words.
    keys = {name.removesuffix(" with delta") for name in stored["strongest"]}
    mechanisms = sum(" " not in key for key in keys)
    return (
        f"On {when(stored)}, {checks:,} checks tried to break the guarantees of {mechanisms} mechanisms; {result}. "
        f"{caught} of {len(mutants)} mechanisms that were broken on purpose were caught."
        + (f" {generated_sentence(stored['generated'])}" if stored.get("generated") else "")
    )


def when(stored: dict[str, Any]) -> str:
    day = datetime.fromisoformat(stored["when"])
    return f"{day.day} {day:%B %Y}"


def standing(stored: dict[str, Any]) -> str:
    if stored["digest"] == source_digest():
        return f"This is exactly the source that was audited (version {stored['version']}, {stored['digest']})."
    return (
        f"The source has changed since (audited: version {stored['version']}, {stored['digest']}); the quick audit "
        "runs with every change, the deep one with `make audit`."
    )


def layer_rows(stored: dict[str, Any]) -> list[dict[str, object]]:
    return [
        {"check": layer, "passed": counts["passed"], "failed": counts["failed"], "asks": LAYERS[layer]}
        for layer, counts in stored["layers"].items()
    ]


def mutant_rows(stored: dict[str, Any]) -> list[dict[str, object]]:
    caught = [", ".join(mutant["layers"]) or "nothing" for mutant in stored["mutants"]]
    return [
        {"broken on purpose": mutant["name"], "mistake": mutant["mistake"], "caught by": layers}
        for mutant, layers in zip(stored["mutants"], caught, strict=True)
    ]
