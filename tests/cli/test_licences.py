"""What the program is made of, as people and as machines read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dpsynth_core.cli import main
from dpsynth_core.cli.licences import _checkout, packages

ROOT = Path(__file__).parents[2]


def test_every_pinned_package_is_listed_with_a_version_and_a_licence() -> None:
    found = {canonicalize_name(each.name): each for each in packages()}
    for file in ("requirements.txt", "requirements-gan.txt", "requirements-postgres.txt"):
        for line in (ROOT / file).read_text().splitlines():
            if line and not line.startswith(("#", "-")):
                pinned = Requirement(line)
                each = found[canonicalize_name(pinned.name)]
                assert pinned.specifier.contains(each.version)
    assert not [each.name for each in found.values() if each.licence == "not stated"]


def test_ranges_of_the_wheel_allow_what_is_pinned() -> None:
    project = _checkout()
    ranges = {
        canonicalize_name(Requirement(line).name): Requirement(line).specifier
        for line in (
            *project["dependencies"],
            *(each for extra in project["optional-dependencies"].values() for each in extra),
        )
    }
    for file in ("requirements.txt", "requirements-gan.txt", "requirements-postgres.txt"):
        for line in (ROOT / file).read_text().splitlines():
            if line and not line.startswith(("#", "-")):
                pinned = Requirement(line)
                (exact,) = pinned.specifier
                named = canonicalize_name(pinned.name)
                # The driver's compiled half comes with the extra that names the driver.
                assert named == "psycopg-binary" or ranges[named].contains(exact.version), line


@pytest.fixture
def bill(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The bill of materials as the command prints it."""
    assert main(["licences", "--sbom"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_the_bill_of_materials_is_valid(bill: dict[str, Any]) -> None:
    """By CycloneDX's own schema, in which nothing unknown is allowed."""
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(bill)) is None
    for mistake in ({"bomFormat": "SPDX"}, {"colour": "blue"}, {"components": [{"name": "x"}]}):
        assert validator.validate_str(json.dumps(bill | mistake)) is not None


def test_the_bill_of_materials_is_complete_and_refers_to_itself(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    known = {each["bom-ref"] for each in bill["components"]} | {"dpsynth-core"}
    assert len(known) == len(bill["components"]) + 1
    for each in bill["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= known
    assert all(each["purl"].startswith("pkg:pypi/") for each in bill["components"])
