"""What the rows are worth, held against what the reviewer asks; and the sanity check on copied rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsynth_core.diagnostics import Measure, Result
from dpsynth_core.diagnostics.nearest_rows import LABEL
from dpsynth_core.review.checklist_item import ChecklistItem, CheckState
from dpsynth_core.review.evidence import Evidence
from dpsynth_core.review.thresholds import LIMITS, Thresholds

NOT_LOOKED = "Nobody has compared this release with the original yet."
WORST = 5
"""Items named behind a check."""


def quality_checks(evidence: Evidence | None, thresholds: Thresholds) -> tuple[ChecklistItem, ...]:
    """Diagnostics, the risk of false discoveries, and the nearest rows; open while there is no evidence."""
    return (
        *(_quality(quality, evidence, thresholds) for quality in _QUALITIES),
        _discoveries(evidence, thresholds),
        _nearest(evidence),
    )


@dataclass(frozen=True, kw_only=True)
class _Quality:
    """A diagnostic whose headline is held against a threshold."""

    key: str
    """The threshold."""
    diagnostic: str
    """Its name in the registry."""
    title: str
    """The claim."""
    unit: Callable[[Result], float | None] = lambda _: 1.0
    """By what the headline is divided before it is compared."""


def _noise_distance(result: Result) -> float | None:
    scores = result.tables["scores"].set_index("score")["value"]
    return float(scores["pure noise"]) or None


_QUALITIES = (
    _Quality(key="columns", diagnostic="marginals", title="Every column keeps its distribution"),
    _Quality(key="pairs", diagnostic="pairs", title="Pairs of columns go together as before"),
    _Quality(key="pmse_ratio", diagnostic="pmse", title="Models can hardly tell the rows apart"),
    _Quality(key="mmd", diagnostic="mmd", title="The table as a whole is close", unit=_noise_distance),
)


def _quality(quality: _Quality, evidence: Evidence | None, thresholds: Thresholds) -> ChecklistItem:
    blank = _blank(quality.key, quality.title, thresholds)
    if evidence is None or quality.diagnostic not in evidence.evaluation:
        return blank
    result = evidence.evaluation[quality.diagnostic]
    # Of the models that tell rows apart, the one that does it best, whatever its verdict.
    item = max(result.items, key=_size) if quality.diagnostic == "pmse" and result.items else result.headline
    unit = None if item.value is None else quality.unit(result)
    if item.value is None or unit is None:
        return replace(blank, measured="not known", state="fail", evidence=item.reading or "It could not be computed.")
    where = f" ({item.name})" if item.columns else ""
    fresh = "" if item.reference is None else f" A fresh sample would score about {item.reference / unit:.2g}."
    low, high = (None if end is None else end / unit for end in (item.low, item.high))
    listed = tuple(_item(other) for other in result.items[:WORST]) if len(result.items) > 1 else ()
    check = replace(blank, evidence=f"{item.reading}{fresh}", details=listed, low=low, high=high)
    return _compared(check, item.value / unit, where)


def _size(item: Measure) -> float:
    return float("inf") if item.value is None else item.value


def _item(item: Measure) -> str:
    return f"{item.name}: {'not known' if item.value is None else f'{item.value:.3g}'} ({item.verdict})"


def _blank(key: str, title: str, thresholds: Thresholds) -> ChecklistItem:
    """A check of a threshold before anybody has looked."""
    limit = getattr(thresholds, key)
    return ChecklistItem(
        key=key, group="Quality", title=title, asked=f"{LIMITS[key].title}: at most {limit:g}",
        measured="not looked at", state="open", evidence=NOT_LOOKED, limit=limit,
    )  # fmt: skip


def _compared(check: ChecklistItem, value: float, where: str = "") -> ChecklistItem:
    """A number with its interval, held against a limit: passed below it, failed where the whole interval is above."""
    limit, low, high = check.limit or 0.0, check.low, check.high
    between = "" if low is None or high is None else f"; 95% interval {low:.2g} to {high:.2g}"
    state: CheckState = "pass" if value <= limit else "fail" if low is None or low > limit else "warn"
    doubt = "Above the threshold, though its interval reaches below. " if state == "warn" else ""
    return replace(
        check, state=state, value=value, measured=f"{value:.3g}{where}{between}", evidence=f"{doubt}{check.evidence}"
    )


def _discoveries(evidence: Evidence | None, thresholds: Thresholds) -> ChecklistItem:
    blank = _blank("false_discovery", "Tests do not find what is not there", thresholds)
    if evidence is None:
        return blank
    rates = evidence.discoveries
    if rates is None or evidence.pair is None:
        why = evidence.problems.get("discoveries", "It could not be simulated.")
        said = f"Not simulated, so no test on this table should be trusted unchecked. {why}"
        return replace(blank, measured="not known", state="warn", evidence=said)
    share, (value, group) = rates.type_one, evidence.pair
    check = replace(
        blank, low=share.low, high=share.high,
        evidence=f"Of 100 analysts testing a difference that does not exist, about {round(100 * share.estimate)} "
        f"would report one; a valid test allows {100 * rates.alpha:g}.",
        details=(
            f"{share.reps:,} simulated releases of {rates.n1:,} and {rates.n2:,} rows, two columns like {value} and "
            f"{group}; with more columns there is more noise on each.",
            f"Of 100 testing a difference of {rates.effect:g} standard deviation, about "
            f"{round(100 * rates.type_two.estimate)} would miss it.",
        ),
    )  # fmt: skip
    return _compared(check, share.estimate)


def _nearest(evidence: Evidence | None) -> ChecklistItem:
    title, asked = "Synthetic rows do not repeat original ones", "no closer than fresh rows"
    found = None if evidence is None else evidence.nearest
    if evidence is None or found is None:
        why = NOT_LOOKED if evidence is None else evidence.problems.get("nearest", "It could not be computed.")
        return ChecklistItem(
            key="nearest", group="Sanity check", title=title, asked=asked, evidence=why,
            measured="not looked at" if evidence is None else "not known", state="open" if evidence is None else "warn",
        )  # fmt: skip
    return ChecklistItem(
        key="nearest", group="Sanity check", title=title, asked=asked,
        measured=f"{100 * found.copies:.2g}% equal an original row; fresh rows: {100 * found.copies_fresh:.2g}%",
        state="warn" if found.alarming else "pass", evidence=f"{LABEL} {found.reading}",
        details=(
            f"Median distance to the closest original row: synthetic {found.distance:.3g}, fresh "
            f"{found.distance_fresh:.3g}, drawn at random from the declared domain {found.distance_random:.3g} "
            "(0: equal, 1: different in every column).",
            f"{found.sampled:,} synthetic rows were looked at for distances, all of them for copies.",
        ),
    )  # fmt: skip
