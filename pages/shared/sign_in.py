"""Who the visitor is, where people sign in: by OpenID Connect, through Streamlit's own ``st.login``.

Sign-in is set up in Streamlit's file of secrets: ``[auth]`` names the identity provider, ``[roles]`` says which groups
have which role (docs/server.md). Without ``[auth]`` there is one person, who may do everything. Streamlit remembers a
visitor for thirty days, whatever the identity token says; here every page asks whether the token is still valid.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from starlette.requests import Request
from streamlit import config
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.secrets import secrets_singleton
from streamlit.web.server.starlette.starlette_auth_routes import _get_cookie_value_from_request
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.people import NOBODY, ONE_PERSON, ROLES, Person, Role, roles_from

DEFAULT_CLAIM = "groups"


@dataclass(frozen=True, kw_only=True)
class RoleMap:
    """Which groups have which role."""

    claim: str
    """Of the identity token, that names the groups."""
    groups: Mapping[Role, tuple[str, ...]]

    @classmethod
    def from_secrets(cls, section: Mapping[str, Any]) -> RoleMap:
        """The section ``[roles]``; refused where it is empty or says something unknown, so that nobody is let in."""
        unknown = sorted(set(section) - {"claim", *ROLES})
        groups = {role: _names(section[role]) for role in ROLES if role in section}
        if unknown or not groups:
            what = f"{unknown[0]!r} is not known there" if unknown else "it is missing or empty"
            raise DPSynthError(
                f"Sign-in is set up, but the section [roles] of the secrets cannot be used: {what}. It needs a line "
                f"for each role ({', '.join(ROLES)}) with its groups, and may name the claim."
            )
        return cls(claim=str(section.get("claim", DEFAULT_CLAIM)), groups=groups)

    def person(self, claims: Mapping[str, Any], now: float) -> Person:
        """Whoever an identity token names; nobody where it has expired or does not say who or until when."""
        issuer, subject, expires = claims.get("iss"), claims.get("sub"), claims.get("exp")
        if not (isinstance(issuer, str) and isinstance(subject, str) and issuer and subject):
            return NOBODY
        if isinstance(expires, bool) or not isinstance(expires, int | float) or expires <= now:
            return NOBODY
        name = next((str(claims[key]) for key in ("name", "preferred_username", "email") if claims.get(key)), subject)
        return Person(
            subject=f"{issuer} {subject}", name=name[:200], roles=roles_from(claims.get(self.claim), self.groups)
        )


def _names(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def is_set_up() -> bool:
    """Whether people sign in here."""
    return bool(_section("auth"))


def role_map() -> RoleMap:
    """Which groups have which role here."""
    return RoleMap.from_secrets(_section("roles"))


def visitor() -> Person:
    """Whoever looks at this page: by name where people sign in, and nobody before that or outside of a page."""
    if not is_set_up():
        return ONE_PERSON
    if get_script_run_ctx(suppress_warning=True) is None or not st.user.get("is_logged_in"):
        return NOBODY
    return role_map().person(dict(st.user), time.time())


def sender(request: Request) -> Person:
    """Whoever asks the server for a file."""
    if not is_set_up():
        return ONE_PERSON
    cookie = _get_cookie_value_from_request(request, USER_COOKIE_NAME)
    if not cookie:
        return NOBODY
    return role_map().person(json.loads(cookie), time.time())


def ask_to_sign_in() -> None:
    """In place of a page."""
    expired = bool(st.user.get("is_logged_in"))
    if expired:
        st.info("Your sign-in has expired. Sign in again to go on.", icon=":material/schedule:")
    else:
        st.info("Sign in to use this server.", icon=":material/login:")
    auth = _section("auth")
    named = [name for name, value in auth.items() if isinstance(value, Mapping) and "client_id" in value]
    for provider in (None, *named) if "client_id" in auth else named:
        label = "Sign in" if provider is None else f"Sign in with {provider}"
        st.button(label, type="primary", key=f"sign_in_{provider}", on_click=st.login, args=(provider,))


def show_visitor(person: Person) -> None:
    """Who is signed in, with which roles, and the way out."""
    if not person.signed_in:
        return
    st.divider()
    st.text(f"Signed in: {person.name}")
    st.caption(", ".join(role for role in ROLES if role in person.roles) or "no role")
    st.button("Sign out", icon=":material/logout:", key="sign_out", on_click=st.logout)


def _section(name: str) -> dict[str, Any]:
    """A section of the secrets; empty where there is no such file.

    Raises:
        DPSynthError: There is a file that cannot be read. That must not open the door to everybody.
    """
    if secrets_singleton.load_if_toml_exists():
        found = secrets_singleton.get(name)
        return dict(found) if isinstance(found, Mapping) else {}
    if any(os.path.lexists(file) for file in config.get_option("secrets.files")):
        raise DPSynthError(
            "The server's file of secrets cannot be read, so nobody can sign in. Whoever runs this server must correct "
            "it: the log says what is wrong."
        )
    return {}
