"""What the rows of a node have in common, in plain words.

Names and categories stand in the text as they are: show it as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.trees.coded import CodedColumn

_NAMED = 5
"""Categories named before the rest is only counted."""
_DAY = 24 * 60 * 60 * 10**6
"""In microseconds."""


@dataclass(frozen=True, kw_only=True)
class CodeRange:
    """Codes of an ordered column from ``first`` up to but not including ``last``."""

    first: int
    last: int

    def descriptions(self, column: CodedColumn) -> str:
        gap = int(column.missing is not None)  # ordered columns have it first
        low, high = max(self.first, gap), min(self.last, len(column.values))
        if self.last <= gap:
            return f"{column.name} is missing"
        if low == gap and high == len(column.values):
            return f"{column.name} is not missing" if self.first else f"{column.name} is anything"
        condition = _interval(column, low if low > gap else None, high if high < len(column.values) else None)
        return f"{column.name} {condition}{' or missing' if self.first < gap else ''}"


@dataclass(frozen=True, kw_only=True)
class CodeSet:
    """Some codes of an unordered column."""

    codes: tuple[int, ...]

    def descriptions(self, column: CodedColumn) -> str:
        others = sorted(set(range(len(column.values))) - set(self.codes))
        if len(others) <= min(_NAMED, len(self.codes) - 1):
            return f"{column.name} is not {_listed(column, others)}"
        return f"{column.name} is {_listed(column, self.codes)}"


def _interval(column: CodedColumn, low: int | None, high: int | None) -> str:
    """From the value of code ``low`` on, below the value of code ``high``."""
    if column.kind == "boolean":
        return "is false" if high is not None else "is true"
    if column.kind == "ordinal":
        return _span(column, low, high)
    if column.kind == "date":
        start, stop = (None if code is None else _moment(column, code) for code in (low, high))
        descriptions = ("before {1}", "from {0} on", "from {0} to before {1}")
    else:
        start, stop = (None if code is None else _number(column, code) for code in (low, high))
        descriptions = ("below {1}", "{0} or more", "from {0} to below {1}")
    return descriptions[0 if start is None else 1 if stop is None else 2].format(start, stop)


def _span(column: CodedColumn, low: int | None, high: int | None) -> str:
    labels = column.labels
    gap = len(column.values) - len(labels)
    first = labels[0 if low is None else low - gap]
    last = labels[-1 if high is None else high - 1 - gap]
    if first == last:
        return f"is {first}"
    if low is None:
        return f"up to {last}"
    return f"from {first} on" if high is None else f"from {first} to {last}"


def _number(column: CodedColumn, code: int) -> str:
    """The shortest number that stands between the value of a code and the one before it: it separates just as well."""
    below, value = float(column.values[code - 1]), float(column.values[code])
    below = -np.inf if np.isnan(below) else below
    middle = below / 2 + value / 2 if np.isfinite(below) and np.isfinite(value) else value
    for digits in range(1, 18):
        short = float(f"{middle:.{digits}g}")
        if below < short <= value:
            break
    else:
        short = value
    plain = 1e-4 <= abs(short) < 1e15 or short == 0
    return np.format_float_positional(short, trim="-") if plain else f"{short:g}" if np.isinf(short) else repr(short)


def _moment(column: CodedColumn, code: int) -> str:
    """The day, if that separates a code's value from the one before it; else the value itself."""
    below, value = float(column.values[code - 1]), float(column.values[code])
    day = np.floor(value / _DAY) * _DAY
    shown = day if not day <= below else value
    moment = pd.Timestamp(np.datetime64(int(shown), "us"))
    return moment.strftime("%Y-%m-%d") if shown == day else moment.isoformat(sep=" ")


def _listed(column: CodedColumn, codes: Sequence[int]) -> str:
    names = ["missing" if code == column.missing else column.labels[code] for code in codes]
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} or one of {len(names) - _NAMED} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
