"""List what this program is made of: every package that it needs, with version and licence.

With ``--sbom`` the list is a bill of materials in CycloneDX's JSON, for tools that look for known weaknesses.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from dpsynth_core.cli.terminal import printable

NAME = "dpsynth-core"
_MAX_LICENCE = 60
"""Characters; some packages put the whole text into the field."""


@dataclass(frozen=True, kw_only=True)
class Package:
    """An installed package."""

    name: str
    version: str
    licence: str
    is_expression: bool
    """Whether that is an SPDX expression, as newer packages state it."""
    needs: tuple[str, ...]
    """Installed packages that it needs, by their canonical names."""

    @property
    def reference(self) -> str:
        """By which tools know it."""
        return f"pkg:pypi/{canonicalize_name(self.name)}@{self.version}"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of ``licences``."""
    command.add_argument("--sbom", action="store_true", help="as a bill of materials: CycloneDX 1.6, JSON")


def run(chosen: argparse.Namespace) -> None:
    """Write the list to standard output."""
    found = packages()
    if chosen.sbom:
        print(json.dumps(bill_of_materials(found), indent=2))
        return
    widths = [max(len(getattr(each, part)) for each in found) for part in ("name", "version")]
    for each in found:
        print(printable(f"{each.name:<{widths[0]}}  {each.version:<{widths[1]}}  {each.licence}"))


def packages() -> tuple[Package, ...]:
    """Everything that is needed and installed, extras included where they are, by name."""
    found: dict[str, Package] = {}
    waiting = [(canonicalize_name(each.name), each.extras) for each in _own_requirements()]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, frozenset(extras)) in seen or not _is_installed(name):
            continue  # also an extra that is not installed, or a package for another system
        seen.add((name, frozenset(extras)))
        known = metadata.distribution(name)
        needed = [each for each in _parsed(known.requires or ()) if _applies(each, extras)]
        needed = [each for each in needed if _is_installed(each.name)]
        names = {canonicalize_name(each.name) for each in needed} | set(found[name].needs if name in found else ())
        found[name] = Package(
            name=known.metadata["Name"],
            version=known.version,
            licence=_licence(known),
            is_expression=_expression(known) is not None,
            needs=tuple(sorted(names)),
        )
        waiting += [(canonicalize_name(each.name), each.extras) for each in needed]
    return tuple(found[name] for name in sorted(found))


def bill_of_materials(found: tuple[Package, ...]) -> dict[str, Any]:
    """The list as CycloneDX writes it."""
    by_name: dict[str, str] = {canonicalize_name(each.name): each.reference for each in found}
    own = {"type": "application", "name": NAME, "version": _own_version(), "bom-ref": NAME}
    direct = sorted(
        {by_name[name] for each in _own_requirements() if (name := canonicalize_name(each.name)) in by_name}
    )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [
            {
                "type": "library",
                "bom-ref": each.reference,
                "name": each.name,
                "version": each.version,
                "purl": each.reference,
                "licenses": [
                    {"expression": each.licence} if each.is_expression else {"license": {"name": each.licence}}
                ],
            }
            for each in found
        ],
        "dependencies": [
            {"ref": NAME, "dependsOn": direct},
            *({"ref": each.reference, "dependsOn": [by_name[name] for name in each.needs]} for each in found),
        ],
    }


def _own_requirements() -> list[Requirement]:
    """As installed, or from the checkout."""
    try:
        return _parsed(metadata.requires(NAME) or ())
    except metadata.PackageNotFoundError:
        project = _checkout()
        extras = project.get("optional-dependencies", {}).values()
        return _parsed([*project["dependencies"], *(line for extra in extras for line in extra)])


def _own_version() -> str:
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return str(_checkout()["version"])


def _checkout() -> dict[str, Any]:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)["project"])


def _parsed(lines: Any) -> list[Requirement]:
    parsed = []
    for line in lines:
        try:
            parsed.append(Requirement(line))
        except InvalidRequirement:  # an old package's own words; it is listed where somebody else needs it
            continue
    return parsed


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _expression(known: metadata.Distribution) -> str | None:
    stated = known.metadata.get_all("License-Expression")
    return str(stated[0]) if stated else None


def _licence(known: metadata.Distribution) -> str:
    """As the package states it: an SPDX expression, else its classifiers, else the first line of its own text."""
    about, expression = known.metadata, _expression(known)
    if expression is not None:
        return expression
    marks = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    if marks:
        return ", ".join(marks)
    text = "\n".join(about.get_all("License") or ())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_MAX_LICENCE] if lines else "not stated"
