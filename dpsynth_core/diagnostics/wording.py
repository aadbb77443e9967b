"""A result in words, the same on every page, in the report and on the command line."""

from __future__ import annotations

from dpsynth_core.diagnostics.base import Measure, Result, Verdict

VERDICT_WORDS: dict[Verdict, str] = {
    "excellent": "As close as a fresh sample",
    "good": "Close",
    "fair": "Visible differences",
    "poor": "Far apart",
    "unknown": "Not known",
}


def measured(value: float | None) -> str:
    """A measured number, to as many digits as are worth reading.

    Example:
        >>> measured(0.01234), measured(99.6), measured(1234.5), measured(None)
        ('0.012', '100', '1,234', 'not known')
    """
    return "not known" if value is None else f"{value:.2g}" if abs(value) < 99.5 else f"{value:,.0f}"


def score(result: Result, item: Measure | None = None) -> str:
    """The measure's name, its value and what it is about; of the headline, unless another item is given."""
    item = item or result.headline
    where = f" for {item.name}" if item.name != result.title else ""
    if item.value is None:
        return f"could not be computed{where}"
    name = result.scale.name
    return f"{name[0].upper() + name[1:] if name.islower() else name} {measured(item.value)}{where}"


def statement(result: Result, item: Measure | None = None) -> str:
    """The same with the interval and what a fresh sample would score."""
    item = item or result.headline
    if item.value is None:
        return score(result, item)
    parts = []
    if item.low is not None and item.high is not None:
        parts.append(f"95% interval {measured(item.low)} to {measured(item.high)}")
    if item.reference is not None:
        parts.append(f"a fresh sample: about {measured(item.reference)}, up to {measured(item.reference_high)}")
    return f"{score(result, item)} ({'; '.join(parts)})" if parts else score(result, item)


def largest_elsewhere(result: Result) -> str:
    """What the largest value is, where it is not the headline's: the headline is the worst against chance."""
    known = [item for item in result.items if item.value is not None]
    largest = max(known, key=lambda item: item.value or 0.0, default=result.headline)
    if largest.name == result.headline.name or result.scale.better == "higher":
        return ""
    return f"The largest value is another: {statement(result, largest)}. {largest.reading}"
