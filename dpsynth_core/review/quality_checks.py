"""The quality of the rows, compared with what the reviewer asks, and the sanity check on copied rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsynth_core.diagnostics import Measure, Result
from dpsynth_core.diagnostics.nearest_rows import LABEL
from dpsynth_core.inference.discovery_risk import of_100
from dpsynth_core.review.checklist_item import ChecklistItem, CheckState
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
    """A diagnostic whose headline is compared with a threshold."""

    key: str
    """Of the threshold."""
    diagnostic: str
    title: str
    unit: Callable[[Result], float | None] = lambda _: 1.0
    """What the headline is divided by before it is compared."""


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
        key=key,
        group="Quality",
        title=title,
        asked=f"{LIMITS[key].title}: at most {limit:g}",
        measured="not looked at",
        state="open",
        evidence=NOT_LOOKED,
        limit=limit,
    )


def _compared(check: ChecklistItem, value: float, where: str = "") -> ChecklistItem:
    """A number compared with a limit: it passes up to the limit, and fails if its whole interval lies above."""
    limit, low, high = check.limit or 0.0, check.low, check.high
    interval = "" if low is None or high is None else f"; 95% interval {low:.2g} to {high:.2g}"
    state: CheckState = "pass" if value <= limit else "fail" if low is None or low > limit else "warn"
    doubt = "Above the threshold, though its interval reaches below. " if state == "warn" else ""
    measured, evidence = f"{value:.3g}{where}{interval}", f"{doubt}{check.evidence}"
    return replace(check, state=state, value=value, measured=measured, evidence=evidence)


def _discoveries(evidence: Evidence | None, thresholds: Thresholds) -> ChecklistItem:
    blank = _blank("false_discovery", "Tests do not find differences that do not exist", thresholds)
    if evidence is None:
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
    state: CheckState = "pass" if risk.high <= limit else "fail" if risk.verdict == "inflated" else "warn"
    measured = f"{of_100(risk.low, risk.high)} of 100"
    return replace(check, state=state, value=risk.high, measured=measured)


def _nearest(evidence: Evidence | None) -> ChecklistItem:
    item = ChecklistItem(
        key="nearest",
        group="Sanity check",
        title="Synthetic rows do not repeat original ones",
        asked="no closer than fresh rows",
        measured="not looked at",
        state="open",
        evidence=NOT_LOOKED,
    )
    if evidence is None:
        return item
    nearest = evidence.nearest
    if nearest is None:
        why = evidence.problems.get("nearest", "It could not be computed.")
        return replace(item, measured="not known", state="warn", evidence=why)
    return replace(
        item,
        measured=f"{100 * nearest.copies:.2g}% equal an original row; fresh rows: {100 * nearest.copies_fresh:.2g}%",
        state="warn" if nearest.alarming else "pass",
        evidence=f"{LABEL} {nearest.reading}",
        details=(
            f"Median distance to the closest original row: synthetic {nearest.distance:.3g}, fresh "
            f"{nearest.distance_fresh:.3g}, drawn at random from the declared domain {nearest.distance_random:.3g} "
            "(0: equal, 1: different in every column).",
            f"Distances were computed for {nearest.sampled:,} synthetic rows; all rows were checked for copies.",
        ),
    )
