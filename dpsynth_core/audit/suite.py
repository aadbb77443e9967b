"""The whole audit: every registered mechanism through every layer, every sampler, and every mutant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
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
from dpsynth_core.audit.generated import GeneratedMistakes
from dpsynth_core.audit.guards import guard_checks, price_checks
from dpsynth_core.audit.joint_law import joint_checks, secrecy_checks
from dpsynth_core.audit.kept_portions import LOOSE_LEVEL, FalseAlarms, KeptPortions, MutantResult, PortionResult
from dpsynth_core.audit.last_summary import source_digest
from dpsynth_core.audit.leaving import Files, entry_points, leaving_checks, no_files
from dpsynth_core.audit.locality import locality_checks
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
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise

REPETITIONS_AT_A_TIME = 20
STATISTICAL: tuple[Layer, ...] = ("noise law", "joint law", "stage attack", "end-to-end attack")


@dataclass(frozen=True, kw_only=True)
class Audit:
    when: datetime
    version: str
    digest: str
    deep: bool
    seed: int
    """From which every seed follows, except those of the release samplers, which take none."""
    seconds: float
    """Of computing, all processes together."""
    checks: tuple[AuditCheck, ...]
    mutants: tuple[MutantResult, ...]
    false_alarms: FalseAlarms | None = None
    generated: GeneratedMistakes | None = None
    """What came of mistakes in the source, which are tried by themselves."""

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
    files: Files = no_files,
    kept: KeptPortions | None = None,
) -> Audit:
    """Everything.

    A deep audit does more of everything and asks every layer about every mutant. Repetitions, of the statistical part
    at reduced size, count false alarms. The result does not depend on the number of workers. ``mutants`` names what is
    broken on purpose, ``files`` what is published of a run, in any process that asks. Portions that are kept already
    are not done again.
    """
    when, seconds = datetime.now(UTC), 0.0
    checks, caught, alarms = list[AuditCheck](), list[MutantResult](), list[FalseAlarms]()
    for title, (result, took) in _performed(_portions(deep, seed, repetitions, mutants, files), workers, kept):
        seconds += took
        say(f"{seconds:6.0f} s  {title}")
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
        seconds=seconds,
        checks=tuple(checks),
        mutants=tuple(caught),
        false_alarms=reduce(FalseAlarms.__add__, alarms) if alarms else None,
    )


Portion: TypeAlias = "tuple[str, Callable[..., PortionResult], tuple[object, ...]]"


def _portions(deep: bool, seed: int, repetitions: int, mutants: Mutants, files: Files) -> list[Portion]:
    """The work in portions, each with a title; plain enough to be sent to another process."""
    portions: list[Portion] = [
        (f"{name}: {layer}", _subject_part, (name, layer, deep, seed))
        for name in registered()
        for layer in SUBJECT_LAYERS
    ]
    portions += [(f"samplers: {source}", _law_part, (source, deep, seed)) for source in SOURCES]
    portions.append(("files, releases, selections and walks", _other_part, (seed,)))
    portions += [
        (f"what leaves: {entry.name}", _leaving_part, (entry.name, deep, seed, files)) for entry in entry_points()
    ]
    portions += [(f"mutant: {m.name}", _mutant_part, (mutants, i, deep, seed)) for i, m in enumerate(mutants())]
    portions += [
        (f"repetitions from {i}", count_false_alarms, (min(REPETITIONS_AT_A_TIME, repetitions - i), seed + i))
        for i in range(0, repetitions, REPETITIONS_AT_A_TIME)
    ]
    return portions


def _performed(
    portions: list[Portion], workers: int, kept: KeptPortions | None
) -> Iterator[tuple[str, tuple[PortionResult, float]]]:
    """Results in order with the seconds that they took; kept as soon as they are known."""
    done = {} if kept is None else {title: found for title, *_ in portions if (found := kept.find(title)) is not None}
    left = [portion for portion in portions if portion[0] not in done]

    def keep(title: str, result: tuple[PortionResult, float]) -> tuple[PortionResult, float]:
        if kept is not None:
            kept.add(title, *result)
        return result

    yield from done.items()
    if workers == 1:
        for title, part, arguments in left:
            yield title, keep(title, _timed(part, arguments))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_timed, part, arguments): title for title, part, arguments in left}
        finished = {waiting[future]: keep(waiting[future], future.result()) for future in as_completed(waiting)}
    for title, *_ in left:
        yield title, finished[title]


def _timed(part: Callable[..., PortionResult], arguments: tuple[object, ...]) -> tuple[PortionResult, float]:
    began = time.process_time()
    result = part(*arguments)
    return result, time.process_time() - began


def _subject_part(name: str, layer: Layer, deep: bool, seed: int) -> list[AuditCheck]:
    return list(SUBJECT_LAYERS[layer](registered()[name], DEEP if deep else QUICK, seed))


def _law_part(source: str, deep: bool, seed: int) -> list[AuditCheck]:
    size, sources = DEEP if deep else QUICK, {source: SOURCES[source]}
    keys = secrecy_checks() if source == "secure" else ()
    return [*law_checks(size, seed, sources), *joint_checks(size, seed, sources), *keys]


def _leaving_part(entry: str, deep: bool, seed: int, files: Files) -> list[AuditCheck]:
    return list(leaving_checks(DEEP if deep else QUICK, seed, files=files, only=(entry,)))


def _other_part(seed: int) -> list[AuditCheck]:
    walks = walk_checks(seed_for(seed, "walk"), level=QUICK.level)
    others = (
        claim_checks(),
        selection_checks(QUICK, seed),
        procedure_checks(QUICK, seed),
        chain_checks(REFERENCE),
        score_checks(QUICK, seed),
        guard_checks(),
        guard_checks(SecureNoise, subject="release source"),
        price_checks(),
    )
    return [*reading_checks(), *locality_checks(), *chain.from_iterable(others), *walks]


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
