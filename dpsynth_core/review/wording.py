"""A guarantee in plain sentences, the same wherever it is stated."""

from __future__ import annotations

import math
import re

from dpsynth_core.privacy.budget import Budget, Cost, Guarantee, format_amount
from dpsynth_core.review.publication import PRIVATE_DIAGNOSTICS, PUBLIC_FACTS, Publication
from dpsynth_core.runs.expected_error import COLUMN_CELLS, PAIR_CELLS, ExpectedError
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


def costs(guarantee: Guarantee) -> tuple[str, ...]:
    """What each part cost, a line each; empty where the claim has one part, which says it all."""
    return tuple(cost_line(cost) for cost in guarantee.parts) if len(guarantee.parts) > 1 else ()


def cost_line(cost: Cost) -> str:
    """What one part cost.

    Example:
        >>> cost_line(Cost(label="Synthetic rows", budget=Budget.of(1)))
        'Synthetic rows: epsilon 1, delta 0 (pure)'
    """
    return f"{cost.label}: {loss(cost.budget)}"


def meaning(guarantee: Guarantee) -> str:
    """What epsilon and delta mean for an attacker; empty unless the claim is proven."""
    if guarantee.status != "proven" or guarantee.budget is None:
        return ""
    # Bayes: odds grow by at most exp(epsilon), so even odds become exp(e) / (1 + exp(e)). With a delta that holds for
    # the attacker's belief on average: the best test is right with probability (exp(e) + delta) / (1 + exp(e)).
    doubt = math.exp(-guarantee.epsilon)
    highest = math.ceil(1000 * (1 + guarantee.delta * doubt) / (1 + doubt)) / 10  # rounded up, never down
    average = ", on average over the noise" if guarantee.delta else ""
    return (
        "Suppose an attacker knows every other person's rows and gives even odds to two guesses about the remaining "
        "person. After seeing everything published here, the attacker can be at most "
        f"{min(highest, 100):g}% sure of the right one{average}."
    )


def choice(publication: Publication) -> str:
    """By what a release was chosen, and what that means; empty where it is not stated."""
    count = publication.chosen_from or 1
    chosen = f"The choice among {count} releases" if count > 1 else "The decision to publish this release"
    if publication.chosen_by == PRIVATE_DIAGNOSTICS:
        what = "that choice" if count > 1 else "that decision"
        return f"{chosen} rests on private diagnostics. The stated epsilon covers the rows, not {what}."
    if publication.chosen_by == PUBLIC_FACTS:
        return f"{chosen} rests on public facts and synthetic rows only. No private diagnostic was looked at."
    return ""


def error_lines(expected: ExpectedError) -> tuple[str, ...]:
    """An expected error in numbers, a line each; names are as they came.

    Example:
        >>> error_lines(ExpectedError(columns=(("age", 0.031), ("sex", 0.004)), pairs=(("age", "sex", 0.12),),
        ...                           repetitions=3))
        ('Single columns: 1.8% of the rows on average; the worst is age with 3.1%.',
         'Pairs of columns: 12% of the rows on average; the worst is age × sex with 12%.')
    """
    name, error = expected.worst_column
    lines = [
        f"Single columns: {share(expected.mean_column)} of the rows on average; "
        f"the worst is {name} with {share(error)}."
    ]
    if expected.mean_pair is not None and expected.worst_pair is not None:
        first, second, error = expected.worst_pair
        lines.append(
            f"Pairs of columns: {share(expected.mean_pair)} of the rows on average; "
            f"the worst is {first} × {second} with {share(error)}."
        )
    return tuple(lines)


ERROR_UNIT = (
    f"Each figure is the share of rows that would have to move to another cell. Numbers and dates are cut into at most "
    f"{COLUMN_CELLS} equal ranges, and into at most {PAIR_CELLS} in pairs."
)


def share(value: float) -> str:
    """A share in percent, to two digits.

    Example:
        >>> share(0.0312), share(0.1249), share(0.0004)
        ('3.1%', '12%', 'less than 0.1%')
    """
    if value < 0.0005:
        return "less than 0.1%"
    return f"{value:.1%}" if value < 0.0995 else f"{value:.0%}"


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
