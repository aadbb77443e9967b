"""What a reviewer needs to see before deciding: diagnostics, the nearest rows, the risk of false discoveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpsynth_core.diagnostics import Diagnostic
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.diagnostics.mann_whitney import default_pair
from dpsynth_core.diagnostics.nearest_rows import NearestRows, nearest_rows
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.discovery_risk import DiscoveryRisk, discovery_risk, private_discovery_risk
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.private_table import PrivateTable

MAX_SECONDS = 15.0
"""Expected computing time for the false-discovery risk; with slower mechanisms it is less precise, or unknown."""
SEED = 20_240


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was measured about a release. Private: for internal review."""

    evaluation: Evaluation
    nearest: NearestRows | None
    """None if it cannot be computed."""
    discoveries: DiscoveryRisk | None
    """How often a test between two groups would report a difference that does not exist, from published things alone;
    None if there are no such groups."""
    pair: tuple[str, str] | None
    """The value and the group column of that test."""
    own_discoveries: DiscoveryRisk | None = None
    """The same with the sizes and the distribution of the original: private."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why ``nearest`` or ``discoveries`` is None, by that name."""
    complete: bool = True
    """Whether the nearest rows and the risk were looked for; not where only Diagnostics has been seen."""
    basis: str = ""
    """On how many of how many rows what needs rows was computed; empty where that is all of them."""
    releasable: Literal[False] = field(default=False, init=False)


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest:
    """What evidence to gather, as plain values that can be sent to a worker."""

    outcome: RunResult
    diagnostics: tuple[str | Diagnostic, ...] | None = None
    """None: all."""
    evaluation: Evaluation | None = None
    """Results that are known already; no diagnostic runs then."""
    discoveries: DiscoveryRisk | None = None
    """The risk for the pair that a review looks at, where it is known already."""


def gather(private: PrivateTable, request: EvidenceRequest, *, progress: Progress = no_progress) -> Evidence:
    """Gather the evidence on a release's first table. Spends nothing, because its result stays in the building.

    Args:
        private: The original.
        request: The release, and what is known of it already.
        progress: Receives the stages; raises to cancel.
    """
    outcome, pair, problems = request.outcome, default_pair(private.schema), {}
    synthetic = outcome.tables[0]
    evaluation, nearest = request.evaluation, None
    if evaluation is None:
        evaluation = evaluate(private, synthetic, request.diagnostics, progress=share_of(progress, 0.0, 0.7))
    try:
        rng = np.random.default_rng(SEED)
        nearest = nearest_rows(private, synthetic, rng, progress=share_of(progress, 0.7, 0.8))
    except DPSynthError as error:
        problems["nearest"] = str(error)
    try:
        discoveries, own = _discoveries(private, request, pair, share_of(progress, 0.8, 1.0))
    except DPSynthError as error:
        discoveries, own = None, None
        problems["discoveries"] = str(error)
    return Evidence(
        evaluation=evaluation,
        nearest=nearest,
        discoveries=discoveries,
        own_discoveries=own,
        pair=pair,
        problems=problems,
        basis=private.basis,
    )


def _discoveries(
    private: PrivateTable, request: EvidenceRequest, pair: tuple[str, str] | None, progress: Progress
) -> tuple[DiscoveryRisk, DiscoveryRisk | None]:
    """The risk that may be shown to anybody, and the one of the original's own groups if it can be simulated."""
    if pair is None:
        raise DPSynthError("This table has no column with two levels and another one with an order.")
    outcome = request.outcome
    release, table = outcome.release(private.n), outcome.tables[0]
    value, group = pair
    asked: dict[str, Any] = {"value": value, "group": group, "table": table, "seed": SEED}
    risk = request.discoveries or discovery_risk(
        release, **asked, advice=False, max_seconds=MAX_SECONDS, progress=share_of(progress, 0.0, 0.8)
    )
    if not risk.simulations or private.basis:
        return risk, None  # a sample has other group sizes than the table that the release was made from
    own = private_discovery_risk(
        private, release, **asked, max_seconds=MAX_SECONDS, progress=share_of(progress, 0.8, 1.0)
    )
    return risk, own
