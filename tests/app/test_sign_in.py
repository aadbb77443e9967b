"""What an identity token makes of somebody, and that a mistake in the settings lets nobody in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit import config
from streamlit.runtime.secrets import secrets_singleton

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.ledger.people import NOBODY, ONE_PERSON, ROLES, Person
from pages.shared import sign_in
from pages.shared.layout import roles_for
from pages.shared.session import Session
from pages.shared.sign_in import RoleMap

MAP = RoleMap.from_secrets({"steward": "stewards", "reviewer": ["board", "heads"]})
CLAIMS = {"iss": "https://id", "sub": "7", "exp": 100.0, "name": "Ada", "groups": ["board"]}


def person(**change: Any) -> Person:
    return MAP.person({**CLAIMS, **change}, now=50.0)


def test_a_person_is_issuer_and_subject_with_the_roles_of_the_groups() -> None:
    assert person() == Person(subject="https://id 7", name="Ada", roles=frozenset({"reviewer"}))
    assert person(name="Somebody else", groups="stewards").subject == person().subject
    assert person(iss="https://other").subject != person().subject
    assert person(groups=["Board", "boards", 1, None]).roles == frozenset()
    assert person(groups={"board": True}).roles == frozenset()


@pytest.mark.parametrize(
    "change",
    [{"exp": 50.0}, {"exp": None}, {"exp": "100"}, {"exp": True}, {"sub": ""}, {"sub": 7}, {"iss": ""}, {"iss": None}],
)
def test_an_expired_or_incomplete_token_is_nobody(change: dict[str, Any]) -> None:
    assert person(**change) is NOBODY


@pytest.mark.parametrize("section", [{}, {"claim": "groups"}, {"stewart": ["x"]}, {"steward": ["x"], "admin": ["y"]}])
def test_roles_that_are_missing_or_misspelled_let_nobody_in(section: dict[str, Any]) -> None:
    with pytest.raises(DPSynthError, match=r"\[roles\]"):
        RoleMap.from_secrets(section)


def test_a_subject_of_any_length_is_refused_before_the_ledger() -> None:
    with pytest.raises(ParameterError, match="subject"):
        person(sub="x" * 2_000)


@pytest.fixture
def secrets_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's secrets are read from."""
    file = tmp_path / "secrets.toml"
    option = config.get_option
    monkeypatch.setattr(config, "get_option", lambda key: [str(file)] if key == "secrets.files" else option(key))
    monkeypatch.setattr(secrets_singleton, "_secrets", None)
    return file


def test_without_a_file_there_is_one_person(secrets_file: Path) -> None:
    assert not secrets_file.exists()
    assert not sign_in.is_set_up()
    assert sign_in.visitor() is ONE_PERSON


def test_a_file_that_cannot_be_read_is_no_open_door(secrets_file: Path) -> None:
    secrets_file.write_text("[auth\nclient_id =")
    for ask in (sign_in.is_set_up, sign_in.visitor):
        with pytest.raises(DPSynthError, match="cannot be read"):
            ask()


def test_outside_of_a_page_nobody_is_signed_in(secrets_file: Path) -> None:
    secrets_file.write_text('[auth]\nclient_id = "x"\n[roles]\nsteward = ["s"]\n')
    assert sign_in.is_set_up()
    assert sign_in.visitor() is NOBODY


def test_pages_are_for_those_who_need_them() -> None:
    assert roles_for("pages/6_Release.py") == roles_for("app.py") == ROLES
    for path in ("pages/1_Data.py", "pages/2_Mechanism.py", "pages/3_Synthesize.py", "pages/4_Diagnostics.py"):
        assert set(roles_for(path)) == {"steward", "analyst"}
    assert Session().person is ONE_PERSON
