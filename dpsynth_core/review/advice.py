"""Why a release is far from its original, and what would help most, in plain sentences with figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pandas as pd

from dpsynth_core.diagnostics.causes import Cause, Causes
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.wording import share
from dpsynth_core.runs.forecast import (
    AS_IT_IS,
    COARSE_BINS,
    FEWER_BINS,
    FEWER_COLUMNS,
    MORE_EPSILON,
    WITH_DELTA,
    WITH_MORE,
    Forecast,
)
from dpsynth_core.table.encoding import codec_for, reading_layout
from dpsynth_core.table.schema import Schema

MIN_GAIN = 0.1
"""Share of the forecast error that a change must save to be called a help."""
REMEDIES: dict[Cause, str] = {
    "noise": "Noise is the largest part: a delta, more epsilon or fewer columns would make it smaller.",
    "columns": "Coarse bins are the largest part. More epsilon, a delta or fewer columns allow finer ones.",
    "relation": "The relation is the largest part: the release has not measured it well. A delta, more epsilon or "
    "fewer columns let it measure more pairs.",
}


def cause_lines(causes: Causes) -> tuple[str, ...]:
    """Where a difference comes from; names are as they came.

    Example:
        >>> for line in cause_lines(Causes(names=("age", "sex"), total=0.31, noise=0.04, columns=0.03, relation=0.24)):
        ...     print(line)
        age × sex: 31% of the rows would have to move to another cell.
        About 4.0% is what noise does at this epsilon.
        About 3.0% comes from the single columns, which coarse bins blur.
        About 24% comes from a relation that the release does not have.
        The relation is the largest part: ... let it measure more pairs.
    """
    lines = [f"{' × '.join(causes.names)}: {share(causes.total)} of the rows would have to move to another cell."]
    if causes.noise is not None:
        lines.append(f"{_about(causes.noise)} is what noise does at this epsilon.")
    if len(causes.names) == 1:
        lines.append(f"{_about(causes.columns)} comes from bins that are too coarse for this column.")
    else:
        lines.append(f"{_about(causes.columns)} comes from the single columns, which coarse bins blur.")
        lines.append(f"{_about(causes.relation)} comes from a relation that the release does not have.")
    if causes.noise is not None:
        lines.append(REMEDIES[causes.main])
    return tuple(lines)


def finer_lines(causes: Causes) -> tuple[str, ...]:
    """The same where models tell rows apart though the shares of their ranges agree.

    Example:
        >>> print(finer_lines(Causes(names=("weight",), total=0.012, noise=0.008, columns=0.004, relation=0.0))[0])
        weight: only 1.2% of the rows would have to move to another cell, in the ranges that are compared here.
    """
    return (
        f"{' × '.join(causes.names)}: only {share(causes.total)} of the rows would have to move to another cell, in "
        "the ranges that are compared here.",
        "What gives the rows away is finer than these ranges: values that many original rows share, such as round "
        "numbers, come out spread over their bin. What the tree saw first shows where.",
        "More epsilon, a delta or fewer columns allow finer bins.",
    )


def elsewhere(titles: Sequence[str]) -> str:
    """Why a release is far apart though its columns and pairs are not."""
    heading = "that heading" if len(titles) == 1 else "those headings"
    return (
        f"Single columns and pairs of columns are not far apart. The verdict comes from: {', '.join(titles)}. The "
        f"reasons are under {heading} below."
    )


def _about(part: float) -> str:
    """A share that begins a sentence."""
    said = share(part)
    return f"About {said}" if said[0].isdigit() else said.capitalize()


def clipping_lines(table: pd.DataFrame, schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """What the declared facts themselves change in these columns of the original, before any noise; for reviewers.

    Both tables follow the declared facts, so no comparison between them shows this.
    """
    lines, layout = [], reading_layout(table)
    for name in names:
        moved = codec_for(schema[name], layout).moved_cells(table[name])
        changes = {
            f"values of {name} lie outside the declared range and count as its ends": moved.clamped,
            f"values of {name} are not among the declared labels": moved.undeclared,
            f"values of {name} are missing, though none was declared to be": moved.missing,
        }
        lines += [f"{share(count / len(table))} of the original's {what}." for what, count in changes.items() if count]
    return tuple(lines)


def ways_in_words(epsilon: Fraction, delta: Fraction, columns: int) -> dict[str, str]:
    """What could be changed, as the beginning of a sentence."""
    return {
        WITH_DELTA: f"A delta of {format_amount(delta, up=False)}",
        WITH_MORE: f"Epsilon {format_amount(epsilon * MORE_EPSILON)} instead of {format_amount(epsilon)}",
        FEWER_COLUMNS: f"{columns // 2} columns like these instead of {columns}",
        FEWER_BINS: f"At most {COARSE_BINS} bins for each number",
    }


def advice(found: Mapping[str, Forecast], words: Mapping[str, str], *, single: bool = False) -> str:
    """What would help most, by the forecast; what the other changes would do is in ``advice_rows``.

    Args:
        found: A forecast for each change.
        words: What could be changed, as the beginning of a sentence.
        single: Whether it is about single columns rather than about pairs.
    """
    if AS_IT_IS not in found:
        return ""
    single = single or found[AS_IT_IS].pair_error is None
    others = {way: each.column_error if single else headline_error(each) for way, each in found.items()}
    now = others.pop(AS_IT_IS)
    best = min(others, key=lambda way: others[way], default=None)
    what = "single columns" if single else "pairs of columns"
    if best is None or others[best] > now * (1 - MIN_GAIN):
        return f"None of these changes would help much: the forecast for {what} is {share(now)} now."
    return (
        f"{words[best]} would help most: the forecast for {what} is {share(others[best])} on average, instead of "
        f"{share(now)}."
    )


def advice_rows(found: Mapping[str, Forecast], words: Mapping[str, str]) -> list[dict[str, str]]:
    """The forecast of every change, for a table."""
    rows = []
    for way, each in found.items():
        pairs = "" if each.pair_error is None else share(each.pair_error)
        rows.append({"change": words.get(way, "As it is"), "single columns": share(each.column_error), "pairs": pairs})
    return rows


def headline_error(forecast: Forecast) -> float:
    """Of pairs, or of single columns where there are no pairs."""
    return forecast.column_error if forecast.pair_error is None else forecast.pair_error
