"""What a mechanism would do, from public facts only: shown before anything is spent."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from itertools import pairwise
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

SECONDS_PER_DRAW = 1.2e-5
"""An exact noise draw."""
SECONDS_PER_CELL = 6e-8
"""Reading, encoding and sampling one cell of the table."""
SECONDS_TO_START, SECONDS_TO_REPEAT = 0.05, 0.015
"""What a run costs besides: the first one, and any further one in the same process on a small table."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One paid step."""

    label: str
    """What is measured or decided."""
    epsilon: Fraction
    """Its share, per row."""
    scale: float | None
    """Scale of the noise that each count gets; None where the noise is of another kind."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a mechanism would do with a table of this schema and size."""

    stages: tuple[Stage, ...]
    """Paid steps, in order; their epsilons add up to the budget per row."""
    cuts: tuple[int, ...]
    """Into how many parts each column is cut at the start."""
    cells: int
    """Cells or boxes over the declared domain that the noise is spread over at the start."""
    draws: int
    """Noise draws to expect, roughly."""
    values: int
    """Cells of the table that are read: rows times columns."""
    computing: float = 0.0
    """Seconds of computing beyond drawing and reading, roughly."""

    @property
    def seconds(self) -> float:
        """Running time to expect, roughly."""
        return SECONDS_TO_START + self._work

    @property
    def seconds_again(self) -> float:
        """The same for one more run in the same process."""
        return SECONDS_TO_REPEAT + self._work

    @property
    def _work(self) -> float:
        return self.draws * SECONDS_PER_DRAW + self.values * SECONDS_PER_CELL + self.computing

    @property
    def count_error(self) -> float:
        """Expected absolute error of one count: E|DLap(b)| = 2 a / (1 - a^2), for the last stage that counts."""
        scales = [stage.scale for stage in self.stages if stage.scale is not None]
        if not scales:
            return math.nan
        a = math.exp(-1 / scales[-1])
        return 2 * a / (1 - a * a)


def counting_plan(shape: tuple[int, ...], n: int, epsilon: Fraction, *, sensitivity: int) -> Plan:
    """The plan of a mechanism whose one paid step is to count every cell of a grid."""
    cells = math.prod(shape)
    stage = Stage(label="counts of all cells", epsilon=epsilon, scale=float(sensitivity / epsilon))
    return Plan(stages=(stage,), cuts=shape, cells=cells, draws=min(n, cells), values=n * len(shape))


_KINDS: dict[type, Literal["whole", "number", "switch", "text"]] = {
    int: "whole",
    float: "number",
    bool: "switch",
    str: "text",
}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a mechanism, as a form needs to know it."""

    name: str
    """The dataclass field."""
    kind: Literal["whole", "number", "choice", "switch", "text"]
    """What its values are."""
    optional: bool
    """Whether None ("choose for me") is a value."""
    choices: tuple[str, ...]
    """The values of a choice."""
    default: Any
    """The field's default."""
    help: str
    """The field's documentation."""
    title: str
    """Its name for people."""
    advanced: bool
    """Whether a form folds it away."""
    labels: Mapping[str, str]
    """What people call the values of a choice, where that differs."""

    def say(self, value: object) -> str:
        """A value in words."""
        if value is None:
            return "chosen for you"
        return self.labels.get(str(value), f"{value:g}" if isinstance(value, float) else str(value))


def setting(default: Any, *, title: str = "", advanced: bool = False, labels: Mapping[str, str] | None = None) -> Any:
    """A dataclass field that says how a form presents it: under which name, folded away or not, in which words.

    Example:
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Coin:
        ...     bias: float = setting(0.5, title="Chance of heads", advanced=True)
        >>> Coin().bias
        0.5
    """
    return field(default=default, metadata={"title": title, "advanced": advanced, "labels": labels or {}})


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
            )
        )
    return tuple(found)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, UnionType):
        rest = [part for part in get_args(hint) if part is not type(None)]
        return rest[0], len(rest) < len(get_args(hint))
    return hint, False


def _field_texts(kind: type[Any]) -> dict[str, str]:
    """The string under each annotated field of a class body."""
    if kind.__module__ == "builtins":
        return {}
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    texts: dict[str, str] = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for statement, following in pairwise(statements):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            texts[statement.target.id] = " ".join(str(following.value.value).split())
    return texts
