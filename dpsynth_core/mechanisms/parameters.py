"""The parameters of a mechanism as a form needs to know them, read from its dataclass."""

from __future__ import annotations

import ast
import inspect
import textwrap
import threading
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from itertools import pairwise
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_KINDS: dict[type, Literal["int", "float", "bool", "text"]] = {int: "int", float: "float", bool: "bool", str: "text"}
_parsing = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a mechanism, as a form needs to know it."""

    name: str
    kind: Literal["int", "float", "bool", "text", "choice"]
    optional: bool
    """Whether None ("choose for me") is a value."""
    choices: tuple[str, ...]
    default: Any
    help: str
    """The text under the field."""
    title: str
    advanced: bool
    """Whether a form folds it away."""
    labels: Mapping[str, str]
    """What people call the values of a choice, where that differs."""
    only: Mapping[str, tuple[str, ...]]
    """Choices without which it has no effect, by the parameter that makes them."""

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Whether it has an effect beside these values of the other parameters."""
        return all(values[name] in choices for name, choices in self.only.items())

    def say(self, value: object) -> str:
        """A value in words."""
        if value is None:
            return "chosen for you"
        return self.labels.get(str(value), f"{value:g}" if isinstance(value, float) else str(value))


def setting(
    default: Any,
    *,
    title: str = "",
    advanced: bool = False,
    labels: Mapping[str, str] | None = None,
    only: Mapping[str, tuple[str, ...]] | None = None,
) -> Any:
    """A dataclass field that says how a form presents it: under which name, folded away or not, in which words, and
    beside which choices it is shown at all.

    Example:
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Coin:
        ...     bias: float = setting(0.5, title="Chance of heads", advanced=True)
        >>> Coin().bias
        0.5
    """
    return field(
        default=default, metadata={"title": title, "advanced": advanced, "labels": labels or {}, "only": only or {}}
    )


PLACEMENTS = {"uniform": "anywhere in its cell", "centre": "in the middle of its cell"}


def parameters(kind: type[Any]) -> tuple[Parameter, ...]:
    """The parameters of a mechanism, read from its dataclass: types, defaults and the text under each field."""
    hints = get_type_hints(kind)
    documentation = {name: text for base in reversed(kind.__mro__) for name, text in _field_texts(base).items()}
    found = []
    for entry in fields(kind):
        if entry.name == "reason":
            continue
        hint, optional = _without_none(hints[entry.name])
        choices = tuple(map(str, get_args(hint))) if get_origin(hint) is Literal else ()
        found.append(
            Parameter(
                name=entry.name,
                kind="choice" if choices else _KINDS[hint],
                optional=optional,
                choices=choices,
                default=None if entry.default is MISSING else entry.default,
                help=documentation.get(entry.name, ""),
                title=entry.metadata.get("title") or entry.name.replace("_", " ").capitalize(),
                advanced=entry.metadata.get("advanced", False),
                labels=entry.metadata.get("labels", {}),
                only=entry.metadata.get("only", {}),
            )
        )
    return tuple(found)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, UnionType):
        rest = [part for part in get_args(hint) if part is not type(None)]
        return rest[0], len(rest) < len(get_args(hint))
    return hint, False


@cache
def _field_texts(kind: type[Any]) -> Mapping[str, str]:
    """The string under each annotated field of a class body."""
    if kind.__module__ == "builtins":
        return {}
    # In Python 3.11, two threads that make syntax trees at the same time can disturb each other (SystemError).
    with _parsing:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    texts: dict[str, str] = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for statement, following in pairwise(statements):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            texts[statement.target.id] = " ".join(str(following.value.value).split())
    return texts
