"""Who does something: a person as the sign-in names them, and what their roles let them do.

A person is recognised by the subject that the identity provider has given them, never by a name: names can be changed,
and two people can share one. Without sign-in there is one person, who may do everything and whom nobody can name.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from dpsynth_core.errors import ParameterError, RoleError

Role: TypeAlias = Literal["steward", "analyst", "reviewer", "reader"]
ROLES: tuple[Role, ...] = get_args(Role)
MEANING: dict[Role, str] = {
    "steward": "opens accounts, fixes their totals and declares what is public",
    "analyst": "makes releases and submits them",
    "reviewer": "decides on submissions, except on their own",
    "reader": "downloads approved bundles",
}
MAX_CHARACTERS = 1_000


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who uses this installation.

    Example:
        >>> ada = Person(subject="https://id.example.org 7", name="Ada", roles=frozenset({"analyst"}))
        >>> ada.signed_in, ada.may("reviewer")
        (True, False)
    """

    subject: str = ""
    """Issuer and subject, which never change; empty where nobody has signed in."""
    name: str = ""
    """As the provider spells it. Untrusted text."""
    roles: frozenset[Role] = frozenset()

    def __post_init__(self) -> None:
        for parameter in ("subject", "name"):
            value = getattr(self, parameter)
            if len(value) > MAX_CHARACTERS or "\0" in value:  # which PostgreSQL cannot store
                raise ParameterError(parameter, "too long", allowed=f"text of up to {MAX_CHARACTERS:,} characters")

    @property
    def signed_in(self) -> bool:
        """Whether an identity provider vouches for them."""
        return bool(self.subject)

    @property
    def known(self) -> bool:
        """Whether anything is known that could be recorded."""
        return bool(self.subject or self.name)

    def may(self, *roles: Role) -> bool:
        """Whether they have one of these roles."""
        return not self.roles.isdisjoint(roles)

    def require(self, *roles: Role, action: str) -> None:
        """Refuse whoever has none of these roles.

        Args:
            roles: Each of them is enough.
            action: What they are about to do, as the end of "You may not ...".
        """
        if not self.may(*roles):
            own = ", ".join(role for role in ROLES if role in self.roles) or "none"
            raise RoleError(
                f"You may not {action}: that needs the role {' or '.join(roles)}; yours: {own}. Whoever runs this "
                "server gives roles through the groups of the identity provider."
            )

    def to_record(self) -> dict[str, str]:
        """What the ledger keeps of them."""
        return {"subject": self.subject, "name": self.name}

    @classmethod
    def from_record(cls, record: object) -> Person:
        """Whoever a record names; somebody unknown where it names nobody."""
        if not isinstance(record, Mapping):
            return cls()
        return cls(subject=str(record.get("subject", "")), name=str(record.get("name", "")))

    def __str__(self) -> str:
        return self.name or self.subject or "not recorded"


NOBODY = Person()
"""Somebody who may do nothing."""
ONE_PERSON = Person(roles=frozenset(ROLES))
"""Whoever uses an installation without sign-in."""


def at_the_shell() -> Person:
    """Whoever runs a command on this machine: the operating system knows the account, but nobody has signed in."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        account = "unknown account"
    return Person(name=f"{account} (command line)", roles=frozenset(ROLES))


def roles_from(claim: object, groups: Mapping[Role, Iterable[str]]) -> frozenset[Role]:
    """The roles that a claim gives: a group, or a list of groups, as the provider writes them.

    Args:
        claim: What the identity token says.
        groups: For each role, the groups that have it.

    Example:
        >>> sorted(roles_from(["staff", "lab"], {"analyst": ["lab"], "reader": ["staff"]}))
        ['analyst', 'reader']
    """
    values: list[Any] = [claim] if isinstance(claim, str) else list(claim) if isinstance(claim, list | tuple) else []
    mine = {value for value in values if isinstance(value, str)}
    return frozenset(role for role, names in groups.items() if mine & set(names))
