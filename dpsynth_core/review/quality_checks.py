"""The quality of the rows, compared with what the reviewer asks, and the sanity check on copied rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsynth_core.diagnostics import Measure, Result
from dpsynth_core.diagnostics.nearest_rows import LABEL, percent
from dpsynth_core.diagnostics.wording import VERDICT_WORDS, largest_elsewhere, measured, statement
from dpsynth_core.inference.stated_risk import of_100
from dpsynth_core.review.checklist_item import STATES, ChecklistItem, CheckState
from dpsynth_core.review.evidence import Evidence
from dpsynth_core.review.thresholds import LIMITS, Thresholds

NOT_LOOKED = "Nobody has compared this release with the original yet."
WORST = 5
"""Items named in the details of a check."""


def quality_checks(evidence: Evidence | None, thresholds: Thresholds) -> tuple[ChecklistItem, ...]:
    """Diagnostics, the risk of false discoveries, and the nearest rows; open while there is no evidence."""
    return (
        *(_quality(quality, evidence, thresholds) for quality in _QUALITIES),
        _discoveries(evidence, thresholds),
        _nearest(evidence),
    )


@dataclass(frozen=True, kw_only=True)
class _Quality:
    """A diagnostic whose largest value is compared with a threshold, on the diagnostic's own scale."""

    key: str
    """Of the threshold."""
    diagnostic: str
    title: str


_QUALITIES = (
    _Quality(key="columns", diagnostic="marginals", title="Every column keeps its distribution"),
    _Quality(key="pairs", diagnostic="pairs", title="Pairs of columns go together as before"),
    _Quality(key="pmse", diagnostic="pmse", title="Models can hardly tell the rows apart"),
    _Quality(key="mmd", diagnostic="mmd", title="The table as a whole is close"),
)


def _quality(quality: _Quality, evidence: Evidence | None, thresholds: Thresholds) -> ChecklistItem:
    blank = _blank(quality.key, quality.title, thresholds)
    if evidence is None or quality.diagnostic not in evidence.evaluation:
        return blank
    result = evidence.evaluation[quality.diagnostic]
    items = result.items or (result.headline,)
    known = sorted((item for item in items if item.value is not None), key=_size, reverse=True)
    unknown = [item for item in items if item.value is None]
    if not known:
        why = result.headline.reading or "It could not be computed."
        return replace(blank, measured="not known", state="fail", evidence=why)
    # The largest value of all, because that is what the threshold is about.
    worst, limit = known[0], getattr(thresholds, quality.key)
    states: list[CheckState] = [_state(item, limit) for item in known]
    if unknown:
        states.append("fail")
    state = max(states, key=STATES.index)
    where = f" ({worst.name})" if worst.columns or len(items) > 1 else ""
    missing = f"; {len(unknown)} could not be computed" if unknown else ""
    return replace(
        blank,
        value=worst.value,
        low=worst.low,
        high=worst.high,
        state=state,
        measured=f"{measured(worst.value)}{where}{_interval(worst)}{missing}",
        evidence=f"{_doubt(state, known, limit)}{_conclusion(result)}",
        details=tuple(_item(item) for item in (*unknown, *known)[:WORST]) if len(items) > 1 else (),
    )


def _size(item: Measure) -> float:
    return item.value or 0.0


def _interval(item: Measure) -> str:
    known = item.low is not None and item.high is not None
    return f"; 95% interval {measured(item.low)} to {measured(item.high)}" if known else ""


def _state(item: Measure, limit: float) -> CheckState:
    """It passes up to the limit, and fails if its whole interval lies above and a fresh sample hardly reaches it."""
    value = _size(item)
    if value <= limit:
        return "pass"
    by_chance = item.reference_high is not None and value <= item.reference_high
    return "warn" if by_chance or (item.low is not None and item.low <= limit) else "fail"


def _doubt(state: CheckState, known: list[Measure], limit: float) -> str:
    if state != "warn":
        return ""
    above = [item for item in known if _size(item) > limit]
    if all(item.reference_high is not None and _size(item) <= item.reference_high for item in above):
        return "Above the threshold, but so would be a fresh sample of the original. "
    return "Above the threshold, though its interval reaches below. "


def _conclusion(result: Result) -> str:
    """The verdict as Diagnostics states it, and what the largest value is where that is another item's."""
    verdict = f"{VERDICT_WORDS[result.verdict]}. {statement(result)}. {result.headline.reading}"
    return f"{verdict} {largest_elsewhere(result)}".rstrip()


def _item(item: Measure) -> str:
    return f"{item.name}: {measured(item.value)} ({VERDICT_WORDS[item.verdict].lower()})"


def _blank(key: str, title: str, thresholds: Thresholds) -> ChecklistItem:
    """A check of a threshold before anybody has looked."""
    limit = getattr(thresholds, key)
    return ChecklistItem(
        key=key,
        group="Quality",
        title=title,
        asked=f"{LIMITS[key].title}: at most {limit:g}",
        measured="not looked at",
        state="open",
        evidence=NOT_LOOKED,
        limit=limit,
    )


REFINE = 'Before you decide, refine it on Diagnostics, under "How reliable is a low p-value here?".'


def _discoveries(evidence: Evidence | None, thresholds: Thresholds) -> ChecklistItem:
    blank = _blank("false_discovery", "Tests do not find differences that do not exist", thresholds)
    if evidence is None or not evidence.complete:
        return blank
    risk = evidence.discoveries
    if risk is None or evidence.pair is None or not risk.simulations:
        why = evidence.problems.get("discoveries", "" if risk is None else risk.problem)
        text = f"Not simulated, so no test on this table should be trusted unchecked. {why}".rstrip()
        return replace(blank, measured="not known", state="warn", evidence=text)
    value, group = evidence.pair
    details = [
        f"For {value} between the groups of {group}, from the release alone: {risk.simulations:,} simulated releases "
        "for each null hypothesis at the ends of the range. The higher end counts.",
    ]
    if risk.tests_sentence:
        details.append(risk.tests_sentence)
    own = evidence.own_discoveries
    if own is not None:
        details.append(
            f"With the group sizes and values of the original itself (private): {of_100(own.low, own.high)} of 100."
        )
    check = replace(blank, low=risk.low, high=risk.high, evidence=" ".join(risk.sentences), details=tuple(details))
    limit = blank.limit or 0.0
    state: CheckState = "fail" if risk.verdict == "inflated" else "warn"
    if risk.is_rough and risk.low <= limit:  # too few releases to decide anything by
        state, check = "warn", replace(check, evidence=f"{check.evidence} {REFINE}")
    if risk.high <= limit:
        state = "warn" if risk.nothing_to_test else "pass"
    said = f"{of_100(risk.low, risk.high)} of 100"
    return replace(check, state=state, value=risk.high, measured=said)


def _looked_at(evidence: Evidence) -> str:
    if not evidence.basis:
        return "all rows were checked for copies"
    return f"all of this is {evidence.basis} of the original, so copies of its other rows are not seen"


def _nearest(evidence: Evidence | None) -> ChecklistItem:
    item = ChecklistItem(
        key="nearest",
        group="Sanity check",
        title="No more copies of original rows than by chance",
        asked="no closer than fresh rows",
        measured="not looked at",
        state="open",
        evidence=NOT_LOOKED,
    )
    if evidence is None or not evidence.complete:
        return item
    nearest = evidence.nearest
    if nearest is None:
        why = evidence.problems.get("nearest", "It could not be computed.")
        return replace(item, measured="not known", state="warn", evidence=why)
    return replace(
        item,
        measured=f"{percent(nearest.copies)} equal an original row; fresh rows: {percent(nearest.copies_fresh)}",
        state="warn" if nearest.alarming else "pass",
        evidence=f"{LABEL} {nearest.reading}",
        details=(
            f"Median distance to the closest original row: synthetic {nearest.distance:.3g}, fresh "
            f"{nearest.distance_fresh:.3g}, drawn at random from the declared domain {nearest.distance_random:.3g} "
            "(0: equal, 1: different in every column).",
            f"Distances were computed for {nearest.sampled:,} synthetic rows; {_looked_at(evidence)}.",
        ),
    )
