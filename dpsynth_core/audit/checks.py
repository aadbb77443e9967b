"""What an audit consists of: checks, how large they are, and where their seeds come from."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

Layer: TypeAlias = Literal[
    "reading",
    "leaving",
    "replay",
    "sensitivity search",
    "enumeration",
    "claims",
    "noise law",
    "joint law",
    "stage attack",
    "end-to-end attack",
    "chain",
]
CheckVerdict: TypeAlias = Literal["passed", "failed", "not applicable"]

LAYERS: dict[Layer, str] = {
    "reading": "Files that differ in one record, read by the same declared layout: every other row in the same "
    "position of every column, as many rows as before, and no error.",
    "leaving": "The entry points that people use, with the draws of a release recorded on one table and handed out "
    "again on another: tables and what is attached to them, guarantee, charges, reports, warnings, errors, and every "
    "file of the bundle the same to the last byte.",
    "replay": "Recorded on a table and replayed on another with every sampler's output frozen: same calls, same "
    "release, same reports, warnings and errors, every stage charged as planned, noise large enough for every charge; "
    "between neighbours, no input moved by more than its declared sensitivity.",
    "sensitivity search": "Hill climbing over tables and replaced rows for the largest move of an input, as a multiple "
    "of what its draw declares.",
    "enumeration": "Every outcome on toy domains, with exact probabilities: the largest privacy loss of all.",
    "claims": "What a release says of itself: never repeatable, never more than was paid for. What a source of noise "
    "must refuse; and what draws are said to cost, against their laws, summed up by another road.",
    "noise law": "Samples of every sampler against the law that it is named for.",
    "joint law": "Vectors of one run, of two runs and drawn ahead: no stretch occurs twice, none is correlated.",
    "stage attack": "Single draws on two neighbouring tables: a statistical lower bound on the epsilon they spend.",
    "end-to-end attack": "Whole runs on two neighbouring tables: a statistical lower bound on epsilon.",
    "chain": "Metropolis kernels on few states: distance to their target, exactly.",
}

SUITE_LEVEL = 1e-6
"""Probability that any statistical check of a whole run fails although all is well: at most this, for each layer."""
MAX_COMPARISONS = 2_000
"""Statistical checks of one layer that this level is shared among; a run that makes more is refused."""


@dataclass(frozen=True, kw_only=True)
class AuditCheck:
    layer: Layer
    subject: str
    """What was asked about: a mechanism, a sampler, a mutant."""
    case: str
    """Settings, tables and epsilon."""
    verdict: CheckVerdict
    detail: str = ""
    """The numbers behind it, in words."""
    measured: float | None = None
    """The loss or bound that was found, where the question is how large it is."""
    claimed: float | None = None


@dataclass(frozen=True, kw_only=True)
class Size:
    seeds: int
    """Recordings of every setting on every pair of tables."""
    draws: int
    """Of every sampler, for its law."""
    selections: int
    """Of the samplers that select, of which the release ones take about half a millisecond each."""
    stage_draws: int
    """Of every stage, on each of two tables."""
    run_share: float
    """Whole runs, as a multiple of what a mechanism declares."""
    shapes: int
    """Tables of random shape, besides those that every audit tries."""
    search: int
    """Steps of a search for the worst sensitivity."""
    outcomes: int
    """Most outcomes that are followed for one pair of toy tables."""
    level: float = SUITE_LEVEL / MAX_COMPARISONS
    """Probability of a false alarm, for each statistical check."""


QUICK = Size(
    seeds=1, draws=50_000, selections=8_000, stage_draws=20_000, run_share=1, shapes=0, search=40, outcomes=400
)
DEEP = Size(
    seeds=2, draws=200_000, selections=50_000, stage_draws=100_000, run_share=10, shapes=40, search=400, outcomes=2_000
)
REDUCED = Size(seeds=1, draws=2_000, selections=400, stage_draws=1_000, run_share=0.05, shapes=0, search=0, outcomes=0)
"""For repeating the statistical part many times."""


def seed_for(root: int, *names: object) -> np.random.SeedSequence:
    """A seed that belongs to this question, the same in every process and whatever else is asked."""
    words = [zlib.crc32(str(name).encode()) for name in names]
    return np.random.SeedSequence([root, *words])


def verdict(good: bool) -> CheckVerdict:
    return "passed" if good else "failed"


def audit_check(layer: Layer, subject: str, case: str, good: bool, detail: str, **figures: float) -> AuditCheck:
    """A question that was answered; its figures are ``measured`` and ``claimed``."""
    return AuditCheck(layer=layer, subject=subject, case=case, verdict=verdict(good), detail=detail, **figures)


def not_applicable(layer: Layer, subject: str, case: str, reason: object) -> AuditCheck:
    return AuditCheck(layer=layer, subject=subject, case=case, verdict="not applicable", detail=str(reason))


def failures(checks: Iterable[AuditCheck]) -> list[AuditCheck]:
    return [check for check in checks if check.verdict == "failed"]
