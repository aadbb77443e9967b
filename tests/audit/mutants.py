"""Mutants: deliberately broken variants that the audit must catch. To add one, break something and add a line.

A mutant goes through the same layers as what it was made from. In a quick audit the first layer that catches it is
enough; a deep one asks every layer, so that the report can say which of them would have noticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from dpsynth_core.audit.canary import CanaryGradients
from dpsynth_core.audit.chain import REFERENCE, MarkovChain, chain_checks
from dpsynth_core.audit.claims import Synthesize, claim_checks
from dpsynth_core.audit.end_to_end_attack import end_to_end_checks
from dpsynth_core.audit.enumeration import enumeration_checks
from dpsynth_core.audit.guards import guard_checks
from dpsynth_core.audit.joint_law import secrecy_checks
from dpsynth_core.audit.leaving import Files, leaving_checks
from dpsynth_core.audit.mutant import LayerChecks, Mutant
from dpsynth_core.audit.noise_law import law_checks
from dpsynth_core.audit.probes import LargestCells
from dpsynth_core.audit.replay import replay_checks
from dpsynth_core.audit.selection import selection_losses, selection_replays
from dpsynth_core.audit.stage_attack import stage_checks
from dpsynth_core.audit.subject import Source, Subject, subject_of
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.runs.selection import PrivateSelection
from tests.audit.broken import counts, embeddings, gradients, leaving, releases, selections, sources, trees
from tests.audit.published import published

LEAVING = ("perturbed_histogram",)
"""A run that is made quickly: what is broken is what happens to its result."""


def _sentence(thing: object) -> str:
    return (thing.__doc__ or "").splitlines()[0]


def _name(thing: type | Callable[..., object]) -> str:
    """``HalfNoise`` and ``half_noise`` as people write them: half noise."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", thing.__name__).replace("_", " ").lower()


def _mechanism(kind: type[Mechanism], source: Source = SeededNoise) -> Mutant:
    subject = subject_of(kind, name=_name(kind), source=source)
    return Mutant(name=_name(kind), mistake=_sentence(kind), layers=_asked(subject))


def _asked(subject: Subject) -> LayerChecks:
    return {
        "replay": lambda size, root: replay_checks(subject, size, root),
        "enumeration": lambda size, _: enumeration_checks(subject, size),
        "stage attack": lambda size, root: stage_checks(subject, size, root),
        "end-to-end attack": lambda size, root: end_to_end_checks(subject, size, root),
    }


def _source(source: Source, user: type[Mechanism] = PerturbedHistogram) -> Mutant:
    assert isinstance(source, type)
    subject = subject_of(user, name=_name(source), source=source)
    law: LayerChecks = {
        "noise law": lambda size, root: law_checks(size, root, {"mutant": source}, subject=subject.name)
    }
    return Mutant(name=_name(source), mistake=_sentence(source), layers={**_asked(subject), **law})


def _secure_source(source: type[sources.HalfSecureNoise]) -> Mutant:
    """A source of releases takes no seed, so only its law is asked for."""
    own: dict[str, Source] = {"mutant": lambda budget, _: source(budget)}
    law: LayerChecks = {"noise law": lambda size, root: law_checks(size, root, own, subject=_name(source))}
    return Mutant(name=_name(source), mistake=_sentence(source), layers=law)


def _release(release: Synthesize) -> Mutant:
    kinds: dict[str, type[Mechanism]] = {PerturbedHistogram.key: PerturbedHistogram}
    asked: LayerChecks = {"claims": lambda _size, _root: claim_checks(release, kinds, subject=_name(release))}
    return Mutant(name=_name(release), mistake=_sentence(release), layers=asked)


def _changed_run(change: leaving.Change) -> Mutant:
    run, name = leaving.changed(change), _name(change)
    asked: LayerChecks = {
        "leaving": lambda size, root: leaving_checks(size, root, run=run, files=published, subject=name, only=LEAVING)
    }
    return Mutant(name=name, mistake=_sentence(change), layers=asked)


def _changed_files(files: Files) -> Mutant:
    name = _name(files)
    asked: LayerChecks = {
        "leaving": lambda size, root: leaving_checks(size, root, files=files, subject=name, only=LEAVING)
    }
    return Mutant(name=name, mistake=_sentence(files), layers=asked)


def _guards(source: type[SeededNoise]) -> Mutant:
    def make(budget: Budget) -> Noise:
        return source(budget, 1)

    asked: LayerChecks = {"claims": lambda _size, _root: guard_checks(make, subject=_name(source))}
    return Mutant(name=_name(source), mistake=_sentence(source), layers=asked)


def _keys(source: type[SecureNoise]) -> Mutant:
    """A source of releases whose keys can be guessed: its laws are as they should be."""
    asked: LayerChecks = {"joint law": lambda _size, _root: secrecy_checks(source, subject=_name(source))}
    return Mutant(name=_name(source), mistake=_sentence(source), layers=asked)


def _walk(part: Callable[..., object], walk: MarkovChain) -> Mutant:
    asked: LayerChecks = {"chain": lambda _size, _root: chain_checks(replace(walk, name=_name(part)))}
    return Mutant(name=_name(part), mistake=_sentence(part), layers=asked)


def _selection(kind: type[PrivateSelection]) -> Mutant:
    asked: LayerChecks = {
        "enumeration": lambda _size, _root: selection_losses(kind, subject=_name(kind)),
        "replay": lambda size, root: selection_replays(size, root, kind, subject=_name(kind)),
    }
    return Mutant(name=_name(kind), mistake=_sentence(kind), layers=asked)


MUTANTS: tuple[Mutant, ...] = (
    _mechanism(counts.SensitivityHalved),
    _mechanism(counts.EmptyBinsSkipped),
    _mechanism(counts.DrawnTwice),
    _mechanism(counts.OwnRandomness),
    _mechanism(counts.GaussianTooSmall),
    _mechanism(counts.BoundsFromData),
    _mechanism(counts.ThresholdFromData),
    _mechanism(counts.OccupiedFirst),
    _mechanism(counts.PresentCounted),
    _mechanism(counts.ErrorOnOutlier),
    _mechanism(counts.SmoothedForOneRow),
    _mechanism(trees.BudgetNotSplit, sources.Unguarded),
    _mechanism(trees.OneLevelTooFew, sources.Unguarded),
    _mechanism(trees.RawDecision),
    _mechanism(trees.OneLevelUnpaid),
    _mechanism(trees.BiasForgotten),
    _mechanism(trees.HalfTheTreeNoise),
    _mechanism(selections.ReselectUntilNew),
    _mechanism(selections.FactorTwoForgotten),
    _mechanism(selections.MwemReselects),
    _mechanism(selections.PmseBoundHalved),
    _selection(selections.OneRunCharged),
    _selection(selections.ScoreOfOnePair),
    _mechanism(gradients.PerBatchClipping),
    _mechanism(gradients.CriticStepsUncounted),
    _mechanism(gradients.OneClipForTwo),
    _mechanism(gradients.BatchForgotten),
    _mechanism(gradients.HalfTheGradientNoise),
    _source(gradients.HalfNoiseOnGradients, CanaryGradients),
    _mechanism(embeddings.LeakedPoints),
    _source(sources.HalfNoise),
    _secure_source(sources.HalfSecureNoise),
    _source(sources.OneSided),
    _source(sources.EmptyNeverPass),
    _source(sources.FactorTwoMissing, LargestCells),
    _release(releases.seeded_release),
    _release(releases.person_forgotten),
    _release(releases.always_proven),
    *map(_changed_run, leaving.CHANGES),
    _changed_files(leaving.duration_in_the_card),
    _guards(sources.Unguarded),
    _keys(sources.ShortKey),
    _keys(sources.KeyFromTheProcess),
    _walk(releases.data_optimal_start, replace(REFERENCE, start=releases.data_optimal_start)),
    _walk(releases.greedy_acceptance, replace(REFERENCE, kernel=releases.greedy_acceptance)),
    _walk(releases.half_the_temperature, replace(REFERENCE, kernel=releases.half_the_temperature)),
)
