"""The whole audit: every registered mechanism through every layer, every sampler, and every mutant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from itertools import chain
from multiprocessing import get_context
from typing import TypeAlias

import dpsynth_core
from dpsynth_core.audit.chain import REFERENCE, chain_checks, walk_checks
from dpsynth_core.audit.checks import DEEP, MAX_COMPARISONS, QUICK, REDUCED, AuditCheck, Layer, Size, failures, seed_for
from dpsynth_core.audit.claims import claim_checks
from dpsynth_core.audit.end_to_end_attack import end_to_end_checks
from dpsynth_core.audit.enumeration import enumeration_checks
from dpsynth_core.audit.joint_law import joint_checks
from dpsynth_core.audit.last_summary import source_digest
from dpsynth_core.audit.mutant import Mutant
from dpsynth_core.audit.neighbours import ATTACKED, LARGER_TOYS, TOYS
from dpsynth_core.audit.noise_law import SOURCES, law_checks
from dpsynth_core.audit.procedures import procedure_checks
from dpsynth_core.audit.reading import reading_checks
from dpsynth_core.audit.replay import replay_checks
from dpsynth_core.audit.selection import selection_checks
from dpsynth_core.audit.sensitivity_search import score_checks, search_checks
from dpsynth_core.audit.stage_attack import stage_checks
from dpsynth_core.audit.subject import Subject, registered
from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.noise import SeededNoise

LOOSE_LEVEL = 0.05
"""At which false alarms are common enough to be counted."""
REPETITIONS_AT_A_TIME = 20
STATISTICAL: tuple[Layer, ...] = ("noise law", "joint law", "stage attack", "end-to-end attack")


@dataclass(frozen=True, kw_only=True)
class MutantResult:
    name: str
    mistake: str
    layers: tuple[Layer, ...]
    """Those that caught it; none if it survived."""


@dataclass(frozen=True, kw_only=True)
class FalseAlarms:
    """What repeating the statistical part on sound mechanisms came to."""

    repetitions: int
    """With different seeds, at reduced size."""
    alarms: int
    """Repetitions in which any check failed at the level of the suite."""
    checks: int
    """Single checks made at the loose level."""
    loose_alarms: int
    loose_level: float = LOOSE_LEVEL
    """Probability of a false alarm that each of them may have."""

    def __add__(self, other: FalseAlarms) -> FalseAlarms:
        counts = ("repetitions", "alarms", "checks", "loose_alarms")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in counts})


@dataclass(frozen=True, kw_only=True)
class Audit:
    when: datetime
    version: str
    digest: str
    deep: bool
    seed: int
    """From which every seed follows, except those of the release samplers, which take none."""
    seconds: float
    checks: tuple[AuditCheck, ...]
    mutants: tuple[MutantResult, ...]
    false_alarms: FalseAlarms | None = None

    @property
    def passed(self) -> bool:
        return not failures(self.checks) and all(mutant.layers for mutant in self.mutants)


def _enumerated(subject: Subject, size: Size, _: int) -> Iterator[AuditCheck]:
    yield from enumeration_checks(subject, size, TOYS + LARGER_TOYS if size == DEEP else TOYS)


SUBJECT_LAYERS: dict[Layer, Callable[[Subject, Size, int], Iterator[AuditCheck]]] = {
    "replay": replay_checks,
    "sensitivity search": search_checks,
    "enumeration": _enumerated,
    "stage attack": stage_checks,
    "end-to-end attack": end_to_end_checks,
}


Mutants: TypeAlias = "Callable[[], tuple[Mutant, ...]]"


def no_mutants() -> tuple[Mutant, ...]:
    return ()


def run_audit(
    *,
    deep: bool,
    seed: int,
    repetitions: int = 0,
    workers: int = 1,
    say: Callable[[str], None] = lambda _: None,
    mutants: Mutants = no_mutants,
) -> Audit:
    """Everything.

    A deep audit does more of everything and asks every layer about every mutant. Repetitions, of the statistical part
    at reduced size, count false alarms. The result does not depend on the number of workers. ``mutants`` names what is
    broken on purpose, in any process that asks.
    """
    when, began = datetime.now(UTC), time.monotonic()
    checks, caught, alarms = list[AuditCheck](), list[MutantResult](), list[FalseAlarms]()
    for title, result in _performed(_portions(deep, seed, repetitions, mutants), workers):
        say(f"{time.monotonic() - began:6.0f} s  {title}")
        if isinstance(result, MutantResult):
            caught.append(result)
        elif isinstance(result, FalseAlarms):
            alarms.append(result)
        else:
            checks += result
    for layer in STATISTICAL:
        _share_level(sum(check.layer == layer for check in checks))
    return Audit(
        when=when,
        version=dpsynth_core.__version__,
        digest=source_digest(),
        deep=deep,
        seed=seed,
        seconds=time.monotonic() - began,
        checks=tuple(checks),
        mutants=tuple(caught),
        false_alarms=reduce(FalseAlarms.__add__, alarms) if alarms else None,
    )


PortionResult: TypeAlias = "list[AuditCheck] | MutantResult | FalseAlarms"
Portion: TypeAlias = "tuple[str, Callable[..., PortionResult], tuple[object, ...]]"


def _portions(deep: bool, seed: int, repetitions: int, mutants: Mutants) -> list[Portion]:
    """The work in portions, each with a title; plain enough to be sent to another process."""
    portions: list[Portion] = [
        (f"{name}: {layer}", _subject_part, (name, layer, deep, seed))
        for name in registered()
        for layer in SUBJECT_LAYERS
    ]
    portions += [(f"samplers: {source}", _law_part, (source, deep, seed)) for source in SOURCES]
    portions.append(("files, releases, selections and walks", _other_part, (seed,)))
    portions += [(f"mutant: {m.name}", _mutant_part, (mutants, i, deep, seed)) for i, m in enumerate(mutants())]
    portions += [
        (f"repetitions from {i}", count_false_alarms, (min(REPETITIONS_AT_A_TIME, repetitions - i), seed + i))
        for i in range(0, repetitions, REPETITIONS_AT_A_TIME)
    ]
    return portions


def _performed(portions: list[Portion], workers: int) -> Iterator[tuple[str, PortionResult]]:
    if workers == 1:
        for title, part, arguments in portions:
            yield title, part(*arguments)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [(title, pool.submit(part, *arguments)) for title, part, arguments in portions]
        for title, future in waiting:
            yield title, future.result()


def _subject_part(name: str, layer: Layer, deep: bool, seed: int) -> list[AuditCheck]:
    return list(SUBJECT_LAYERS[layer](registered()[name], DEEP if deep else QUICK, seed))


def _law_part(source: str, deep: bool, seed: int) -> list[AuditCheck]:
    size, sources = DEEP if deep else QUICK, {source: SOURCES[source]}
    return [*law_checks(size, seed, sources), *joint_checks(size, seed, sources)]


def _other_part(seed: int) -> list[AuditCheck]:
    walks = walk_checks(seed_for(seed, "walk"), level=QUICK.level)
    others = (
        claim_checks(),
        selection_checks(QUICK, seed),
        procedure_checks(QUICK, seed),
        chain_checks(REFERENCE),
        score_checks(QUICK, seed),
    )
    return [*reading_checks(), *chain.from_iterable(others), *walks]


def _mutant_part(mutants: Mutants, index: int, deep: bool, seed: int) -> MutantResult:
    mutant = mutants()[index]
    size = replace(QUICK, run_share=0.5) if deep else QUICK  # where every layer is asked, most do not catch it
    layers = mutant.caught_by(size, seed, every=deep)
    return MutantResult(name=mutant.name, mistake=mutant.mistake, layers=layers)


def _share_level(comparisons: int) -> None:
    if comparisons > MAX_COMPARISONS:
        remedy = "The level of the suite is shared among that many checks: raise it."
        raise ParameterError("MAX_COMPARISONS", MAX_COMPARISONS, allowed=f"at least {comparisons}", remedy=remedy)


# --------------------------------------------------------------------------------------------------------- false alarms


def statistical_part(size: Size, seed: int) -> Iterator[AuditCheck]:
    """What could fail by chance, at a size that allows repeating it: the settings that are suggested."""
    yield from law_checks(size, seed, {"seeded": SeededNoise})
    yield from joint_checks(size, seed, {"seeded": SeededNoise})
    for subject in registered().values():
        yield from stage_checks(subject.suggested, size, seed, ATTACKED[:1])
        yield from end_to_end_checks(subject.suggested, size, seed, ATTACKED[:1])


def count_false_alarms(repetitions: int, seed: int) -> FalseAlarms:
    """Repeat the statistical part on what is sound, at the suite's level and, for a tenth of them, at a loose one."""
    alarms = sum(bool(failures(statistical_part(REDUCED, seed + 1 + i))) for i in range(repetitions))
    loose = replace(REDUCED, level=LOOSE_LEVEL)
    checks = [
        check
        for i in range(max(1, repetitions // 10))
        for check in statistical_part(loose, seed + 10_000 + i)
        if check.verdict != "not applicable"
    ]
    return FalseAlarms(repetitions=repetitions, alarms=alarms, checks=len(checks), loose_alarms=len(failures(checks)))
