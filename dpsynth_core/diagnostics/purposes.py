"""What a table is good for: one line for each purpose, from the one measure that the purpose depends on.

The worst of all diagnostics says whether anything is wrong, not whether a table can be used. A table whose pairs are
far off may be all that a course or a software test needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpsynth_core.diagnostics.base import Measure, Result, Verdict
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.diagnostics.marginals import KIND_ROWS
from dpsynth_core.diagnostics.wording import measured, score

Fitness: TypeAlias = Literal["good", "care", "unknown", "not"]
FITNESS: tuple[Fitness, ...] = ("good", "care", "unknown", "not")
"""From best to worst."""
LEADS: dict[Fitness, str] = {
    "good": "Good for",
    "care": "With care for",
    "unknown": "Not known for",
    "not": "Not for",
}


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """A use of a synthetic table, and the measure that it depends on."""

    title: str
    needs: str
    """What the table must have kept, in a sentence."""
    diagnostic: str
    """Whose verdict counts."""
    tolerates: Verdict = "good"
    """The worst verdict with which the table is good for this."""


TEACHING, SOFTWARE, TOTALS, GROUPS, MODEL = "teaching", "software", "totals", "groups", "model"
PURPOSES: dict[str, Purpose] = {
    TEACHING: Purpose(
        title="teaching",
        needs="Columns that look right; visible differences do no harm.",
        diagnostic="marginals",
        tolerates="fair",
    ),
    SOFTWARE: Purpose(
        title="software tests",
        needs="Every kind of value that the original has (labels, missing values, ranges of numbers).",
        diagnostic="marginals",
    ),
    TOTALS: Purpose(
        title="totals and shares",
        needs="Every single column's shares, close to the original's.",
        diagnostic="marginals",
    ),
    GROUPS: Purpose(
        title="comparing groups",
        needs="The differences between groups that the original has, and no others.",
        diagnostic="mann_whitney",
    ),
    MODEL: Purpose(
        title="a model for a target",
        needs="The coefficients that a regression of the target on the other columns has in the original.",
        diagnostic="regression",
    ),
}
KEPT = 0.95, 0.8
"""Shares of the kinds of values kept, in the worst column, that software tests need, or need at least."""


@dataclass(frozen=True, kw_only=True)
class FitnessLine:
    """Whether a table serves a purpose, and by which figure. Private, like the results behind it."""

    purpose: str
    """A name in ``PURPOSES``."""
    fitness: Fitness
    reason: str
    """The measure and its figure. May hold column names, which are untrusted text."""

    @property
    def answer(self) -> str:
        """Good for this, or not; without any text from a file."""
        return f"{LEADS[self.fitness]} {PURPOSES[self.purpose].title}"

    @property
    def text(self) -> str:
        """The whole line."""
        return f"{self.answer}: {self.reason}"

    @property
    def sentence(self) -> str:
        """The reason where it stands by itself, beside the answer."""
        return self.reason[:1].upper() + self.reason[1:]


def fitness_lines(evaluation: Evaluation, purposes: Sequence[str] = ()) -> tuple[FitnessLine, ...]:
    """What a table is good for, one line each; all purposes if none is named."""
    return tuple(_line(key, evaluation) for key in (purposes or PURPOSES))


def overall(lines: Sequence[FitnessLine]) -> str:
    """All purposes in one sentence: what the table is good for, and what not."""
    parts: list[str] = []
    for fitness in FITNESS:
        titles = [PURPOSES[line.purpose].title for line in lines if line.fitness == fitness]
        if titles:
            lead = LEADS[fitness] if not parts else LEADS[fitness].lower()
            parts.append(f"{lead} {_listed(titles)}")
    return f"{'; '.join(parts)}." if parts else ""


def _listed(titles: Sequence[str]) -> str:
    """As people enumerate.

    Example:
        >>> _listed(["teaching"]), _listed(["teaching", "totals and shares", "comparing groups"])
        ('teaching', 'teaching, totals and shares, and comparing groups')
    """
    *first, last = titles
    between = ", and " if len(first) > 1 or any(" and " in title for title in first) else " and "
    return f"{', '.join(first)}{between}{last}" if first else last


def _line(key: str, evaluation: Evaluation) -> FitnessLine:
    result = evaluation.get(PURPOSES[key].diagnostic)
    fitness, reason = _judged(key, result)
    if key == MODEL and result is not None:
        # The outcome of the regression that was fitted, whichever that was.
        outcome = next((item.columns[0] for item in result.items if len(item.columns) == 2), None)
        reason = reason if outcome is None else f"explaining {outcome}, {reason}"
    if key == GROUPS and fitness in ("good", "care"):
        reason = (
            f"{reason} This is the size of a difference; whether a low p-value can be trusted is a separate question."
        )
    return FitnessLine(purpose=key, fitness=fitness, reason=reason)


def _judged(key: str, result: Result | None) -> tuple[Fitness, str]:
    if result is None:
        return "unknown", "this was not looked at."
    return _variety(result) if key == SOFTWARE else _by_verdict(result, PURPOSES[key].tolerates)


def _by_verdict(result: Result, tolerates: Verdict) -> tuple[Fitness, str]:
    headline, verdict = result.headline, result.verdict
    if headline.value is None:
        return "unknown", headline.reading
    good: tuple[Verdict, ...] = ("excellent", "good", "fair") if tolerates == "fair" else ("excellent", "good")
    fitness: Fitness = "good" if verdict in good else "care" if verdict == "fair" else "not"
    return fitness, f"{_lower(score(result))}."


def _variety(result: Result) -> tuple[Fitness, str]:
    """By the share of the original's kinds of values that occur in the synthetic table, in the worst column."""
    kept = result.tables.get("kinds")
    if kept is None or kept.empty:
        return "unknown", "the kinds of values were not counted."
    counts = list(zip(kept["column"], kept["present"], kept["kept"], strict=True))
    share, present, found, column = min((found / present, present, found, column) for column, present, found in counts)
    fitness: Fitness = "good" if share >= KEPT[0] else "care" if share >= KEPT[1] else "not"
    if share == 1:
        return (
            fitness,
            f"every kind of value with at least {KIND_ROWS} original rows (label, missing value, range) occurs.",
        )
    return fitness, (
        f"of the {present:,} kinds of values of {column} with at least {KIND_ROWS} original rows (labels, missing "
        f"values, ranges), {found:,} {'occurs' if found == 1 else 'occur'}."
    )


def _lower(text: str) -> str:
    """As it stands after a colon; names in capitals stay."""
    return text if text[:2].isupper() or text[:4] == "pMSE" else text[0].lower() + text[1:]


def changes(evaluations: Mapping[str, Evaluation]) -> list[dict[str, str]]:
    """Each diagnostic's headline in several releases, oldest first, and whether the last is better than the first.

    Args:
        evaluations: By the releases' names. Private: for internal review.
    """
    first, last = (list(evaluations.values())[at] for at in (0, -1))
    rows = []
    for key in first:
        results = {name: evaluation[key] for name, evaluation in evaluations.items() if key in evaluation}
        if len(results) == len(evaluations):
            figures = {name: measured(result.headline.value) for name, result in results.items()}
            how = change(first[key].headline, last[key].headline)
            rows.append({"measure": f"{first[key].title}: {first[key].scale.name}", **figures, "change": how})
    return rows


def change(before: Measure, after: Measure) -> str:
    """Better or worse only where the two 95% intervals do not meet.

    Example:
        >>> change(Measure(name="x", value=0.4, low=0.3, high=0.5), Measure(name="x", value=0.1, low=0.0, high=0.2))
        'better'
    """
    if before.value is None or after.value is None:
        return "not known"
    if after.high is not None and before.low is not None and after.high < before.low:
        return "better"
    if after.low is not None and before.high is not None and after.low > before.high:
        return "worse"
    return "about the same"
