"""A guarantee in plain sentences, the same wherever it is stated."""

from __future__ import annotations

import math
import re

from dpsynth_core.privacy.budget import Budget, Guarantee, format_amount
from dpsynth_core.table.schema import Schema

_MARKUP = frozenset("\\`*_{}[]<>#|&~$:@")
"""Characters that mean something in markdown, or in HTML and formulas inside it."""


def unit(rows_per_person: int) -> str:
    """Whom the guarantee protects.

    Example:
        >>> unit(1), unit(3)
        ('one person, who owns one row', 'one person, who owns at most 3 rows')
    """
    return f"one person, who owns {'one row' if rows_per_person == 1 else f'at most {rows_per_person} rows'}"


def loss(budget: Budget) -> str:
    """Epsilon and delta."""
    epsilon = f"epsilon {format_amount(budget.epsilon)}"
    return f"{epsilon}, delta {format_amount(budget.delta)}" if budget.delta else f"{epsilon}, delta 0 (pure)"


def claim(guarantee: Guarantee) -> str:
    """The claim in a sentence, as strong as its status and no stronger."""
    if guarantee.budget is None:
        return guarantee.meaning
    terms = (
        f"{loss(guarantee.budget)}; it protects {unit(guarantee.rows_per_person)}; neighbours: {guarantee.neighbours}"
    )
    if guarantee.status == "proven":
        return f"Differentially private, proven for this run: {terms}."
    return f"{guarantee.meaning} Aimed at: {terms}."


def meaning(guarantee: Guarantee) -> str:
    """What epsilon means for an attacker; empty unless the claim is pure and proven."""
    if guarantee.status != "proven" or guarantee.budget is None or guarantee.budget.delta:
        return ""
    # Bayes: odds grow by at most exp(epsilon), so even odds become exp(e) / (1 + exp(e)); rounded up, never down.
    highest = math.ceil(1000 / (1 + math.exp(-guarantee.epsilon))) / 10
    return (
        "Suppose an attacker knows every other person's rows and gives even odds to two guesses about the remaining "
        "person. After seeing everything published here, the attacker can be at most "
        f"{highest:g}% sure of the right one."
    )


def origins(schema: Schema) -> dict[str, list[str]]:
    """Column names by where their facts come from."""
    names: dict[str, list[str]] = {}
    for column in schema:
        names.setdefault(column.origin, []).append(column.name)
    return names


def declarer(schema: Schema) -> str:
    """Who declared the facts, for reviewers; not for release, because it may hold a person's name.

    Example:
        >>> facts = {"columns": [{"name": "smokes", "kind": "boolean", "public": True}]}
        >>> declarer(Schema.from_dict(facts))
        'nobody is named as having declared them'
        >>> declarer(Schema.from_dict({**facts, "declared_by": "Ada, data steward"}))
        'declared by Ada, data steward'
    """
    name = " ".join(schema.declared_by.split())
    return f"declared by {name}" if name else "nobody is named as having declared them"


def literal(text: object) -> str:
    """Text as markdown shows it literally, on one line: names in a file are not markup.

    Example:
        >>> literal("a*b|<i>")
        'a\\\\*b\\\\|\\\\<i\\\\>'
    """
    one_line = " ".join(str(text).split())
    escaped = "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in one_line)
    # What starts a list or an underlined heading, and what some readers turn into a link.
    return re.sub(r"^(\d*)([-+=.)])|(?i:(?<=www))(\.)", r"\1\\\2\3", escaped)
